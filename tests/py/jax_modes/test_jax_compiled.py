"""Each call eager, compiled, mapped, without compilation, exported, in loops and branches: the same results."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_calls import (
    CALLS,
    REFUSED_BY_EXPORT,
    REFUSED_BY_NUMPY,
    arrays_for,
    check,
    covered,
    eager,
    few,
    names_of,
    on_host,
    program,
)

import anytensor as at

FAMILIES = pytest.mark.parametrize("family", CALLS)
BATCH = 3


def on_jax(calls, *size):
    return [jnp.asarray(x) for x in arrays_for(calls, *size)]


def without(calls, names):
    return tuple(call for call in calls if call.name not in names)


def primitives(jaxpr, found=None):
    """Names of the primitives of a program, inner ones included."""
    found = set() if found is None else found
    for equation in jaxpr.eqns:
        found.add(equation.primitive.name)
        for value in jax.tree_util.tree_leaves(
            list(equation.params.values()), is_leaf=lambda v: hasattr(v, "eqns") or hasattr(v, "jaxpr")
        ):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                primitives(inner, found)
    return found


def test_every_public_function_is_called():
    assert set(at._core.ops) - covered() == set()


def test_facts_are_constants_of_a_program():
    def run(x, i):
        y = at.where(x > at.pi(x), at.inf(x), x * at.finfo(x).eps) - at.e(x)
        return at.astype(y, at.dtype("float16", i)), at.full(at.shape(i), at.iinfo(i).max, like=i)

    given = jnp.asarray([[1.0, 4.0]], jnp.float32), jnp.asarray([[1]], jnp.int8)
    for got in (jax.jit(run)(*given), jax.vmap(run)(*given)):
        for g, w in zip(got, run(*given), strict=True):
            assert g.dtype == w.dtype and np.array_equal(g, w)


@FAMILIES
def test_eager_results_are_those_of_numpy(family):
    """The rest of this file compares with eager JAX; this ties eager JAX to the host's kernels."""
    calls = without(CALLS[family], REFUSED_BY_NUMPY)
    check(calls, program(calls)(*on_jax(calls)), on_host(calls))


@FAMILIES
def test_jit_with_sizes_read_off_the_arrays(family):
    calls = CALLS[family]
    check(calls, jax.jit(program(calls))(*on_jax(calls)), eager(calls))


@FAMILIES
def test_jit_with_sizes_closed_over_and_numpy_arrays(family):
    calls = CALLS[family]
    check(calls, jax.jit(program(calls, 4, 6))(*arrays_for(calls)), eager(calls))


@FAMILIES
def test_jit_of_closed_over_arrays(family):
    """No operand is traced, yet the result is part of the program."""
    calls = few(CALLS[family])
    arrays, traced = on_jax(calls), []

    def run(one):
        results = program(calls)(*arrays)
        traced.extend(isinstance(y, jax.core.Tracer) for y in results)
        return [y + jnp.asarray(one, y.dtype) if y.dtype != bool else y for y in results]

    check(calls, jax.jit(run)(0), eager(calls))
    assert len(traced) == len(calls)


@FAMILIES
def test_program_has_neither_callbacks_nor_calls_of_ours(family):
    calls = CALLS[family]
    closed = jax.make_jaxpr(program(calls))(*on_jax(calls))
    outer = {equation.primitive.name for equation in closed.jaxpr.eqns}
    for equation in closed.jaxpr.eqns:  # jax.numpy's own small functions stay calls
        if equation.primitive.name in ("pjit", "jit"):
            name = equation.params["name"]
            assert name not in at._core.ops or hasattr(jnp, name), name
    assert not {name for name in primitives(closed.jaxpr) if "callback" in name}
    assert "custom_jvp_call" not in outer


@FAMILIES
def test_eval_shape(family):
    calls = CALLS[family]
    got = jax.eval_shape(program(calls), *on_jax(calls))
    for call, g, w in zip(calls, got, eager(calls), strict=True):
        assert (g.shape, g.dtype, g.weak_type) == (w.shape, w.dtype, False), call.name


def shifted(calls):
    """The arrays of the calls, BATCH times, rows moved around; runs stay sorted."""
    return [
        [
            np.roll(x, k, 0) if x.ndim > 0 and name not in ("runs", "counts") else x
            for name, x in zip(names_of(calls), arrays_for(calls), strict=True)
        ]
        for k in range(BATCH)
    ]


def stacked(each):
    return [jnp.stack([jnp.asarray(x) for x in one]) for one in zip(*each, strict=True)]


@FAMILIES
def test_vmap_over_everything(family):
    calls = CALLS[family]
    each = shifted(calls)
    got = jax.jit(jax.vmap(program(calls)))(*stacked(each))
    check(calls, got, stacked(program(calls)(*[jnp.asarray(x) for x in one]) for one in each))


@FAMILIES
def test_vmap_over_floats_beside_shared_ids(family):
    calls = few(CALLS[family], 2)
    first = on_jax(calls)
    batched = [x.ndim > 0 and jnp.issubdtype(x.dtype, jnp.floating) for x in first]
    each = [[x if b else y for x, y, b in zip(xs, first, batched, strict=True)] for xs in shifted(calls)]
    given = [x if b else y for x, y, b in zip(stacked(each), first, batched, strict=True)]
    mapped = jax.vmap(program(calls), in_axes=tuple(0 if b else None for b in batched), axis_size=BATCH)
    got = jax.jit(mapped)(*given)
    check(calls, got, stacked(program(calls)(*[jnp.asarray(x) for x in one]) for one in each))


@pytest.mark.parametrize("family", ["sum", "extremes", "means", "partition", "layout"])
def test_vmap_without_jit(family):
    calls = few(CALLS[family], 4)
    each = shifted(calls)
    got = jax.vmap(program(calls))(*stacked(each))
    check(calls, got, stacked(program(calls)(*[jnp.asarray(x) for x in one]) for one in each))


@pytest.mark.parametrize("family", ["sum", "extremes", "means", "partition"])
def test_vmap_twice_and_along_a_last_axis(family):
    calls = few(CALLS[family])
    each = stacked(shifted(calls))
    twice = [jnp.stack([x, x[::-1]], axis=-1) for x in each]
    inner = jax.vmap(program(calls), in_axes=-1, out_axes=-1)
    got = jax.jit(jax.vmap(inner))(*twice)
    want = jax.jit(jax.vmap(program(calls)))(*each)
    check(calls, [y[..., 0] for y in got], want)
    check(calls, [y[..., 1] for y in got], [y[::-1] for y in want])


@FAMILIES
def test_without_compilation(family):
    """jax.disable_jit: every primitive runs by itself, on values."""
    calls = few(CALLS[family])
    with jax.disable_jit():
        got = program(calls)(*on_jax(calls))
    check(calls, got, eager(calls))


@pytest.mark.parametrize("family", ["sum", "extremes", "means", "partition"])
def test_checkpoint(family):
    calls = CALLS[family]
    check(calls, jax.jit(jax.checkpoint(program(calls)))(*on_jax(calls)), eager(calls))


# ---- control flow
@pytest.mark.parametrize("family", ["sum", "extremes", "means", "partition"])
def test_scan(family):
    calls = few(CALLS[family], 2)
    each = shifted(calls)
    run = program(calls)
    _, got = jax.lax.scan(lambda carry, xs: (carry + 1, run(*xs)), 0, tuple(stacked(each)))
    check(calls, got, stacked(run(*[jnp.asarray(x) for x in one]) for one in each))


def test_cond_switch_and_while():
    x = jnp.array([1.0, 5.0, 2.0, 4.0])
    ids = jnp.array([0, 1, 1, -1])

    @jax.jit
    def run(x, ids, which):
        y = jax.lax.cond(
            which > 0, lambda x: at.segment_max(x, ids, 2), lambda x: at.segment_softmax(x, ids, 2)[:2], x
        )
        z = jax.lax.switch(which, [lambda: at.segment_sum(x, ids, 2), lambda: at.segment_count(ids, 2)])
        w = jax.lax.while_loop(
            lambda s: at.max(s) < 100.0,
            lambda s: at.take(at.segment_sum(s, ids, 2) * 2, at.clip(ids, 0, 1)),
            x,
        )
        return y, z, w, jax.lax.fori_loop(0, 3, lambda i, s: at.maximum(s, i), x)

    y, z, w, m = run(x, ids, 1)
    assert (y.tolist(), z.tolist(), m.tolist()) == ([1.0, 5.0], [1.0, 2.0], [2.0, 5.0, 2.0, 4.0])
    assert w.tolist() == [8.0, 112.0, 112.0, 8.0] or float(w.max()) >= 100.0
    y, z, _, _ = run(x, ids, 0)
    assert y.tolist() == [1.0, pytest.approx(1 / (1 + np.exp(-3.0)))] and z.tolist() == [1.0, 7.0]


def test_a_layer_in_a_scan_under_grad_and_jit():
    """Four steps of message passing: gradients flow through the loop."""
    senders, receivers = jnp.array([0, 1, 2, 2]), jnp.array([1, 2, 0, 7])

    def layer(h, w):
        mail = at.take(h, senders) * at.segment_softmax(at.take(h, senders)[:, 0], receivers, 3)[:, None]
        return jnp.tanh(at.segment_sum(mail, receivers, 3) * w + h), None

    def loss(ws, h, scan):
        if scan:
            h, _ = jax.lax.scan(jax.checkpoint(layer), h, ws)
        else:
            for w in ws:
                h, _ = layer(h, w)
        return (h**2).sum()

    ws, h = jnp.array([0.5, -1.0, 2.0, 0.25]), jnp.linspace(-1, 1, 6).reshape(3, 2)
    got = jax.jit(jax.grad(loss, argnums=(0, 1)), static_argnums=2)(ws, h, True)
    want = jax.jit(jax.grad(loss, argnums=(0, 1)), static_argnums=2)(ws, h, False)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, 1e-5, 1e-6)


# ---- derivatives of whole families
@pytest.mark.parametrize(
    "family", ["sum", "extremes", "means", "partition", "elementwise", "reductions", "layout"]
)
def test_forward_and_backward_derivatives_agree(family):
    """<c, J d> by jvp, linearize and vjp; one program each."""
    calls = CALLS[family]
    arrays = on_jax(calls)
    floats = [k for k, x in enumerate(arrays) if jnp.issubdtype(x.dtype, jnp.floating)]

    def values(*some):
        given = list(arrays)
        for k, x in zip(floats, some, strict=True):
            given[k] = x
        results = [y for y in program(calls)(*given) if jnp.issubdtype(y.dtype, jnp.floating)]
        return [jnp.where(jnp.isfinite(y), y, 0).astype(jnp.float32) for y in results]

    points = [jnp.where(jnp.isfinite(arrays[k]), arrays[k], 0.25) for k in floats]
    moves = [(jnp.cos(jnp.arange(x.size)).reshape(x.shape)).astype(x.dtype) for x in points]

    @jax.jit
    def both(points, moves):
        ys, forward = jax.jvp(values, points, moves)
        _, push = jax.linearize(values, *points)
        cs = [jnp.sin(1.0 + jnp.arange(y.size)).reshape(y.shape) for y in ys]
        back = jax.vjp(values, *points)[1](cs)
        dot = lambda a, b: sum((x.astype(jnp.float32) * y.astype(jnp.float32)).sum() for x, y in zip(a, b))  # noqa: E731, B905
        return dot(cs, forward), dot(cs, push(*moves)), dot(back, moves)

    forward, push, back = (float(x) for x in both(points, moves))
    assert np.isfinite([forward, push, back]).all()
    assert push == pytest.approx(forward, rel=1e-4, abs=1e-3)
    assert back == pytest.approx(forward, rel=1e-2, abs=1e-2)  # half precision is among them


# ---- export
SIZES = ((6, 4), (9, 5), (23, 11))
FIXED = ("square", "last", "scale")


def export(calls):
    rows, nodes = jax.export.symbolic_shape("e, n")
    specs = []
    for name, x in zip(names_of(calls), arrays_for(calls), strict=True):
        first = () if name in FIXED else (nodes if name in ("nodes", "counts") else rows,)
        specs.append(jax.ShapeDtypeStruct((*first, *x.shape[len(first) :]), x.dtype))
    exported = jax.export.export(jax.jit(program(calls)))(*specs)
    return jax.export.deserialize(exported.serialize())


@FAMILIES
def test_export_with_symbolic_sizes(family):
    """Sizes are dimension expressions; one program for all of them."""
    calls = without(CALLS[family], REFUSED_BY_NUMPY | REFUSED_BY_EXPORT)
    exported = export(calls)
    for size in SIZES:
        got = exported.call(*on_jax(calls, *size))
        check(calls, got, on_host(calls, *size), where=f" of {size[0]} rows", ulps=32)


def test_export_of_what_stood_aside():
    calls = [call for call in CALLS["partition"] if call.name in REFUSED_BY_NUMPY]
    exported = export(calls)
    for rows, nodes in SIZES:
        (got,) = exported.call(*on_jax(calls, rows, nodes))
        assert got.tolist() == [0, 0] + [nodes - 1] * (rows - 2) + [nodes, nodes]
    (n,) = jax.export.symbolic_shape("n")
    with pytest.raises(ValueError, match="arange"):  # JAX alone; once it can, REFUSED_BY_EXPORT goes
        jax.export.export(jax.jit(lambda x: jnp.arange(0, x.shape[0], 0.5)))(
            jax.ShapeDtypeStruct((n,), jnp.float32)
        )


def test_export_keeps_one_size_fixed():
    """num_segments is a number, the rows are not; and the other way round."""
    e, n = jax.export.symbolic_shape("e, n")
    f32, i32 = jnp.float32, jnp.int32
    spec = jax.ShapeDtypeStruct
    by_rows = jax.export.export(jax.jit(lambda x, i: at.segment_mean(x, i, 3)))(
        spec((e,), f32), spec((e,), i32)
    )
    by_nodes = jax.export.export(jax.jit(lambda x, i, y: at.segment_mean(x, i, at.shape(y)[0])))(
        spec((4,), f32), spec((4,), i32), spec((n,), f32)
    )
    x, ids = jnp.array([1.0, 2.0, 4.0, 8.0]), jnp.array([0, 2, 2, 5])
    assert by_rows.call(x, ids).tolist() == [1.0, 0.0, 3.0]
    for size in (1, 3, 7):
        assert by_nodes.call(x, ids, jnp.zeros(size)).tolist() == at.segment_mean(x, ids, size).tolist()


def test_export_of_a_gradient():
    e, n = jax.export.symbolic_shape("e, n")
    spec = jax.ShapeDtypeStruct

    def loss(x, ids, nodes):
        size = at.shape(nodes)[0]
        peak = at.segment_max_or_constant(x, ids, size)
        return (at.segment_softmax(x, ids, size) * x).sum() + (at.segment_sum(x, ids, size) * peak).sum()

    grad = jax.jit(jax.grad(loss))
    exported = jax.export.export(grad)(
        spec((e,), jnp.float32), spec((e,), jnp.int32), spec((n,), jnp.float32)
    )
    for rows, nodes in ((5, 3), (8, 2)):
        x = jnp.where(jnp.arange(rows) == 2, jnp.nan, jnp.linspace(0.0, 2.0, rows))
        ids = jnp.where(jnp.arange(rows) == 2, -1, jnp.arange(rows) % nodes)
        got = exported.call(x, ids, jnp.zeros(nodes))
        np.testing.assert_allclose(got, grad(x, ids, jnp.zeros(nodes)), 1e-6)
        assert got[2] == 0
