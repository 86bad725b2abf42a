"""torch.compile with one full graph, of any size, without a graph break, against eager values."""

import functools

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch_calls import (
    CALLS,
    COMPILES,
    FEW,
    FEWER,
    PLAIN_CALLS,
    SEGMENT_CALLS,
    arguments,
    check,
    eager,
    inputs,
    program,
)

import anytensor as at

pytestmark = COMPILES
SIZES = ((7, 4), (11, 6), (29, 9))


def compile_and_grow(calls, backend, rtol, by_shape=False):
    """Values at three sizes from one compilation."""
    counter = CompileCounterWithBackend(backend)
    run = torch.compile(program(calls), fullgraph=True, dynamic=True, backend=counter)
    compiled = None
    for edges, nodes in SIZES:
        n, total, tensors = arguments(calls, edges, nodes)
        got = run(None, None, *tensors) if by_shape else run(n, total, *tensors)
        check(calls, got, eager(calls, edges, nodes), rtol, where=f" of {edges} rows")
        compiled = compiled or counter.frame_count
    assert counter.frame_count == compiled, "compiled anew for another size"


@pytest.mark.parametrize("family", CALLS)
def test_aot_eager(family):
    compile_and_grow(CALLS[family], "aot_eager", 1e-6)


@pytest.mark.parametrize("group", [SEGMENT_CALLS, PLAIN_CALLS], ids=["segment", "plain"])
def test_sizes_read_off_a_shape(group):
    compile_and_grow(sum((FEW[family] for family in group), ()), "eager", 1e-6, by_shape=True)


@pytest.mark.slow
@pytest.mark.parametrize("group", [SEGMENT_CALLS, PLAIN_CALLS], ids=["segment", "plain"])
def test_inductor(group, cxx):
    compile_and_grow(sum((FEWER[family] for family in group), ()), "inductor", 1e-5)


@pytest.mark.parametrize("group", [SEGMENT_CALLS, PLAIN_CALLS], ids=["segment", "plain"])
def test_there_is_no_graph_break(group):
    calls = sum((FEW[family] for family in group), ())
    n, total, tensors = arguments(calls)
    explained = torch._dynamo.explain(program(calls))(n, total, *tensors)
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons


def test_every_function_is_called_under_the_compiler():
    """The list of calls holds each function of the package."""
    names = {name for calls in CALLS.values() for call in calls for name in call.fn.__code__.co_names}
    assert set(at._core.ops) - {"shape"} <= names


@pytest.mark.parametrize("dynamic", [False, True])
def test_facts_are_constants_of_a_graph(dynamic):
    def run(x, i):
        y = at.where(x > at.pi(x), at.inf(x), x * at.finfo(x).eps) - at.e(like=x)
        limits = at.ninf(x), at.iinfo(i).max, at.get_backend(x).framework_name, at.newaxis
        return at.astype(y, at.dtype("float64", i)), at.where(y > 0, at.nan(y), y), limits

    given = torch.tensor([1.0, 4.0]), torch.tensor([1], dtype=torch.int8)
    got = torch.compile(run, fullgraph=True, dynamic=dynamic, backend="aot_eager")(*given)
    want = run(*given)
    assert got[0].dtype == torch.float64 and torch.equal(got[0], want[0])
    assert torch.equal(got[1].isnan(), want[1].isnan()) and got[2] == want[2]


def test_einops_and_old_import_paths_in_a_graph():
    from anytensor import core, segment

    def run(x, ids):
        return at.rearrange(segment.segment_sum(core.exp(x), ids, 3), "n f -> f n")

    x, ids = torch.rand(4, 2), torch.tensor([0, 2, 2, 5])
    assert torch.equal(torch.compile(run, fullgraph=True, backend="aot_eager")(x, ids), run(x, ids))


@pytest.mark.parametrize("size", ["python", "tensor", "shape"])
def test_shape_is_a_tuple_of_sizes(size):
    def run(x, k):
        rows, columns = at.shape(x)
        return x * rows + columns + len(at.shape(x)), at.shape(x), (k, rows)

    x = torch.rand(5, 3)
    k = {"python": 2, "tensor": torch.tensor(2), "shape": x.shape[0]}[size]
    got = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")(x, k)
    want = run(x, k)
    assert torch.equal(got[0], want[0]) and got[1:] == want[1:] and isinstance(got[1], tuple)


def test_a_tensor_as_a_size_becomes_a_symbol():
    given = inputs()

    def run(x, ids, n):
        return at.segment_sum(x, ids, n)

    compiled = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        for n in (4, 9):
            got = compiled(given["x"], given["ids"], torch.tensor(n))
            assert torch.equal(got, run(given["x"], given["ids"], n))


@pytest.mark.parametrize("name", ["segment_sum", "segment_softmax"])
def test_the_builtin_itself_is_compiled(name):
    fn, given = getattr(at, name), inputs()
    args = given["x"], given["ids"], 4
    for compiled in (fn, functools.partial(fn, sorted=False)):
        got = torch.compile(compiled, fullgraph=True, backend="aot_eager")(*args)
        assert torch.equal(got, fn(*args))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_compiled_code_under_a_grad_mode(mode):
    calls = FEW["segment_max"] + FEW["segment_softmax"]
    n, total, tensors = arguments(calls)
    run = torch.compile(program(calls), fullgraph=True, backend="aot_eager")
    with mode():
        check(calls, run(n, total, *tensors), eager(calls))


def test_numpy_beside_tensors():
    given = inputs()
    ids = given["ids"].numpy()

    def run(x, ids):
        return at.segment_sum(x, torch.as_tensor(ids), 4), at.maximum(x, ids[:1].astype("float32"))

    got = torch.compile(run, fullgraph=True, backend="aot_eager")(given["x"], ids)
    for g, w in zip(got, run(given["x"], ids), strict=True):
        assert torch.equal(g, w)


@pytest.mark.slow
def test_a_module_with_the_main_job_trains_like_the_eager_one(cxx):
    """Attention over neighbours, forward and backward through Inductor."""

    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.score = torch.nn.Linear(4, 1)

        def forward(self, nodes, senders, receivers):
            n = at.shape(nodes)[0]
            pairs = at.concatenate([at.take(nodes, senders), at.take(nodes, receivers)], axis=-1)
            weights = at.segment_softmax(self.score(pairs), receivers, n)
            return at.segment_sum(weights * at.take(nodes, senders), receivers, n)

    torch.manual_seed(0)
    model, nodes = Attention(), torch.rand(6, 2)
    senders, receivers = torch.tensor([0, 1, 2, 3, 4, 5, 0]), torch.tensor([1, 1, 3, 3, 3, 0, 2])
    compiled = torch.compile(model, fullgraph=True, dynamic=True)
    results = []
    for run in (model, compiled):
        model.zero_grad()
        y = run(nodes, senders, receivers)
        (y * torch.arange(12.0).reshape(6, 2)).sum().backward()
        results.append((y.detach(), *[p.grad.clone() for p in model.parameters()]))
    for want, got in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("fullgraph", [True, False])
def test_bad_input_is_named_while_compiling(fullgraph):
    def run(x):
        return at.segment_sum(x, x, 3)

    with pytest.raises(Exception, match=r"segment_sum.*segment_ids"):
        torch.compile(run, fullgraph=fullgraph, backend="eager")(torch.rand(3))
