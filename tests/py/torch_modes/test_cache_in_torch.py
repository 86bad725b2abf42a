"""at.cache under torch's compilers and tracers (SEMANTICS 20): off under Dynamo, within one trace elsewhere.

Accuses src/python/backends/torch_state.c (pt_trace, pt_watcher), src/python/cache_value.c, python/anytensor/_dynamo.py.
"""

import gc
import weakref

import pytest
import torch
from frameworks import COMPILES
from torch.fx.experimental.proxy_tensor import make_fx

import anytensor as at

cache = at.cache


@pytest.fixture(autouse=True)
def off_before_and_after():
    cache.disable()
    yield
    cache.disable()


def two_layers(x, senders, made):
    for _ in range(2):
        kept = cache.lookup("layer", (senders,), (True,))
        if kept is None:
            made.append(1)
            kept = (senders, at.segment_count(senders, 3))
            cache.store("layer", (senders,), kept, (True,))
        x = x / at.take(kept[1], kept[0])
    return x


X, IDS, PARTS = torch.arange(4.0), torch.tensor([0, 0, 1, 2]), torch.tensor([1, 3])
WANT = [0.0, 0.25, 2.0, 3.0]


# --- Dynamo ------------------------------------------------------------------------------------------------


@at.cache
def decorated(x, ids, parts):
    cache.enable()
    cache.store("ns", ids, x)
    kept = cache.lookup("ns", ids, extra=(1,))
    if kept is not None or cache.lookup("ns", ids) is not None or "ns" in cache or "partition" in cache:
        x = x + 100.0
    with cache():
        cache.store(namespace="ns", obj=(ids, x), value=x)
        with cache():
            x = two_layers(x, ids, [])
        cache.purge("ns", ids)
    cache.purge_cache("ns", (ids, x))
    cache.disable()
    return x + at.partition_sum(x, parts, 4)[at.partition_ids(parts, 4)]


@at.cache()
def also(x, ids, parts):
    return decorated(x, ids, parts)


@pytest.mark.parametrize("on", [False, True], ids=["off", "on"])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@COMPILES
def test_dynamo_takes_every_call_in_one_graph_and_none_has_an_effect(backend, on):
    want = [0.0, 5.5, 7.25, 8.25]
    if on:
        cache.enable()
        at.partition_ids(PARTS, 4)
        cache.store("ns", IDS, "before")
    compiled = torch.compile(also, fullgraph=True, backend=backend)
    assert compiled(X, IDS, PARTS).tolist() == want
    assert ("partition" in cache) is on
    if on:
        assert cache.lookup("ns", IDS) == "before" and len(cache["partition"]) == 1
    cache.disable()
    assert also(X, IDS, PARTS).tolist() != want  # run by Python it finds what it has stored


@COMPILES
def test_an_item_of_the_cache_is_a_key_error_under_dynamo():
    def f(x):
        try:
            cache["ns"]
        except KeyError:
            return x + 1
        return x

    cache.enable()
    assert torch.compile(f, fullgraph=True, backend="eager")(X).tolist() == (X + 1).tolist()


@COMPILES
def test_gradients_go_through_a_cached_function():
    x = X.clone().requires_grad_()
    torch.compile(decorated, fullgraph=True, backend="aot_eager")(x, IDS, PARTS).sum().backward()
    y = X.clone().requires_grad_()
    decorated(y, IDS, PARTS).sum().backward()
    assert torch.allclose(x.grad, y.grad)


@COMPILES
def test_strict_export_takes_a_cached_function():
    class Model(torch.nn.Module):
        def forward(self, x, ids, parts):
            return decorated(x, ids, parts)

    cache.enable()
    program = torch.export.export(Model(), (X, IDS, PARTS), strict=True)
    assert program.module()(X, IDS, PARTS).tolist() == [0.0, 5.5, 7.25, 8.25]


# --- traces that run Python -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_stacked_layers_share_structure_inside_one_make_fx(mode):
    made = []
    with cache():
        assert two_layers(X, IDS, made).tolist() == WANT and made == [1]  # kept eagerly, for the same ids
        graph = make_fx(lambda x, ids: two_layers(x, ids, made), tracing_mode=mode)(X, IDS)
        assert made == [1, 1]
    code = graph.code
    assert code.count("aten.scatter") == 1 and "_tensor_constant" not in code
    other = torch.tensor([2, 2, 2, 0])
    assert graph(X, other).tolist() == two_layers(X, other, []).tolist()


@COMPILES
def test_stacked_layers_share_structure_inside_one_export():
    made = []

    class Model(torch.nn.Module):
        def forward(self, x, ids):
            return two_layers(x, ids, made)

    with cache():
        two_layers(X, IDS, [])
        program = torch.export.export(Model(), (X, IDS), strict=False)
    assert made == [1]
    other = torch.tensor([2, 2, 2, 0])
    assert program.module()(X, other).tolist() == two_layers(X, other, []).tolist()


@COMPILES
def test_partition_functions_export_with_the_cache_on():
    class Model(torch.nn.Module):
        def forward(self, x, parts):
            return at.partition_sum(x, parts, 4) + at.partition_max(x, parts, 4)

    with cache():
        at.partition_ids(PARTS, 4)
        program = torch.export.export(Model(), (X, PARTS), strict=False)
        graph = make_fx(lambda x, parts: Model()(x, parts))(X, PARTS)
        assert program.module()(X, torch.tensor([2, 2])).tolist() == [2.0, 8.0]
        assert graph(X, torch.tensor([2, 2])).tolist() == [2.0, 8.0]
        assert len(cache["partition"]) == 1 and at.partition_ids(PARTS, 4).tolist() == [0, 1, 1, 1]


def test_a_key_that_is_no_tensor_keeps_real_traces_apart_too():
    key = lambda: None  # noqa: E731

    def f(x):
        if cache.lookup("ns", key) is None:
            cache.store("ns", key, x * 2)
        return cache.lookup("ns", key) + 1

    with cache():
        f(X)
        assert make_fx(f)(X)(X + 1).tolist() == (X * 2 + 3).tolist()


def test_jit_trace_finds_and_keeps_nothing():
    with cache():
        two_layers(X, IDS, [])
        made = []
        traced = torch.jit.trace(lambda x, ids: two_layers(x, ids, made), (X, IDS), check_trace=False)
        assert made == [1, 1] and len(cache["layer"]) == 1
    other = torch.tensor([2, 2, 2, 0])
    assert traced(X, other).tolist() == two_layers(X, other, []).tolist()


@pytest.mark.parametrize("transform", ["grad", "vmap", "jvp"])
def test_wrapped_values_are_not_kept_under_a_plain_key(transform):
    def f(x):
        cache.store("ns", PARTS, x * 2)
        cache.store("ns", PARTS, [PARTS * 2], ("of plain ones",))
        cache.store("ns", PARTS, 7, ("a number",))
        cache.store("ns", x, x * 2)
        assert cache.lookup("ns", x) is not None
        return at.partition_sum(x, PARTS, 4).sum()

    with cache():
        calls = {
            "grad": lambda: torch.func.grad(f)(X).tolist(),
            "vmap": lambda: torch.func.vmap(f)(X[None]).tolist(),
            "jvp": lambda: torch.func.jvp(f, (X,), (X,))[0].tolist(),
        }
        assert calls[transform]() == {"grad": [1.0] * 4, "vmap": [6.0], "jvp": 6.0}[transform]
        assert cache.lookup("ns", PARTS) is None and cache.lookup("ns", PARTS, ("a number",)) == 7
        kept = cache.lookup("ns", PARTS, ("of plain ones",))
        assert kept is None or (kept[0] + 1).tolist() == [3, 7]
        assert at.partition_ids(PARTS, 4).tolist() == [0, 1, 1, 1]
        assert at.partition_sum(X, PARTS, 4).tolist() == [0.0, 6.0]


def test_fake_tensors_keep_to_themselves():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with cache():
        with FakeTensorMode() as mode:
            fake = mode.from_tensor(PARTS)
            value = fake * 2
            cache.store("ns", fake, value)
            assert cache.lookup("ns", fake) is value
            cache.store("ns", PARTS, value)
            assert cache.lookup("ns", PARTS) is None
        assert cache.lookup("ns", PARTS) is None
        gone = weakref.ref(mode)
        del fake, value, mode
        gc.collect()
        assert gone() is None and cache["ns"] == {}


def test_symbolic_sizes_are_not_kept_under_a_plain_key():
    def f(x, ids):
        cache.store("ns", PARTS, (x.shape[0],))
        assert cache.lookup("ns", PARTS) is None
        cache.store("ns", ids, (x.shape[0],))
        assert cache.lookup("ns", ids) is not None
        return x + x.shape[0]

    with cache():
        graph = make_fx(f, tracing_mode="symbolic")(X, IDS)
    assert graph(torch.ones(7), IDS).tolist() == [8.0] * 7


def test_gradients_flow_through_kept_values():
    x = X.clone().requires_grad_()
    with cache():
        cache.store("ns", IDS, x * 3)
        cache.lookup("ns", IDS).sum().backward()
    assert x.grad.tolist() == [3.0] * 4
