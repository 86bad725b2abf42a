"""Derivatives of first and second order against loops over segments written in plain jax.numpy.

Nine rows meet four segments of which two stay empty; ids point below, at and far beyond the segments.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import anytensor as at

X64 = True
inf, nan = float("inf"), float("nan")
IDS = np.array([0, 2, -1, 0, 2, 2, 4, 0, 2**40])
DROPPED = [2, 6, 8]
COUNTS = np.array([3, 0, 4, 2])
FEW = np.array([3, 0, 2, 1])  # of nine rows only six belong to a run
MASK = np.array([True, False, True, True, False, False, True, False, True])[:, None]
PLACES = np.array([3, -1, 3, 0, 0])


def rows():
    """(9, 2), positive and distinct."""
    order = np.random.default_rng(3).permutation(18)
    return jnp.asarray((0.3 + 0.1 * order).reshape(9, 2))


def poisoned(dropped=DROPPED):
    """The same with values in the dropped rows that no derivative may touch."""
    x = np.array(rows())
    x[dropped[0]], x[dropped[1]], x[dropped[2]] = inf, nan, -inf
    return jnp.asarray(x)


def weights(shape, seed=11):
    return jnp.asarray(np.random.default_rng(seed).uniform(-0.7, 1.3, shape))


def finite(y):
    """Without the infinities of empty segments."""
    return jnp.where(jnp.isfinite(y), y, 0.0)


# ---- what it should be, segment by segment
def per_segment(each, ids, n, empty=0.0):
    """f(x): each(rows of one segment) for all segments."""

    def run(x):
        groups = [np.flatnonzero(ids == s) for s in range(n)]
        blank = jnp.full(x.shape[1:], empty, x.dtype)
        return jnp.stack([each(x[jnp.asarray(g)]) if g.size else blank for g in groups])

    return run


def per_row(each, ids, n):
    """f(x): each(rows of one segment), put back in their places; 0 elsewhere."""

    def run(x):
        y = jnp.zeros_like(x)
        for s in range(n):
            group = np.flatnonzero(ids == s)
            if group.size:
                y = y.at[jnp.asarray(group)].set(each(x[jnp.asarray(group)]))
        return y

    return run


def down(op):
    return lambda g: op(g, axis=0)


def spread_ids(counts, rows=9):
    ids = np.repeat(np.arange(len(counts)), counts)
    return np.concatenate([ids, np.full(rows - len(ids), len(counts))])


def softmax(g):
    return jax.nn.softmax(g, axis=0)


def share(g):
    return g / g.sum(axis=0)


def attend(x, ids, n):
    """Of one operand: its first column weighs its rows."""
    return at.segment_attention(x[:, 0], x, ids, n) if x.ndim > 1 else at.segment_attention(x, x, ids, n)


def named(op):
    """A function of rows, ids and a size."""
    return attend if op == "segment_attention" else getattr(at, op)


def weighed(g):
    return jnp.tensordot(jax.nn.softmax(g if g.ndim == 1 else g[:, 0]), g, 1)


SEGMENT = {
    "segment_sum": (lambda x: at.segment_sum(x, IDS, 4), per_segment(down(jnp.sum), IDS, 4)),
    "segment_max": (lambda x: finite(at.segment_max(x, IDS, 4)), per_segment(down(jnp.max), IDS, 4)),
    "segment_min": (lambda x: finite(at.segment_min(x, IDS, 4)), per_segment(down(jnp.min), IDS, 4)),
    "segment_mean": (lambda x: at.segment_mean(x, IDS, 4), per_segment(down(jnp.mean), IDS, 4)),
    "segment_variance": (lambda x: at.segment_variance(x, IDS, 4), per_segment(down(jnp.var), IDS, 4)),
    "segment_normalize": (lambda x: at.segment_normalize(x, IDS, 4), per_row(share, IDS, 4)),
    "segment_softmax": (lambda x: at.segment_softmax(x, IDS, 4), per_row(softmax, IDS, 4)),
    "segment_prod": (lambda x: at.segment_prod(x, IDS, 4), per_segment(down(jnp.prod), IDS, 4, 1.0)),
    "segment_std": (lambda x: at.segment_std(x, IDS, 4), per_segment(down(jnp.std), IDS, 4)),
    "segment_logsumexp": (
        lambda x: finite(at.segment_logsumexp(x, IDS, 4)),
        per_segment(down(jax.nn.logsumexp), IDS, 4),
    ),
    "segment_attention": (lambda x: attend(x, IDS, 4), per_segment(weighed, IDS, 4)),
    "segment_max_or_constant": (
        lambda x: at.segment_max_or_constant(x, IDS, 4, -3.0),
        per_segment(down(jnp.max), IDS, 4, -3.0),
    ),
    "segment_min_or_constant": (
        lambda x: at.segment_min_or_constant(x, IDS, 4, constant=2.0),
        per_segment(down(jnp.min), IDS, 4, 2.0),
    ),
}


def partitions(counts):
    ids, n = spread_ids(counts), len(counts)
    return {
        "partition_sum": (lambda x: at.partition_sum(x, counts, 9), per_segment(down(jnp.sum), ids, n)),
        "partition_max": (
            lambda x: finite(at.partition_max(x, counts, 9)),
            per_segment(down(jnp.max), ids, n),
        ),
        "partition_min": (
            lambda x: finite(at.partition_min(x, counts, 9)),
            per_segment(down(jnp.min), ids, n),
        ),
        "partition_softmax": (lambda x: at.partition_softmax(x, counts, 9), per_row(softmax, ids, n)),
    }


PARTITION = partitions(COUNTS)
SHORT = {f"{name}_tail": both for name, both in partitions(FEW).items()}
BENT = np.array([[0.0, 1.0]])  # added to rows, so that two operands differ
PLAIN = {
    "exp": (at.exp, jnp.exp),
    "log": (at.log, jnp.log),
    "sqrt": (at.sqrt, jnp.sqrt),
    "rsqrt": (at.rsqrt, lambda x: 1 / jnp.sqrt(x)),
    "maximum": (lambda x: at.maximum(x, x[::-1] * BENT), lambda x: jnp.maximum(x, x[::-1] * BENT)),
    "minimum": (lambda x: at.minimum(x * x, x + 0.33), lambda x: jnp.minimum(x * x, x + 0.33)),
    "maximum_scalar": (lambda x: at.maximum(x, 1.25), lambda x: jnp.maximum(x, 1.25)),
    "fill_nan": (
        lambda x: at.fill_nan(at.where(MASK, x, nan), 2.0),
        lambda x: jnp.where(MASK, x, 2.0),
    ),
    "fill_nan_mask": (
        lambda x: at.fill_nan_mask(at.where(MASK, x, nan), 2.0)[0],
        lambda x: jnp.where(MASK, x, 2.0),
    ),
    "nan_to_num": (
        lambda x: at.nan_to_num(at.where(MASK, x, -jnp.inf), neginf=x[0, 0]),
        lambda x: jnp.where(MASK, x, x[0, 0]),
    ),
    "where": (lambda x: at.where(MASK, x, at.exp(x)), lambda x: jnp.where(MASK, x, jnp.exp(x))),
    "clip": (lambda x: at.clip(x, 0.75, 1.55), lambda x: jnp.clip(x, 0.75, 1.55)),
    "clip_by_arrays": (lambda x: at.clip(x, min=x * x), lambda x: jnp.maximum(x, x * x)),
    "sum": (lambda x: at.sum(x, axes=(0, -1)), jnp.sum),
    "mean": (lambda x: at.mean(x, axes=[1], keepdims=True), lambda x: x.mean(1, keepdims=True)),
    "min": (lambda x: at.min(x, axes=0), lambda x: x.min(0)),
    "max": (lambda x: at.max(x), lambda x: x.max()),
    "prod": (lambda x: at.prod(x, axes=1), lambda x: x[:, 0] * x[:, 1]),
    "cumsum": (lambda x: at.cumsum(x, axis=-2), lambda x: jnp.cumsum(x, 0)),
    "take": (lambda x: at.take(x, PLACES), lambda x: jnp.stack([x[int(p)] for p in PLACES])),
    "take_axis": (lambda x: at.take(x, np.array([[1, -2]]), axis=-1), lambda x: x[:, None, ::-1]),
    "repeat": (lambda x: at.repeat(x, 2, axis=1), lambda x: jnp.repeat(x, 2, axis=1)),
    "repeat_total": (
        lambda x: at.repeat(x, 2, total_repeat_length=41),
        lambda x: jnp.concatenate([jnp.repeat(x.ravel(), 2), jnp.full(5, x[-1, -1])]),
    ),
    "repeat_counts": (
        lambda x: at.repeat(x[:4, 0], COUNTS, total_repeat_length=8),
        lambda x: x[jnp.array([0, 0, 0, 2, 2, 2, 2, 3]), 0],
    ),
    "reshape": (lambda x: at.reshape(x, (2, -1)), lambda x: x.reshape(2, 9)),
    "stack": (lambda x: at.stack([x, x * x], -1), lambda x: jnp.stack([x, x * x], -1)),
    "transpose": (lambda x: at.transpose(x), lambda x: x.T),
    "split_sections": (lambda x: at.split(x * x, 3)[1], lambda x: (x * x)[3:6]),
    "split_cuts": (lambda x: at.split(x * x, [2, -3])[1], lambda x: (x * x)[2:-3]),
    "matmul": (lambda x: at.matmul(x, at.transpose(x)), lambda x: x @ x.T),
    "matmul_vectors": (lambda x: at.matmul(x[:, 0], x[:, 1]), lambda x: (x[:, 0] * x[:, 1]).sum()),
    "cast": (lambda x: at.cast(x, "float64"), lambda x: x),
    "concatenate": (lambda x: at.concatenate([x, x * x]), lambda x: jnp.concatenate([x, x * x])),
    "astype": (lambda x: at.astype(x, "float64"), lambda x: x),
    "full": (lambda x: at.full((2, 3), x[4, 1], like=x), lambda x: jnp.full((2, 3), x[4, 1])),
    "full_like": (lambda x: at.full_like(x, at.sum(x)), lambda x: jnp.zeros((9, 2)) + x.sum()),
}
GROUPS = {"segment": SEGMENT, "partition": PARTITION, "tail": SHORT, "plain": PLAIN}


def loss(fn):
    """A scalar whose cotangents differ from element to element."""

    def run(x):
        y = fn(x)
        return (y * weights(y.shape)).sum()

    return run


def orders(fn):
    """x -> value, gradient, Hessian times a vector backward over backward and forward over backward."""
    along = weights((9, 2), seed=5)
    grad = jax.grad(loss(fn))

    def run(x):
        twice = jax.grad(lambda x: (grad(x) * along).sum())(x)
        return fn(x), grad(x), twice, jax.jvp(grad, (x,), (along,))[1]

    return run


def all_orders(fns):
    return jax.jit(lambda x: {name: orders(fn)(x) for name, fn in fns.items()})


def close(got, want, tolerance=1e-12, name=""):
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), tolerance, tolerance, err_msg=name)


def ours(group):
    return {name: fn for name, (fn, _) in GROUPS[group].items()}


_plain = {}


def wanted(group):
    if group not in _plain:
        _plain[group] = all_orders({name: fn for name, (_, fn) in GROUPS[group].items()})(rows())
    return _plain[group]


@pytest.mark.parametrize("group", GROUPS)
def test_derivatives_of_both_orders(group):
    got = all_orders(ours(group))(rows())
    for name, results in got.items():
        for k, (g, w) in enumerate(zip(results, wanted(group)[name], strict=True)):
            close(g, w, name=f"{name}, {('value', 'gradient', 'reverse', 'forward')[k]}")


@pytest.mark.parametrize("group", ["segment", "partition"])
def test_gradients_without_jit(group):
    for name, fn in ours(group).items():
        close(jax.grad(loss(fn))(rows()), wanted(group)[name][1], name=name)


def test_gradients_of_vectors():
    x = rows()[:, 0]
    got = jax.jit(lambda x: {name: jax.grad(loss(fn))(x) for name, (fn, _) in SEGMENT.items()})(x)
    want = jax.jit(lambda x: {name: jax.grad(loss(fn))(x) for name, (_, fn) in SEGMENT.items()})(x)
    for name in SEGMENT:
        close(got[name], want[name], name=name)


@pytest.mark.parametrize("name", ["segment_softmax", "segment_variance", "segment_normalize", "segment_max"])
def test_jacobians_and_hessians(name):
    fn, plain = SEGMENT[name]
    x = rows()[:6, :1]

    def cut(f):
        return lambda x: f(jnp.concatenate([x, rows()[6:, :1]]))

    fn, plain = cut(fn), cut(plain)
    want = jax.jit(lambda x: (jax.jacrev(plain)(x), jax.hessian(loss(plain))(x)))(x)
    got = jax.jit(
        lambda x: (
            jax.jacrev(fn)(x),
            jax.jacfwd(fn)(x),
            jax.hessian(loss(fn))(x),
            jax.jacrev(jax.jacrev(loss(fn)))(x),
        )
    )(x)
    for g, w in zip(got, (want[0], want[0], want[1], want[1]), strict=True):
        close(g, w)


# ---- dropped rows
CURVED = ("softmax", "variance", "max")
WAYS = {
    "grad": lambda f: jax.grad(f),
    "grad of jit": lambda f: jax.grad(jax.jit(f)),
    "jit of grad": lambda f: jax.jit(jax.grad(f)),
    "vmap of grad": lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.stack([x, x]))[1],
    "grad of vmap": lambda f: lambda x: jax.grad(lambda xs: jax.vmap(f)(xs).sum())(x[None])[0],
    "checkpoint": lambda f: jax.jit(jax.grad(jax.checkpoint(f))),
    "jacfwd": lambda f: jax.jit(jax.jacfwd(f)),
    "vjp of linearize": lambda f: lambda x: jax.linear_transpose(jax.linearize(f, x)[1], x)(1.0)[0],
}


EAGER_WAYS = {
    "grad",
    "vmap of grad",
    "grad of vmap",
    "vjp of linearize",
}  # one compilation per step: fewer of them


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("group", ["segment", "tail"])
def test_dropped_rows_with_inf_and_nan_get_exactly_zero(group, way):
    dropped = DROPPED if group == "segment" else [6, 7, 8]
    names = [name for name in GROUPS[group] if way not in EAGER_WAYS or name.split("_")[1] in CURVED]
    got = np.asarray(
        WAYS[way](lambda x: sum(loss(ours(group)[name])(x) for name in names))(poisoned(dropped))
    )
    assert (got[dropped] == 0).all()
    close(got, sum(np.asarray(wanted(group)[name][1]) for name in names))


@pytest.mark.parametrize("group", ["segment", "tail"])
def test_dropped_rows_stay_out_of_both_orders(group):
    dropped = DROPPED if group == "segment" else [6, 7, 8]
    for name, (value, *derivatives) in all_orders(ours(group))(poisoned(dropped)).items():
        close(value, wanted(group)[name][0], name=name)
        for g, w in zip(derivatives, wanted(group)[name][1:], strict=True):
            assert (np.asarray(g)[dropped] == 0).all(), name
            close(g, w, name=name)


def test_dropped_rows_stay_out_of_forward_derivatives():
    along = weights((9, 2), seed=6)
    both = jax.jit(lambda x: {name: jax.jvp(fn, (x,), (along,)) for name, fn in ours("segment").items()})
    got, want = both(poisoned()), both(rows())
    for name in SEGMENT:
        for g, w in zip(got[name], want[name], strict=True):
            close(g, w, 0, name)


def test_eager_calls_do_not_spoil_later_gradients():
    """Where no derivative can be taken the formula is shorter; its compiled form must not serve gradients."""
    x = poisoned()
    for _ in range(2):
        for name in ("segment_softmax", "segment_variance", "segment_normalize", "segment_max"):
            fn = SEGMENT[name][0]
            close(fn(x), wanted("segment")[name][0], name=name)
            close(jax.grad(loss(fn))(x), wanted("segment")[name][1], name=name)


ZERO_IDS = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 9])  # of 0, 1, 2 and 3 zeros, and one in a dropped row
ZEROS = np.array([2.0, -3.0, 0.5, 0.0, 4.0, -0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("way", ["grad", "jit of grad", "grad of vmap"])
def test_products_with_zeros_have_both_derivatives(way):
    x = jnp.stack([ZEROS, ZEROS[::-1] + 1.5], 1)
    both = (lambda x: at.segment_prod(x, ZERO_IDS, 5), per_segment(down(jnp.prod), ZERO_IDS, 5, 1.0))
    along = weights((12, 2), seed=8)

    def orders(fn):
        def first(x):
            return WAYS[way](loss(fn))(x) if way in WAYS else jax.grad(loss(jax.vmap(fn, 1, 1)))(x)

        return fn(x), first(x), jax.grad(lambda x: (first(x) * along).sum())(x)

    for got, want in zip(*map(orders, both), strict=True):
        close(got, want)


def test_edges_of_logsumexp_and_std_have_finite_derivatives():
    ids = np.array([0, 0, 0, 1, 1, 3, -1])
    x = jnp.array([1.0, -inf, 2.0, -inf, -inf, 700.0, nan])
    flat = jnp.array([0.5, 0.5, 0.5, 1.0, 1.0, 2.0, nan])
    total = jax.grad(lambda x: at.segment_logsumexp(x, ids, 4)[:2].sum())
    spread = jax.grad(lambda x: at.segment_std(x, ids, 4).sum())
    grad = np.asarray(total(x))
    close(grad[:3], jax.nn.softmax(x[:3]))
    assert not grad[3:].any() and not np.asarray(spread(flat)).any()
    for fn, v in ((total, x), (spread, flat)):
        assert np.isfinite(jax.jit(jax.grad(lambda v, fn=fn: fn(v).sum()))(v)).all()


def test_gradients_of_attention_reach_logits_and_values():
    logits, values = rows(), jnp.stack([rows(), rows()[::-1], rows() * 2], 2)
    dirty = (poisoned(), values.at[np.array(DROPPED)].set(nan))

    def plain(a, v):
        groups = [jnp.asarray(np.flatnonzero(IDS == s)) for s in range(4)]
        return jnp.stack([(softmax(a[g])[..., None] * v[g]).sum(0) for g in groups])

    def slopes(fn):
        return jax.grad(lambda a, v: (fn(a, v) * weights((4, 2, 3))).sum(), (0, 1))

    want = jax.jit(slopes(plain))(logits, values)
    for got, w in zip(slopes(lambda a, v: at.segment_attention(a, v, IDS, 4))(*dirty), want, strict=True):
        assert (np.asarray(got)[DROPPED] == 0).all()
        close(got, w)


def test_all_rows_dropped_and_no_rows_at_all():
    ids = np.full(9, -1)
    ops = [op for op in SEGMENT if op not in ("segment_max_or_constant", "segment_min_or_constant")]
    grad = jax.jit(
        lambda x: [jax.grad(lambda x, op=op: finite(named(op)(x, ids[: len(x)], 4)).sum())(x) for op in ops]
    )
    for got in grad(poisoned()):
        assert (np.asarray(got) == 0).all()
    for got in grad(jnp.zeros((0, 2))):
        assert got.shape == (0, 2)


def test_empty_segments_give_no_nan():
    """Also where the cotangent of an empty segment is large."""
    fns = {
        name: fn for name, fn in ours("segment").items() if name.split("_")[1] not in ("normalize", "softmax")
    }
    grads = jax.jit(
        lambda x: {name: jax.grad(lambda x, f=f: (f(x) * 1e30).sum())(x) for name, f in fns.items()}
    )
    for name, grad in grads(rows()).items():
        assert np.isfinite(np.asarray(grad)).all(), name
        assert (np.asarray(grad)[DROPPED] == 0).all(), name
    raw = jax.grad(lambda x: at.segment_max(x, IDS, 4).sum())(rows())  # -inf of the empty ones included
    assert np.isfinite(np.asarray(raw)).all()


# ---- ties
@pytest.mark.parametrize("k", [1, 2, 5])
def test_ties_share_a_gradient_equally(k):
    """All k rows of segment 1 reach the extreme; the value that an empty segment starts from is no row."""
    ids = np.array([1] * k + [0, -1, 5])
    tops = jnp.array([1.5, 0.0, -2.0, inf, -inf, 1.7976931348623157e308, 2.3e-308])
    ops = (at.segment_max, at.segment_min, at.segment_max_or_constant, at.segment_min_or_constant)

    def run(top):
        x = jnp.concatenate([jnp.full(k, top), jnp.array([0.25]), jnp.full(2, top)])
        pick = lambda op: lambda x: op(x, ids, 3)[:2] * jnp.array([3.0, 5.0])  # noqa: E731
        return [(op(x, ids, 3)[1], jax.vjp(pick(op), x)[1](jnp.ones(2))[0]) for op in ops]

    for value, grad in jax.jit(jax.vmap(run))(tops):
        assert np.array_equal(value, tops)  # exact beside its derivative
        close(grad, np.broadcast_to([5.0 / k] * k + [3.0, 0.0, 0.0], grad.shape), 1e-14)


def test_partial_ties_share_by_column():
    up = jnp.array([[3.0, 1.0], [3.0, 2.0], [1.0, 2.0], [-inf, 2.0]])
    c = jnp.array([[6.0, 12.0]])
    want = [[3.0, 0.0], [3.0, 4.0], [0.0, 4.0], [0.0, 4.0]]
    zeros, whole = np.zeros(4, int), np.array([4])
    assert jax.grad(lambda x: (at.segment_max(x, zeros, 1) * c).sum())(up).tolist() == want
    assert jax.grad(lambda x: (at.segment_min(x, zeros, 1) * c).sum())(-up).tolist() == want
    assert jax.grad(lambda x: (at.partition_max(x, whole, 4) * c).sum())(up).tolist() == want
    assert jax.jit(jax.grad(lambda x: (at.partition_min(x, whole, 4) * c).sum()))(-up).tolist() == want


def test_ties_have_no_second_derivative():
    x = jnp.full((3, 2), 1.5)
    hessian = jax.jit(jax.hessian(lambda x: (at.segment_max(x, np.zeros(3, int), 1) ** 2).sum()))(x)
    same = np.broadcast_to(np.eye(2).reshape(1, 2, 1, 2), (3, 2, 3, 2))
    close(hessian, same * 2 / 9)  # of the square alone


def test_ties_outside_segments_are_jaxs_own():
    x, c = jnp.array([1.5, 2.0, 1.5]), jnp.array([2.0, 4.0, 6.0])
    for one, plain in ((at.maximum, jnp.maximum), (at.minimum, jnp.minimum)):
        got, want = (
            jax.grad(lambda x, y, op=op: (op(x, y) * c).sum(), argnums=(0, 1))(x, x) for op in (one, plain)
        )
        assert [g.tolist() for g in got] == [g.tolist() for g in want]
    assert jax.grad(lambda x: at.max(x))(jnp.array([1.0, 2.0, 2.0])).tolist() == [0.0, 0.5, 0.5]
    assert jax.grad(lambda x: at.sum(at.clip(x, 0.0, 1.0)))(jnp.array([-1.0, 0.5, 3.0])).tolist() == [0, 1, 0]
    ends = jnp.array([0.0, 1.0])
    got, want = (jax.grad(lambda x, f=f: f(x, 0.0, 1.0).sum())(ends) for f in (at.clip, jnp.clip))
    assert got.tolist() == want.tolist()


# ---- single formulas
def test_variance_of_single_rows_is_flat():
    ids = np.array([3, 0, 1, -1, 7, 9, 9, 9, 9])
    grad = jax.jit(jax.grad(loss(lambda x: at.segment_variance(x, ids, 5))))(rows())
    assert (np.asarray(grad) == 0).all()


def test_normalize_of_a_zero_sum_is_zero_and_flat():
    ids = np.array([0, 0, 1, 1])
    x, c = jnp.array([1.0, -1.0, 2.0, 6.0]), jnp.array([1.0, 2.0, 3.0, 5.0])
    grad = jax.grad(lambda x: (at.segment_normalize(x, ids, 3) * c).sum())
    assert at.segment_normalize(x, ids, 3).tolist() == [0.0, 0.0, 0.25, 0.75]
    close(grad(x), [0, 0, (3 * 6 - 5 * 6) / 64, (5 * 2 - 3 * 2) / 64])
    twice = np.asarray(jax.jit(jax.grad(lambda x: (grad(x) * c).sum()))(x))
    assert (twice[:2] == 0).all() and np.isfinite(twice).all()


def test_softmax_with_masked_logits_has_a_finite_gradient():
    ids = np.array([0, 0, 0, 1, 1])
    x, c = jnp.array([1.0, -inf, 2.0, -inf, 0.5]), jnp.array([1.0, 2.0, 3.0, 4.0, 5.0])
    got = jax.grad(lambda x: (at.segment_softmax(x, ids, 2) * c).sum())(x)
    p = np.exp([1.0, 2.0]) / np.exp([1.0, 2.0]).sum()
    mean = (p * [1.0, 3.0]).sum()
    close(got, [p[0] * (1 - mean), 0, p[1] * (3 - mean), 0, 0])


def test_nan_in_one_segment_leaves_the_gradient_of_others_finite():
    x = rows().at[1, 0].set(nan)
    elsewhere = np.array([k not in (1, 4, 5) for k in range(9)])
    names = ("segment_max", "segment_min", "segment_sum", "segment_mean", "segment_softmax")
    got = jax.jit(lambda x: {name: jax.grad(loss(SEGMENT[name][0]))(x) for name in names})(x)
    for name in names:
        want = np.asarray(wanted("segment")[name][1])
        close(np.asarray(got[name])[elsewhere], want[elsewhere], name=name)
        close(got[name][:, 1], want[:, 1], name=name)


def test_gradient_reaches_a_constant_given_as_an_array():
    def total(x, k):
        return at.segment_max_or_constant(x, IDS, 4, k).sum()

    assert jax.grad(total, argnums=1)(rows(), jnp.array(2.0)) == 4  # two empty segments of two columns
    by_column = jax.jit(jax.grad(total, argnums=1))(rows(), jnp.array([2.0, 3.0]))
    assert by_column.tolist() == [2.0, 2.0]


def test_take_adds_up_repeated_indices_and_leaves_out_others():
    x = jnp.array([1.0, 2.0, 3.0])
    where = np.array([2, -1, 0, 2, 7, -4])
    grad = jax.grad(lambda x: jnp.nansum(at.take(x, where) * jnp.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])))
    assert grad(x).tolist() == [4.0, 0.0, 11.0]
    assert jax.jit(grad)(x).tolist() == [4.0, 0.0, 11.0]


def test_linear_functions_can_be_transposed():
    c = weights((4, 2))
    for op, scale in ((at.segment_sum, [1.0] * 9), (at.segment_mean, [1 / 3] * 9)):
        (got,) = jax.linear_transpose(lambda x, op=op: op(x, IDS, 4), rows())(c)
        want = [c[i] * s if 0 <= i < 4 else c[0] * 0 for i, s in zip(IDS, scale, strict=True)]
        close(got, jnp.stack(want))


def test_an_exported_program_holds_its_gradient():
    spec = jax.ShapeDtypeStruct((9, 2), jnp.float64)
    fn = jax.jit(SEGMENT["segment_softmax"][0])
    exported = jax.export.deserialize(jax.export.export(fn)(spec).serialize(vjp_order=1))
    close(jax.grad(loss(exported.call))(poisoned()), wanted("segment")["segment_softmax"][1])


@jax.jit
def gradients_in_its_own_dtype(x):
    def scalar(fn):
        return lambda x: (fn(x) * weights(fn(x).shape).astype(x.dtype)).sum()

    return {name: jax.grad(scalar(fn))(x) for name, fn in ours("segment").items()}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_gradients_keep_the_dtype(dtype):
    x = rows().astype(dtype)
    want = gradients_in_its_own_dtype(x.astype("float64"))
    for name, got in gradients_in_its_own_dtype(x).items():
        assert got.dtype == dtype, name
        close(got.astype("float64"), want[name], 1e-5 if dtype == "float32" else 4e-2, name)


# ---- what has no derivative
def test_integers_ids_and_sizes_are_not_differentiable():
    x, ids = jnp.array([1.0, 2.0, 4.0]), jnp.array([0, 1, 0])
    with pytest.raises(TypeError, match="real- or complex-valued inputs"):
        jax.grad(lambda i: at.segment_sum(x, i, 2).sum())(ids)
    with pytest.raises(TypeError, match="real- or complex-valued inputs"):
        jax.grad(lambda w: at.mean(w))(ids)
    _, pull = jax.vjp(lambda x, i: at.segment_softmax(x, i, 2), x, ids)
    to_x, to_ids = pull(jnp.ones(3))
    assert to_x.shape == (3,) and to_ids.dtype == jax.dtypes.float0
    _, pull = jax.vjp(lambda c: at.partition_sum(x, c, 3), jnp.array([2, 1]))
    assert pull(jnp.ones(2))[0].dtype == jax.dtypes.float0
    whole = jax.grad(lambda x: at.sum(at.astype(at.astype(x, "int32"), "float32")))(x)
    assert whole.tolist() == [0.0, 0.0, 0.0]
    counted = jax.grad(lambda x: at.sum(at.segment_count(at.astype(x, "int32"), 3)))(x)
    assert counted.tolist() == [0.0, 0.0, 0.0]


def test_integer_data_beside_a_gradient():
    """mean of integers is a float; only the float operand has a derivative."""
    whole = jnp.array([1, 2, 3])
    got = jax.grad(lambda s: (at.segment_mean(whole, np.array([0, 0, 1]), 2) * s).sum())(2.0)
    assert got == 4.5
