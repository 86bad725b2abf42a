"""at.cache under JAX (SEMANTICS 20): layers share structure inside one trace, and nothing outlives it.

Accuses src/python/backends/jax_array.c (pj_trace), src/python/cache_value.c.
"""

import gc
import weakref

import jax
import jax.numpy as jnp
import pytest

import anytensor as at

cache = at.cache
TRACE = pytest.importorskip("jax._src.interpreters.partial_eval").DynamicJaxprTrace
SHARED = pytest.mark.skipif(
    not TRACE.__weakrefoffset__,
    reason="traces of JAX before 0.5 or so have no identity: nothing is kept there",
)


@pytest.fixture(autouse=True)
def off_before_and_after():
    cache.disable()
    yield
    cache.disable()


def structure(senders, made):
    """What a layer computes from indices alone; made counts how often."""
    kept = cache.lookup("layer", senders, (True,))
    if kept is None:
        made.append(1)
        kept = (senders, at.segment_count(senders, 3), {"n": 3})
        cache.store("layer", senders, kept, (True,))
    return kept


def two_layers(x, senders, made):
    for _ in range(2):
        ids, degree, _ = structure(senders, made)
        x = x / at.take(degree, ids)
    return x


X, IDS = jnp.arange(4.0), jnp.asarray([0, 0, 1, 2])
WANT = [0.0, 0.25, 2.0, 3.0]


@SHARED
def test_stacked_layers_share_structure_inside_one_jit():
    made = []
    with cache():
        assert jax.jit(lambda x, ids: two_layers(x, ids, made))(X, IDS).tolist() == WANT
        assert made == [1] and len(cache["layer"]) == 0  # gone with the trace
        jaxpr = str(jax.make_jaxpr(lambda x, ids: two_layers(x, ids, made))(X, IDS))
    assert jaxpr.count("scatter-add[") == 1


@SHARED
def test_partition_ids_are_shared_inside_one_jit():
    def f(x, parts):
        total = at.partition_sum(x, parts, 4) + at.partition_max(x, parts, 4)
        return total, at.partition_softmax(x, parts, 4), at.partition_ids(parts, 4)

    parts = jnp.asarray([1, 3])

    def sums():
        return str(jax.make_jaxpr(lambda *args: f(*args))(X, parts)).count("name=cumsum")

    plain = sums()
    with cache():
        shared = sums()
        got = jax.jit(f)(X, parts)
        assert cache["partition"] == {}
    assert shared * 4 == plain > 0
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(f(X, parts)), strict=True):
        assert jnp.allclose(one, other)


def test_traced_values_are_not_kept_under_a_concrete_key():
    """The hazard of the reference: an array closed over, with what was computed from it inside the trace."""
    parts = jnp.asarray([1, 3])

    @cache
    def f(x):
        cache.store("ns", parts, [x, at.partition_ids(parts, 4)])
        cache.store("ns", parts, {"deep": (1, [x])}, (1,))
        thing = type("Thing", (), {})()
        thing.x = x
        cache.store("ns", parts, thing, (2,))
        cache.store("ns", parts, "fine", (3,))
        return at.partition_sum(x, parts, 4)

    assert jax.jit(f)(X).tolist() == [0.0, 6.0]
    assert [cache.lookup("ns", parts, extra) for extra in ((), (1,), (2,), (3,))] == [None] * 3 + ["fine"]
    assert at.partition_ids(parts, 4).tolist() == [0, 1, 1, 1]  # no UnexpectedTracerError
    assert at.partition_sum(X, parts, 4).tolist() == [0.0, 6.0]
    assert jax.jit(f)(X + 1).tolist() == [1.0, 9.0]  # and now with concrete ids that are kept


@SHARED
def test_a_traced_array_among_the_keys_is_enough_and_only_of_the_same_trace():
    def f(x, ids):
        cache.store("ns", (IDS, ids), x)
        assert cache.lookup("ns", (IDS, ids)) is x

        def inner(y):
            cache.store("ns", ids, y, ("y",))  # a key of the outer trace, a value of the inner one
            cache.store("ns", y, x, ("x",))
            assert cache.lookup("ns", ids, ("y",)) is None and cache.lookup("ns", y, ("x",)) is None
            cache.store("ns", y, y * 2)
            return cache.lookup("ns", y)

        return jax.jit(inner)(x), jax.vmap(inner)(x), jax.grad(lambda y: inner(y).sum())(x)

    with cache():
        jitted, mapped, slope = jax.jit(f)(X, IDS)
        assert cache["ns"] == {}
    assert jitted.tolist() == mapped.tolist() == [0.0, 2.0, 4.0, 6.0] and slope.tolist() == [2.0] * 4


@pytest.mark.parametrize("transform", ["grad", "vmap", "scan", "checkpoint", "hessian"])
def test_layers_share_structure_under_every_transformation(transform):
    made = []

    def total(x, ids):
        return (two_layers(x, ids, made) ** 2).sum()

    calls = {
        "grad": lambda x: jax.grad(total)(x, IDS),
        "vmap": lambda x: jax.vmap(lambda row, ids: two_layers(row, ids, made))(x[None], IDS[None])[0],
        "scan": lambda x: jax.lax.scan(lambda c, ids: (two_layers(c, ids, made), 0), x, IDS[None])[0],
        "checkpoint": lambda x: jax.grad(jax.checkpoint(total))(x, IDS),
        "hessian": lambda x: jnp.diag(jax.hessian(total)(x, IDS)),
    }
    want = calls[transform](X)
    assert made
    for wrap in (lambda f: f, jax.jit):
        made.clear()
        with cache():
            assert jnp.allclose(wrap(calls[transform])(X), want)
            assert all(id(IDS) in place for place in cache["layer"])  # concrete ones may stay
        assert len(made) <= 2
    assert jnp.allclose(calls[transform](X), want)


@SHARED
def test_nothing_outlives_a_trace_while_the_cache_stays_on():
    traces = []

    @cache
    def f(x, ids):
        traces.append(weakref.ref(x._trace))
        return two_layers(x, ids, [])

    with jax.checking_leaks():
        assert jax.jit(f)(X, IDS).tolist() == WANT
        jax.grad(lambda x: f(x, IDS).sum())(X)
        jax.jit(jax.grad(lambda x, ids: f(x, ids).sum()))(X, IDS)
    gc.collect()
    assert [trace() for trace in traces] == [None] * 3


def test_a_trace_that_fails_leaves_nothing():
    def f(x, ids):
        cache.store("ns", ids, x)
        raise KeyError("inside")

    with cache():
        with pytest.raises(KeyError):
            jax.jit(f)(X, IDS)
        gc.collect()
        assert cache["ns"] == {}


@SHARED
def test_symbolic_sizes_are_kept_under_traced_keys_only():
    def f(x, ids):
        n = at.shape(x)[0]
        cache.store("ns", IDS, (n,))
        assert cache.lookup("ns", IDS) is None
        cache.store("ns", ids, (n, at.segment_sum(x, ids, n)))
        return cache.lookup("ns", ids)[1]

    n = jax.export.symbolic_shape("n")[0]
    shapes = (jax.ShapeDtypeStruct((n,), X.dtype), jax.ShapeDtypeStruct((n,), IDS.dtype))
    with cache():
        exported = jax.export.export(jax.jit(f))(*shapes)
        assert cache["ns"] == {}
    assert exported.call(X, IDS).tolist() == [1.0, 2.0, 3.0, 0.0]
