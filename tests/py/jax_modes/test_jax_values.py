"""Long float32 segments, and NaN and infinities in extremes, eager and compiled."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import anytensor as at

inf, nan = float("inf"), float("nan")
MILLION = 10**6
WAYS = pytest.mark.parametrize("way", [lambda f: f, jax.jit], ids=["eager", "jit"])


@pytest.fixture(scope="module")
def long():
    """A million positive rows of width 2 in float32, their float64 sums, and ids of three segments."""
    x = np.random.default_rng(0).uniform(0.5, 1.5, (MILLION, 2)).astype(np.float32)
    ids = (np.arange(MILLION) * 2654435761 % 3).astype(np.int32)
    return x, ids


def relative(got, want):
    return float(np.max(np.abs(np.asarray(got, np.float64) - want) / np.abs(want)))


@WAYS
@pytest.mark.parametrize("segments", [1, 3])
def test_long_segments_are_added_to_within_1e_6(long, way, segments):
    x, ids = long
    ids = ids % segments
    x, wide = (x[:, 0], x[:, 0].astype(np.float64)) if segments == 1 else (x, x.astype(np.float64))
    groups = [wide[ids == s] for s in range(segments)]

    def run(x, ids):
        return (
            at.segment_sum(x, ids, segments),
            at.segment_mean(x, ids, segments),
            at.segment_variance(x, ids, segments),
            at.segment_softmax(x, ids, segments),
            at.segment_normalize(x, ids, segments),
        )

    total, mean, variance, softmax, normalize = way(run)(jnp.asarray(x), jnp.asarray(ids))
    assert all(y.dtype == np.float32 for y in (total, mean, variance, softmax, normalize))
    assert relative(total, np.stack([g.sum(0) for g in groups])) < 1e-6
    assert relative(mean, np.stack([g.mean(0) for g in groups])) < 1e-6
    assert relative(variance, np.stack([g.var(0) for g in groups])) < 1e-6
    for y in (softmax, normalize):
        y = np.asarray(y, np.float64)
        assert relative(np.stack([y[ids == s].sum(0) for s in range(segments)]), 1.0) < 1e-6


@WAYS
def test_long_segments_under_grad(long, way):
    """What a derivative adds up over a segment is added as carefully."""
    x, ids = long
    wide = x.astype(np.float64)
    c = np.array([[1.0, 2.0], [3.0, 5.0], [0.5, 0.25]], np.float32)
    groups = [ids == s for s in range(3)]

    def loss(x, ids):
        return at.sum(at.segment_mean(x, ids, 3) * c), at.segment_sum(x, ids, 3)

    (value, total), grad = way(jax.value_and_grad(loss, has_aux=True))(jnp.asarray(x), jnp.asarray(ids))
    sums = np.stack([wide[g].sum(0) for g in groups])
    counts = np.array([g.sum() for g in groups])[:, None]
    assert relative(value, (sums / counts * c).sum()) < 1e-6
    assert relative(total, sums) < 1e-6
    assert relative(grad, (c / counts)[ids]) < 1e-6
    # d/dx of sum(normalize * w): w / S - sum(w x) / S^2, in which a sum over the segment stands
    w = np.where(np.arange(MILLION) % 2 == 0, 1.0, 3.0).astype(np.float32)[:, None]
    grad = jax.grad(lambda x, ids: at.sum(at.segment_normalize(x, ids, 3) * w))
    got = way(grad)(jnp.asarray(x), jnp.asarray(ids))
    weighted = np.stack([(wide[g] * w[g]).sum(0) for g in groups])
    want = w / sums[ids] - (weighted / sums**2)[ids]
    assert float(np.abs(np.asarray(got) - want).max() * sums.max()) < 4e-6


def test_a_long_segment_of_equal_rows_beside_dropped_ones():
    """Rounding goes one way at each step; derivatives that sum over the segment are as exact."""
    ids = np.where(np.arange(MILLION) % 4 == 0, -1, 0).astype(np.int32)
    x = jnp.full(MILLION, 0.1, jnp.float32)
    tenth, count = float(np.float32(0.1)), int((ids == 0).sum())
    assert relative(at.segment_sum(x, ids, 1), tenth * count) < 1e-6
    c = np.where(np.arange(MILLION) % 4 == 1, np.float32(0.3), np.float32(0.0))
    third = float(np.float32(0.3))
    grad = jax.jit(jax.grad(lambda x, ids: at.sum(at.segment_normalize(x, ids, 1) * c)))
    got = np.asarray(grad(x, jnp.asarray(ids)), np.float64)
    spread = third * (c > 0).sum() * tenth / (tenth * count) ** 2  # sum(c x) / S^2
    assert (got[ids < 0] == 0).all()
    assert relative(got[(ids == 0) & (c == 0)], -spread) < 3e-6


def test_long_partitions(long):
    x, _ = long
    counts = np.array([600_000, 0, 400_000], np.int32)
    got = at.partition_sum(jnp.asarray(x), counts, MILLION)
    wide = x.astype(np.float64)
    want = np.stack([wide[:600_000].sum(0), wide[600_000:].sum(0)])
    assert relative(np.asarray(got)[[0, 2]], want) < 1e-6 and (np.asarray(got)[1] == 0).all()


# ---- NaN and infinities
IDS = np.array([0, 0, 1, 1, 2, 2, -1, 5], np.int32)
LEAST = float(np.finfo(np.float32).min)
CASES = {
    "nan": ([1.0, nan, 2.0, 3.0, nan, nan, nan, nan], [nan, 3.0, nan], [nan, 2.0, nan]),
    "nan last": ([nan, 1.0, 3.0, nan, 0.0, -1.0, 9.0, 9.0], [nan, nan, 0.0], [nan, nan, -1.0]),
    "-nan": ([1.0, -nan, 2.0, 3.0, -nan, 5.0, 0.0, 0.0], [nan, 3.0, nan], [nan, 2.0, nan]),
    "inf": ([inf, 1.0, -inf, 2.0, -inf, -inf, inf, -inf], [inf, 2.0, -inf], [1.0, -inf, -inf]),
    "both": ([inf, nan, -inf, nan, inf, -inf, 0.0, 0.0], [nan, nan, inf], [nan, nan, -inf]),
    "full": (
        [inf, inf, -inf, -inf, LEAST, LEAST, 0, 0],
        [inf, -inf, LEAST],
        [inf, -inf, LEAST],
    ),
}


@WAYS
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_nan_and_infinities_in_extremes(name, dtype, way):
    with np.errstate(over="ignore"):
        values, most, least = (np.array(v, np.float32).astype(jnp.dtype(dtype)) for v in CASES[name])

    def run(x):
        return (
            at.segment_max(x, IDS, 4),
            at.segment_min(x, IDS, 4),
            at.segment_max_or_constant(x, IDS, 4, 7.0),
            at.segment_min_or_constant(x, IDS, 4, 7.0),
            at.max(x[:2]),
            at.min(x[:2]),
            at.maximum(x[0], x[1]),
        )

    got = [np.asarray(y).astype(np.float64) for y in way(run)(jnp.asarray(values))]
    most, least = most.astype(np.float64), least.astype(np.float64)
    np.testing.assert_array_equal(got[0], [*most, -inf])
    np.testing.assert_array_equal(got[1], [*least, inf])
    np.testing.assert_array_equal(got[2], [*most, 7.0])
    np.testing.assert_array_equal(got[3], [*least, 7.0])
    for y, want in zip(got[4:], (most[0], least[0], most[0]), strict=True):
        np.testing.assert_array_equal(y, want)


@WAYS
def test_nan_spoils_its_own_segment_and_column_only(way):
    x = np.array([[nan, 1.0], [2.0, 3.0], [4.0, nan], [5.0, 6.0]], np.float32)
    ids = np.array([0, 0, 1, 2])

    def run(x):
        return [
            op(x, ids, 4) for op in (at.segment_sum, at.segment_mean, at.segment_variance, at.segment_max)
        ]

    for y in way(run)(jnp.asarray(x)):
        assert np.isnan(y).tolist() == [[True, False], [False, True], [False, False], [False, False]]
    shares = way(lambda x: at.segment_softmax(x, ids, 4))(jnp.asarray(x))
    assert np.isnan(shares).tolist() == [[True, False], [True, False], [False, True], [False, False]]


@WAYS
def test_softmax_of_infinities(way):
    x = jnp.array([-inf, -inf, 1.0, -inf, inf, 2.0, 3.0, nan])
    ids = np.array([0, 0, 1, 1, 2, 2, 3, 9])
    got = way(lambda x: at.segment_softmax(x, ids, 4))(x)
    np.testing.assert_array_equal(got, [nan, nan, 1.0, 0.0, nan, nan, 1.0, 0.0])


@WAYS
def test_closed_over_arrays_are_traced_with_the_function(way):
    x, ids = jnp.array([1.0, 2.0, 4.0]), jnp.array([0, 1, 1])
    seen = []

    def run(shift):
        total = at.segment_sum(x, ids, 2)
        seen.append(isinstance(total, jax.core.Tracer))
        return total + shift

    assert way(run)(1.0).tolist() == [2.0, 7.0]
    assert seen == [way is jax.jit]
