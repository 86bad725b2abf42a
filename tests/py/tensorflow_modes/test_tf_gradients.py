"""Derivatives of first and second order: against finite differences in float64, and eager against graphs.

Eight rows meet four segments of which segment 1 stays empty; three rows are dropped.
"""

import functools

import numpy as np
import pytest
import tensorflow as tf

import anytensor as at

INF, NAN = np.inf, np.nan
IDS = tf.constant([2, 0, -1, 3, 2, 9, 0, 2**40])
DROPPED = [2, 5, 7]
COUNTS = tf.constant([3, 0, 4, 1])
PLACES = tf.constant([[3, -1], [0, 3]])
HOW = {"graph": {}, "xla": {"jit_compile": True}}


def rows():
    """(8, 2), positive, no two values closer than 0.04: small steps change no order."""
    order = np.random.default_rng(4).permutation(16)
    return (0.4 + 0.09 * order + 0.01 * np.sin(order)).reshape(8, 2)


def other():
    return rows()[::-1] + 0.031


def squared(op, ids, count, x):
    return finite(op(x, ids, count)) ** 2


def finite(y):
    """Without the infinities of empty segments, of which no difference can be taken."""
    return tf.where(tf.math.is_finite(y), y, tf.zeros_like(y))


def attend(x, ids, n):
    """Of one operand: its first column weighs its rows."""
    return at.segment_attention(x[:, 0], x, ids, n)


def named(op):
    """A function of rows, ids and a size."""
    return attend if op == "segment_attention" else getattr(at, op)


SEGMENT = {
    "segment_sum": lambda x: at.segment_sum(x, IDS, 4),
    "segment_max": lambda x: finite(at.segment_max(x, IDS, 4)),
    "segment_min": lambda x: finite(at.segment_min(x, IDS, 4)),
    "segment_mean": lambda x: at.segment_mean(x, IDS, 4),
    "segment_variance": lambda x: at.segment_variance(x, IDS, 4),
    "segment_normalize": lambda x: at.segment_normalize(x, IDS, 4),
    "segment_softmax": lambda x: at.segment_softmax(x, IDS, 4),
    "segment_prod": lambda x: at.segment_prod(x, IDS, 4),
    "segment_std": lambda x: at.segment_std(x, IDS, 4),
    "segment_logsumexp": lambda x: finite(at.segment_logsumexp(x, IDS, 4)),
    "segment_attention": lambda x: attend(x, IDS, 4),
    "segment_max_or_constant": lambda x: at.segment_max_or_constant(x, IDS, 4, -3.0),
    "segment_min_or_constant": lambda x: at.segment_min_or_constant(x, IDS, 4, constant=2.0),
    "partition_sum": lambda x: at.partition_sum(x, COUNTS, 8),
    "partition_max": lambda x: finite(at.partition_max(x, COUNTS, 8)),
    "partition_softmax": lambda x: at.partition_softmax(x, COUNTS, 8),
}
PLAIN = {
    "exp": lambda x: at.exp(x),
    "log": lambda x: at.log(x),
    "rsqrt": lambda x: at.rsqrt(x),
    "maximum": lambda x: at.maximum(x, other()),
    "minimum": lambda x: at.minimum(other(), x),
    "fill_nan": lambda x: at.fill_nan(x),
    "fill_nan_mask": lambda x: at.fill_nan_mask(at.where(tf.constant([True, False]), x, np.nan), 2.0)[0],
    "nan_to_num": lambda x: at.nan_to_num(at.where(tf.constant([True, False]), x, np.inf), posinf=x[0, 0]),
    "where": lambda x: at.where(tf.constant([True, False]), x, at.exp(x)),
    "clip": lambda x: at.clip(x, 0.7234, 1.3532),
    "sum": lambda x: at.sum(x, axes=(0, -1)),
    "mean": lambda x: at.mean(x, axes=[1]),
    "min": lambda x: at.min(x, axes=0),
    "max": lambda x: at.max(x),
    "prod": lambda x: at.prod(x, axes=1),
    "cumsum": lambda x: at.cumsum(x, axis=-2),
    "take": lambda x: at.take(x, PLACES),
    "take_axis": lambda x: at.take(x, tf.constant([1, 0, -1]), axis=-1),
    "repeat": lambda x: at.repeat(x, 2, axis=1),
    "repeat_by_counts": lambda x: at.repeat(x, tf.constant([2, 0, 1, 1, 3, 0, 0, 2]), axis=0),
    "repeat_total": lambda x: at.repeat(x, 2, total_repeat_length=37),
    "reshape": lambda x: at.reshape(x, (4, -1)),
    "concatenate": lambda x: at.concatenate([x, x[::-1], x], axis=1),
    "stack": lambda x: at.stack([x, x[::-1]], axis=-1),
    "transpose": lambda x: at.transpose(at.reshape(x, (-1, 2, 1)), (-1, 0, 1)),
    "split_sections": lambda x: at.split(x * x, 2)[1],
    "split_cuts": lambda x: at.split(x * x, [2, -3])[1],
    "matmul": lambda x: at.matmul(x, at.transpose(x)),
    "matmul_vectors": lambda x: at.matmul(x[:, 0], x[:, 1]),
    "matmul_vector": lambda x: at.matmul(x, x[0]),
    "full": lambda x: at.full((2, 3), at.take(at.reshape(x, -1), 4), like=x),
}
ALL = {**SEGMENT, **PLAIN}


def weights(fn, seed=11):
    """Cotangents that differ from element to element."""
    return np.random.default_rng(seed).random(fn(tf.constant(rows())).shape) * 2 - 0.7


def loss(fn, x, c):
    return tf.reduce_sum(fn(x) * c)


def slope(fn, x, c):
    """The gradient, dense: TensorFlow gives slices where rows were gathered."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loss(fn, x, c)
    return tf.convert_to_tensor(tape.gradient(y, x))


def curve(fn, x, c, d):
    """The gradient of the derivative in direction d."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(slope(fn, x, c) * d)
    grad = tape.gradient(y, x)
    return tf.zeros_like(x) if grad is None else tf.convert_to_tensor(grad)


def differences(scalar, x, step=1e-5):
    out = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        ends = []
        for sign in (1, -1):
            moved = x.copy()
            moved[place] += sign * step
            ends.append(float(scalar(tf.constant(moved))))
        out[place] = (ends[0] - ends[1]) / (2 * step)
    return out


def close(got, want, tolerance=1e-7):
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ALL)
def test_gradient_agrees_with_finite_differences(name):
    fn, x = ALL[name], rows()
    c = weights(fn)
    close(slope(fn, tf.constant(x), c), differences(lambda x: loss(fn, x, c), x))


CURVED = [*SEGMENT, "exp", "rsqrt", "prod", "maximum", "clip", "take", "max", "repeat_total"]


@pytest.mark.parametrize("name", CURVED)
def test_second_derivative_agrees_with_finite_differences(name):
    fn, x = (lambda x: ALL[name](x) ** 2), rows()
    c, d = weights(fn), np.random.default_rng(5).random((8, 2)) - 0.4
    want = differences(lambda x: tf.reduce_sum(slope(fn, x, c) * d), x)
    close(curve(fn, tf.constant(x), c, d), want, 1e-5)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("part", ["segment", "plain"])
def test_graphs_give_the_gradients_of_eager(how, part):
    names = list(SEGMENT) if part == "segment" else [name for name in PLAIN if name != "repeat_by_counts"]
    fns = [lambda x, fn=ALL[name]: fn(x) ** 2 for name in names]
    cs = [weights(fn) for fn in fns]
    d = np.random.default_rng(6).random((8, 2))

    @tf.function(**HOW[how])
    def run(x):
        return [(slope(fn, x, c), curve(fn, x, c, d)) for fn, c in zip(fns, cs, strict=True)]

    x = tf.constant(rows())
    for name, fn, c, (first, second) in zip(names, fns, cs, run(x), strict=True):
        np.testing.assert_allclose(first, slope(fn, x, c), 1e-9, 1e-9, err_msg=name)
        np.testing.assert_allclose(second, curve(fn, x, c, d), 1e-8, 1e-8, err_msg=name)


@pytest.mark.parametrize("how", HOW)
def test_graphs_of_unknown_sizes_have_gradients(how):
    spec = [tf.TensorSpec([None, 2], tf.float64), tf.TensorSpec([None], tf.int64)]
    ops = (at.segment_sum, at.segment_max, at.segment_variance, at.segment_softmax, at.segment_prod, attend)

    @tf.function(input_signature=spec, **HOW[how])
    def run(x, ids):
        out = []
        for op in ops:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(finite(op(x, ids, at.shape(x)[0])) ** 2)
            out.append(tf.convert_to_tensor(tape.gradient(y, x)))
        return out

    for count in (8, 3, 0):
        x, ids = tf.constant(rows()[:count]), IDS[:count]
        for op, got in zip(ops, run(x, ids), strict=True):
            loss = functools.partial(squared, op, ids, count)
            close(got, slope(loss, x, 1.0), 1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", SEGMENT)
def test_gradients_of_narrow_floats_have_their_dtype(name, dtype):
    fn = SEGMENT[name]
    c = weights(fn)
    want = slope(fn, tf.constant(rows()), c)
    got = slope(fn, tf.cast(rows(), dtype), tf.cast(c, fn(tf.cast(rows(), dtype)).dtype))
    assert got.dtype.name == dtype
    close(tf.cast(got, "float64"), want, 1e-5 if dtype == "float32" else 0.06)


# --- ties, dropped rows, empty segments -------------------------------------------------------------------


@pytest.mark.parametrize("value", [1.5, 0.0, -2.0, INF, -INF, 1.7976931348623157e308])
@pytest.mark.parametrize("k", [1, 2, 7])
@pytest.mark.parametrize("op", [at.segment_max, at.segment_min, at.segment_max_or_constant])
def test_ties_share_a_gradient_equally(op, k, value):
    ids = tf.constant([1] * k + [0, -1, 5])
    x = tf.constant([[value]] * k + [[0.25], [value], [value]], tf.float64)
    c = tf.constant([[3.0], [5.0]], tf.float64)
    grad = slope(lambda x: op(x, ids, 3)[:2], x, c)
    close(grad, [[5.0 / k]] * k + [[3.0], [0.0], [0.0]], 1e-14)
    with tf.GradientTape() as tape:
        tape.watch(x)
        assert op(x, ids, 3)[1, 0].numpy() == value  # exact beside its derivative


def poisoned():
    x = rows()
    x[DROPPED] = [[INF, NAN], [NAN, -INF], [-INF, INF]]
    return x


SEGMENTS = [name for name in SEGMENT if name.startswith("segment")]


@pytest.mark.parametrize("name", SEGMENTS)
def test_dropped_rows_with_inf_and_nan_get_exactly_zero(name):
    fn = SEGMENT[name]
    c, d = weights(fn), np.random.default_rng(7).random((8, 2))
    dirty, clean = tf.constant(poisoned()), tf.constant(rows())
    assert np.array_equal(fn(dirty), fn(clean))
    for derivative in (lambda x: slope(fn, x, c), lambda x: curve(fn, x, c, d)):
        got = derivative(dirty).numpy()
        assert (got[DROPPED] == 0).all()
        close(got, derivative(clean), 1e-13)


@pytest.mark.parametrize("name", SEGMENTS)
def test_nothing_but_dropped_rows_gives_zero(name):
    op = named(name)
    x, ids = tf.constant(rows()), tf.fill([8], -1)
    for rows_of in (x, x[:0]):
        grad = slope(lambda x: finite(op(x, ids[: len(x)], 3)), rows_of, 1.0)
        assert grad.shape == rows_of.shape and not grad.numpy().any()


ZERO_IDS = [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 9]  # of 0, 1, 2 and 3 zeros, and one in a dropped row
ZEROS = np.array([2.0, -3.0, 0.5, 0.0, 4.0, -0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0])[:, None]


@pytest.mark.parametrize("how", ["eager", *HOW])
def test_products_with_zeros_have_both_derivatives(how):
    c, d = np.arange(1.0, 6.0)[:, None], np.random.default_rng(9).random((12, 1)) + 0.5
    fn = lambda x: at.segment_prod(x, tf.constant(ZERO_IDS), 5)  # noqa: E731

    def run(x):
        return slope(fn, x, c), curve(fn, x, c, d)

    if how != "eager":
        run = tf.function(run, **HOW[how])
    first, second = run(tf.constant(ZEROS))
    close(first, differences(lambda x: loss(fn, x, c), ZEROS))
    close(second, differences(lambda x: tf.reduce_sum(slope(fn, x, c) * d), ZEROS))


@pytest.mark.parametrize("how", ["eager", *HOW])
def test_edges_of_logsumexp_and_std_have_finite_derivatives(how):
    ids = tf.constant([0, 0, 0, 1, 1, 3, -1])
    x = tf.constant([1.0, -INF, 2.0, -INF, -INF, 700.0, NAN], tf.float64)
    flat = tf.constant([0.5, 0.5, 0.5, 1.0, 1.0, 2.0, NAN], tf.float64)

    def run(x, flat):
        total = lambda x: at.segment_logsumexp(x, ids, 4)[:2]  # noqa: E731
        spread = lambda x: at.segment_std(x, ids, 4)  # noqa: E731
        return [
            way(fn, v)
            for fn, v in ((total, x), (spread, flat))
            for way in (lambda fn, v: slope(fn, v, 1.0), lambda fn, v: curve(fn, v, 1.0, 1.0))
        ]

    if how != "eager":
        run = tf.function(run, **HOW[how])
    grad, second, flat_grad, flat_second = (y.numpy() for y in run(x, flat))
    close(grad[:3], tf.nn.softmax(x[:3]), 1e-14)
    assert not grad[3:].any() and np.isfinite(second).all()
    assert not flat_grad.any() and np.isfinite(flat_second).all()


def test_a_persistent_tape_answers_twice():
    x = tf.constant(rows())
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = at.segment_softmax(x, IDS, 4)
        first, second = tf.reduce_sum(y[0]), tf.reduce_sum(y[:, 1] ** 2)
    for z in (first, second):
        assert tf.convert_to_tensor(tape.gradient(z, x)).shape == x.shape


@pytest.mark.parametrize("name", SEGMENT)
def test_forward_derivatives_agree_with_gradients(name):
    fn, x = SEGMENT[name], tf.constant(rows())
    c, d = weights(fn), tf.constant(np.random.default_rng(8).random((8, 2)))
    with tf.autodiff.ForwardAccumulator(x, d) as accumulator:
        y = loss(fn, x, c)
    close(accumulator.jvp(y), tf.reduce_sum(slope(fn, x, c) * d), 1e-12)


def test_long_segments_have_gradients():
    x = tf.ones([5000, 2])
    ids = tf.constant(np.arange(5000) % 2)
    run = lambda x: at.segment_sum(x, ids, 2)  # noqa: E731
    c = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    for how in (run, tf.function(run), tf.function(run, jit_compile=True)):
        assert np.array_equal(slope(how, x, c), c.numpy()[ids.numpy()])


def test_ids_and_sizes_are_not_differentiable():
    x, ids = tf.constant(rows()), tf.constant([0] * 8)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(at.segment_count(ids, 2))
    assert tape.gradient(y, x) is None
