"""The library's kernels inside torch: where they are in use, where they must not be, and that values are the formula's.

Accuses src/python/backends/torch_ops.c, torch_segment.c, python/anytensor/_torch_kernels.py. The formula is had by
an idle function mode: under any mode it serves. _core._torch_kernels() counts the operators that were called.
"""

import os
import subprocess
import sys
import warnings

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from kernel_ways import (
    EACH_OP,
    IDS,
    OPS,
    Idle,
    Watch,
    close,
    finite,
    formula,
    inf,
    nan,
    need_kernels,
    ours,
    rows,
    runs,
)
from torch.fx.experimental.proxy_tensor import make_fx

import anytensor as at
from anytensor import _core


@pytest.fixture(autouse=True)
def _needs_kernels():
    need_kernels()


# ---- where they are in use
MANY = (
    *OPS,
    "segment_mean",
    "segment_variance",
    "segment_normalize",
    "segment_max_or_constant",
    "segment_min_or_constant",
)


@pytest.mark.parametrize("op", MANY)
@pytest.mark.parametrize("grad", [False, True])
def test_plain_tensors_go_to_a_kernel(op, grad):
    x = rows(grad=grad)
    y, count = runs(lambda: ours(op, x, IDS, 4))
    assert count > 0 and y.requires_grad == grad
    close(y, formula(ours, op, x, IDS, 4))


@pytest.mark.parametrize("op", ["partition_sum", "partition_min", "partition_max", "partition_softmax"])
def test_partitions_go_to_a_kernel(op):
    counts = torch.tensor([3, 0, 4, 2])
    y, count = runs(lambda: ours(op, rows(), counts, 9))
    assert count > 0
    close(y, formula(ours, op, rows(), counts, 9))


@EACH_OP
def test_one_call_is_one_operator(op):
    assert runs(lambda: ours(op, rows(), IDS, 4))[1] == 1
    assert runs(lambda: ours(op, rows(grad=True), IDS, 4))[1] == 1


@EACH_OP
def test_a_derivative_that_nobody_differentiates_again_is_one_operator(op):
    y = ours(op, rows(grad=True), IDS, 4)
    assert runs(y.sum().backward)[1] == 1


@EACH_OP
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_kernels_run_without_gradients(op, mode):
    x = rows(grad=True)
    with mode():
        y, count = runs(lambda: ours(op, x, IDS, 4))
        made = ours(op, rows(), IDS.clone(), 4)
    assert count == 1 and not y.requires_grad
    assert y.is_inference() == made.is_inference() == (mode is torch.inference_mode)
    close(y, formula(ours, op, x.detach(), IDS, 4))


def test_tensors_of_inference_mode_work_outside_of_it():
    with torch.inference_mode():
        x, ids = rows(), IDS.clone()
    for op in OPS:
        assert runs(lambda op=op: ours(op, x, ids, 4))[1] == 1
        weight = rows(grad=True)
        ours(op, weight, ids, 4).sum().backward()  # autograd refuses to keep such ids as they are
        (want,) = torch.autograd.grad(formula(ours, op, weight, IDS, 4).sum(), weight)
        close(weight.grad, want)


def test_parameters_and_functional_call():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = torch.nn.Parameter(rows())

        def forward(self, ids):
            return at.segment_softmax(self.rows, ids, 4) + at.segment_sum(self.rows, ids, 4)[:1]

    model = Model()
    assert runs(lambda: model(IDS))[1] == 2
    other = {"rows": rows() + 1}
    got, count = runs(lambda: torch.func.functional_call(model, other, (IDS,)))
    assert count == 2
    close(got, formula(torch.func.functional_call, model, other, (IDS,)))
    grads = torch.func.grad(lambda p: torch.func.functional_call(model, p, (IDS,)).sum())(other)
    assert grads["rows"].shape == (9, 3)


# ---- where they must not be
def forward_derivative(f, x, ids):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(x, torch.ones_like(x)), ids)).primal


def through_a_subclass(f, x, ids):
    class Sub(torch.Tensor):
        pass

    y = f(x.as_subclass(Sub), ids)
    assert type(y) is Sub
    return y.as_subclass(torch.Tensor)


def under(mode):
    def run(f, x, ids):
        with mode:
            return f(x, ids)

    return run


def traced(f, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.trace(f, args, check_trace=False)


def by_make_fx(**kwargs):
    return lambda f, x, ids: make_fx(f, **kwargs)(x, ids)(x, ids)


def exported(strict):
    class Program(torch.nn.Module):
        def __init__(self, f):
            super().__init__()
            self.f = f

        def forward(self, x, ids):
            return self.f(x, ids)

    return lambda f, x, ids: torch.export.export(Program(f), (x, ids), strict=strict).module()(x, ids)


def value_of_grad(f, x, ids):
    values = []
    torch.func.grad(lambda v: (values.append(f(v, ids)), values[0].sum())[1])(x)
    return values[0].detach()


FORMULA = {
    "func.grad": value_of_grad,
    "func.vjp": lambda f, x, ids: torch.func.vjp(lambda v: f(v, ids), x)[0],
    "func.jvp": lambda f, x, ids: torch.func.jvp(lambda v: f(v, ids), (x,), (x,))[0],
    "vmap": lambda f, x, ids: torch.vmap(f, (0, None))(torch.stack((x, x + 1)), ids)[0],
    "vmap in vmap": lambda f, x, ids: torch.vmap(torch.vmap(f))(x[None, None], ids[None, None])[0, 0],
    "functionalize": lambda f, x, ids: torch.func.functionalize(f)(x, ids),
    "forward AD": forward_derivative,
    "a function mode": under(Idle()),
    "a dispatch mode": under(Watch()),
    "a default device": under(torch.device("cpu")),
    "make_fx real": by_make_fx(tracing_mode="real"),
    "make_fx fake": by_make_fx(tracing_mode="fake"),
    "make_fx symbolic": by_make_fx(tracing_mode="symbolic"),
    "make_fx pre-dispatch": by_make_fx(pre_dispatch=True),
    "jit.trace": lambda f, x, ids: traced(f, x, ids)(x, ids),
    "export": exported(False),
    "strict export": exported(True),
    "compile by aot_eager": lambda f, x, ids: torch.compile(f, fullgraph=True, backend="aot_eager")(x, ids),
    "a subclass": through_a_subclass,
}


@pytest.mark.parametrize("where", FORMULA)
@EACH_OP
def test_what_watches_or_transforms_sees_the_formula(op, where):
    x = rows()
    y, count = runs(lambda: FORMULA[where](lambda v, ids: ours(op, v, ids, 4), x, IDS))
    assert count == 0
    close(y, ours(op, x, IDS, 4))


@EACH_OP
def test_the_eager_backend_of_the_compiler_runs_kernels(op):
    x = rows(grad=True)
    y, count = runs(lambda: torch.compile(lambda v: ours(op, v, IDS, 4), fullgraph=True, backend="eager")(x))
    assert count > 0
    close(y, ours(op, x, IDS, 4))


@EACH_OP
def test_compiled_derivatives(op):
    x = rows(torch.float64, grad=True)
    f = torch.compile(lambda v: ours(op, v, IDS, 3) ** 2, fullgraph=True, backend="aot_eager")
    (got,) = torch.autograd.grad(f(x).sum(), x)
    (want,) = torch.autograd.grad((ours(op, x, IDS, 3) ** 2)[torch.isfinite(ours(op, x, IDS, 3))].sum(), x)
    close(got, want)


def names_in(graph):
    return {str(node.target) for node in graph.nodes if node.op == "call_function"}


@EACH_OP
def test_no_graph_holds_an_operator_of_ours(op):
    def f(v, ids):
        return ours(op, v, ids, 4)

    x = rows()
    for mode in ("real", "fake", "symbolic"):
        assert not [n for n in names_in(make_fx(f, tracing_mode=mode)(x, IDS).graph) if "anytensor" in n]
    assert "anytensor" not in str(traced(f, x, IDS).inlined_graph)
    with Watch() as watch:
        f(x, IDS)
    assert watch.seen and not [name for name in watch.seen if "anytensor" in name]


@EACH_OP
def test_an_onnx_export_holds_no_operator_of_ours(op):
    pytest.importorskip("onnxscript")

    class Program(torch.nn.Module):
        def forward(self, x, ids):
            return ours(op, x, ids, 4)

    program = torch.onnx.export(Program(), (rows(), IDS), dynamo=True, verbose=False)
    assert not [node for node in program.model.graph if "anytensor" in node.domain]


@EACH_OP
def test_other_devices_get_the_formula(op):
    y, count = runs(lambda: ours(op, rows().to("meta"), IDS.to("meta"), 4))
    assert count == 0 and y.is_meta
    assert _core._torch_way(rows().to("meta"), IDS) == _core._torch_way(rows(), IDS.to("meta")) == 0


def test_other_layouts_get_the_formula():
    x = rows().to_sparse()
    before = _core._torch_kernels()
    with pytest.raises(NotImplementedError, match="Sparse"):
        at.segment_sum(x, IDS, 4)
    assert _core._torch_kernels() == before


# ---- memory
VIEWS = {
    "columns first": lambda x: x.t().contiguous().t(),
    "every second row": lambda x: x.repeat_interleave(2, 0)[::2],
    "an offset": lambda x: torch.cat((x, x))[9:],
    "a stretched axis": lambda x: x[:, :1].expand(-1, 3),
    "rows that are one": lambda x: x[:1].expand(9, -1),
    "a lazy negation": lambda x: torch.complex(x, -x).conj().imag,
    "a real part": lambda x: torch.complex(x, x).conj().real,
    "a lazy clone": lambda x: torch._lazy_clone(x),
    "zeros that are nowhere": lambda x: torch._efficientzerotensor(x.shape),
    "three axes": lambda x: x.reshape(9, 3, 1).expand(9, 3, 2),
    "a vector": lambda x: x[:, 0],
    "no columns": lambda x: x[:, :0],
}


@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.parametrize("grad", [False, True])
@EACH_OP
def test_memory_of_every_kind(op, kind, grad):
    x = VIEWS[kind](rows())
    if kind == "a lazy negation":
        assert x.is_neg()
    if grad:
        x = x.detach().requires_grad_() if kind != "zeros that are nowhere" else x
    y, count = runs(lambda: ours(op, x, IDS, 4))
    assert count == 1
    close(y, formula(ours, op, x.detach().clone(), IDS, 4))
    if x.requires_grad:
        y = finite(y)
        (got,) = torch.autograd.grad((y * y).sum(), x)
        y = finite(formula(ours, op, x, IDS, 4))
        close(got, torch.autograd.grad((y * y).sum(), x)[0])


def test_strided_ids():
    ids = torch.stack((IDS, IDS + 1), 1)[:, 0]
    assert not ids.is_contiguous()
    for op in OPS:
        close(ours(op, rows(), ids, 4), ours(op, rows(), IDS, 4))


@EACH_OP
def test_no_rows_and_no_segments(op):
    for x, ids, n in ((rows()[:0], IDS[:0], 3), (rows(), IDS, 0), (rows()[:0], IDS[:0], 0)):
        for grad in (False, True):
            x = x.detach().requires_grad_(grad)
            y, count = runs(lambda x=x, ids=ids, n=n: ours(op, x, ids, n))
            assert count == 1
            close(y, formula(ours, op, x, ids, n))
            if grad:
                close(torch.autograd.grad(y.sum(), x)[0], torch.zeros_like(x))


def test_freed_memory_is_refused():
    x, ids = rows(), IDS.clone()
    x.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="memory of a tensor is freed"):
        at.segment_sum(x, IDS, 4)
    ids.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="memory of a tensor is freed"):
        at.segment_max(rows(), ids, 4)


def test_too_many_segments_are_an_exception_that_names_the_call():
    for grad in (False, True):
        with pytest.raises(RuntimeError, match="segment_sum: no memory for the result") as caught:
            at.segment_sum(rows(grad=grad), IDS, 2**60)
        assert "segment_sum" in "".join(getattr(caught.value, "__notes__", ["segment_sum"]))


# ---- values of every dtype
DTYPES = [
    getattr(torch, name)
    for name in "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64".split()
    if hasattr(torch, name)
]


def values(dtype):
    x = (torch.arange(27).reshape(9, 3) * 7) % 11
    if dtype.is_floating_point:
        x = x.to(dtype) * 0.25
        x[0, 0], x[1, 1], x[4, 2], x[3, 1] = nan, inf, -inf, -inf
        x[2], x[6, 1] = nan, inf  # their ids are out of range
        return x
    return (x % 2).to(dtype) if dtype == torch.bool else x.to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", MANY)
def test_values_are_those_of_the_formula(op, dtype):
    x = values(dtype)
    y, want = ours(op, x, IDS, 5), formula(ours, op, x, IDS, 5)
    if dtype.itemsize == 2 and dtype.is_floating_point and op in ("segment_sum", "segment_softmax"):
        y, want = y.float(), want.float()
        return close(y, want, rtol=1e-2 if dtype == torch.bfloat16 else 1e-3, atol=1e-2)
    assert y.dtype == want.dtype
    close(y, want)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if not d.is_floating_point and d != torch.bool], ids=str)
@EACH_OP
def test_ids_of_every_integer_dtype(op, dtype):
    top = torch.iinfo(dtype).max
    numbers = [0, 2, 1, 0, 2, 2, 4, 0, 100]
    ids = torch.tensor([min(top, k) for k in numbers]).to(dtype)
    far = torch.tensor([torch.iinfo(dtype).min or 3], dtype=torch.int64).to(dtype)
    ids[6:7] = far
    if dtype == torch.uint64:
        ids.view(torch.int64)[8] = -1  # 2**64 - 1
    plain = torch.tensor([0, 2, 1, 0, 2, 2, -1, 0, -1])
    for grad in (False, True):
        x = rows(grad=grad)
        y, count = runs(lambda x=x: ours(op, x, ids, 3))
        assert count == 1
        close(y, ours(op, x, plain, 3))
    (got,), (want,) = (
        torch.autograd.grad((ours(op, x, i, 3) ** 2).sum(), x, create_graph=True) for i in (ids, plain)
    )
    close(got, want)


def test_half_precision_is_added_wide():
    x, ids = torch.ones(5000, 1, dtype=torch.bfloat16), torch.zeros(5000, dtype=torch.int64)
    assert at.segment_sum(x, ids, 1).item() == formula(at.segment_sum, x, ids, 1).item() == 4992
    x = torch.full((5000,), 0.1, dtype=torch.float16)
    soft = at.segment_softmax(x, ids, 1)
    assert soft.dtype == torch.float16 and soft[0].item() == pytest.approx(1 / 5000, rel=1e-2)


def test_sums_of_long_segments_are_exact_and_the_same_each_time():
    x, ids = torch.full((10**6,), 0.1), torch.zeros(10**6, dtype=torch.int64)
    exact = 0.1 * 10**6
    assert abs(at.segment_sum(x, ids, 1).item() - exact) <= 1e-6 * exact
    x, ids = torch.randn(10**5, 3), torch.arange(10**5) % 7
    torch.use_deterministic_algorithms(True)
    try:
        for op in OPS:
            y, count = runs(lambda op=op: ours(op, x, ids, 7))
            assert count == 1 and torch.equal(y, ours(op, x, ids, 7))
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@EACH_OP
def test_autocast_leaves_the_dtype_as_the_formula_does(op, dtype):
    x = rows(dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, count = runs(lambda: ours(op, x, IDS, 4))
        want = formula(ours, op, x, IDS, 4)
    assert count == 1 and y.dtype == want.dtype
    close(y, want, rtol=1e-2, atol=1e-2)


# ---- the operators themselves
def operator_arguments():
    x, ids = rows(), IDS.clone()
    peak = torch.ops.anytensor.segment_max(x, ids, 4)
    return {
        "segment_sum": (x, ids, 4),
        "segment_min": (x.t().contiguous().t(), ids, 4),
        "segment_max": (x, ids, 4),
        "segment_softmax": (x.double(), ids, 4),
        "segment_spread": (peak, ids),
        "segment_softmax_backward": (x, x + 1, ids, 4),
        "segment_extreme_backward": (x, peak, peak + 1, ids),
    }


@pytest.mark.parametrize(
    "name",
    [*OPS, "segment_spread", "segment_softmax_backward", "segment_extreme_backward"],
)
def test_opcheck(name):
    args = operator_arguments()[name]
    found = torch.library.opcheck(getattr(torch.ops.anytensor, name).default, args)
    assert set(found.values()) == {"SUCCESS"}


BAD = {
    "vector of integers": lambda o, x, ids: o.segment_sum(x, ids.float(), 4),
    "found a number": lambda o, x, ids: o.segment_max(x[0, 0], ids, 4),
    "differ in length": lambda o, x, ids: o.segment_softmax(x, ids[1:], 4),
    "not negative": lambda o, x, ids: o.segment_softmax(x, ids, -1),
    "number of segments that": lambda o, x, ids: o.segment_sum(x, ids, -1),
    "found bool": lambda o, x, ids: o.segment_sum(x > 0, ids, 4),
    "expected floats": lambda o, x, ids: o.segment_softmax(x.int(), ids, 4),
    "bool, integers or floats": lambda o, x, ids: o.segment_sum(x + 0j, ids, 4),
    "integers as ids": lambda o, x, ids: o.segment_spread(x, ids[:, None]),
    "derivative differ in shape": lambda o, x, ids: o.segment_softmax_backward(x, x[:, :1], ids, 4),
    "extremes differ in shape": lambda o, x, ids: o.segment_extreme_backward(x, x[:4, :1], x[:4, :1], ids),
    "extremes and derivative": lambda o, x, ids: o.segment_extreme_backward(x, x[:4], x[:3], ids),
}


@pytest.mark.parametrize("text", BAD)
def test_bad_arguments_of_an_operator_are_an_exception(text):
    with pytest.raises(RuntimeError, match=text):
        BAD[text](torch.ops.anytensor, rows(), IDS)


# What a process prints in which the formula has to serve.
WITHOUT = """
import anytensor as at
x, ids = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor([0, 1, 1])
y = at.segment_sum(x, ids, 2)
y.sum().backward()
print(at._core._torch_kernels(), y.tolist(), x.grad.tolist())
"""
WITHOUT_PRINTS = "None [1.0, 5.0] [1.0, 1.0, 1.0]"


def printed(code, **more):
    environment = {**os.environ, **more}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.strip()


def test_where_the_names_are_taken_the_formula_serves():
    """Another build of the extension in this process had them first."""
    code = """
import torch
library = torch.library.Library("anytensor", "DEF")
library.define("segment_sum(Tensor x) -> Tensor")
library.impl("segment_sum", lambda x: x, "CPU")
"""
    assert printed(code + WITHOUT) == WITHOUT_PRINTS


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="LD_PRELOAD")
def test_a_torch_that_lacks_a_function_of_the_door_gets_the_formula(tmp_path, cxx):
    """As torch 2.9 does: dlsym finds no torch_get_const_data_ptr."""
    source = tmp_path / "lacks.cpp"
    source.write_text(
        """
#include <dlfcn.h>
#include <string.h>
extern "C" void *dlsym(void *handle, const char *name) noexcept
{
    typedef void *function(void *, const char *);
    static function *real;
    const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    for (const char *version : versions)
        if (real == nullptr) real = (function *)dlvsym(RTLD_NEXT, "dlsym", version);
    return name != nullptr && strcmp(name, "torch_get_const_data_ptr") == 0 ? nullptr : real(handle, name);
}
"""
    )
    library = tmp_path / "lacks.so"
    subprocess.run([cxx, "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", library, source, "-ldl"], check=True)
    assert printed("import torch" + WITHOUT, LD_PRELOAD=str(library)) == WITHOUT_PRINTS


FORKING = """
import os, signal, torch, anytensor as at
x, ids = torch.rand(200_000, 8), torch.randint(0, 100, (200_000,))
want = torch.zeros(100, 8, dtype=torch.float64).index_add_(0, ids, x.double())
close = lambda y: torch.isclose(y.double(), want, rtol=1e-6).numpy().all()
torch.set_num_threads(2)
assert close(at.segment_sum(x, ids, 100))
if (child := os.fork()) == 0:
    signal.alarm(60)
    y = at.segment_sum(x, ids, 100).numpy()  # torch's own threads do not live here: only the kernel is asked
    os._exit(0 if abs(y - want.numpy()).max() < 1e-2 else 3)
assert os.waitpid(child, 0)[1] == 0
torch.set_num_threads(1)
assert close(at.segment_sum(x, ids, 100))
print("fine")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_threads_are_torchs_own_and_a_forked_child_does_without():
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True)
    assert done.stdout.strip() == "fine", done.stderr
