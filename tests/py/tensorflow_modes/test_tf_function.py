"""Every function in graphs, against eager: with and without autograph, sizes known and unknown, compiled by XLA."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_calls import CALLS, array_names, difference, inputs, program, takes

import anytensor as at

HOW = {"autograph": {}, "plain": {"autograph": False}, "xla": {"jit_compile": True}}
how = pytest.mark.parametrize("how", HOW)
family = pytest.mark.parametrize("family", CALLS)


def arrays(family, rows=7, nodes=4):
    given = inputs(rows, nodes)
    return [tf.constant(given[name]) for name in array_names(family)]


def open_signature(family):
    """Any number of rows and nodes: unknown leading sizes."""
    return [
        tf.TensorSpec(x.shape if name in ("places", "one", "scale") else [None, *x.shape[1:]], x.dtype)
        for name, x in zip(array_names(family), arrays(family), strict=True)
    ]


def check(family, got, want, where):
    for k, (g, w) in enumerate(zip(got, want, strict=True)):
        text = difference(g, w)
        assert text is None, f"{family}[{k}] {where}: {text}"


def test_every_function_is_called_in_a_graph():
    names = {name for calls in CALLS.values() for call in calls for name in call.__code__.co_names}
    assert set(at._core.ops) <= names


@family
def test_no_value_is_read(family, monkeypatch):
    """Eager tensors whose doors to the host are shut. Counts in host memory are left out: they are compared with the
    total (SEMANTICS 9)."""
    calls = [call for call in CALLS[family] if "counts" not in takes(call)]
    given = {name: tf.constant(x) for name, x in inputs().items()} | {"n": 4, "total": 7}

    def read(self, *args, **kwargs):
        raise AssertionError("a value was read")

    def run():
        return [call(*[given[name] for name in takes(call)]) for call in calls]

    want = run()
    for door in ("numpy", "__array__", "_numpy", "__index__", "__int__", "__float__", "__bool__"):
        monkeypatch.setattr(type(tf.constant(0)), door, read)
    with pytest.raises(AssertionError, match="read"):
        int(tf.constant(1))
    got = run()
    monkeypatch.undo()
    check(family, got, want, "without a read")


@how
@family
def test_a_graph_of_known_sizes_gives_what_eager_gives(family, how):
    given = arrays(family)
    got = tf.function(program(family, 4, 7), **HOW[how])(*given)
    check(family, got, program(family, 4, 7)(*given), how)


@how
@family
def test_one_graph_serves_every_size(family, how):
    run = tf.function(program(family), input_signature=open_signature(family), **HOW[how])
    for rows, nodes in ((7, 4), (12, 5), (1, 3)):
        given = arrays(family, rows, nodes)
        check(family, run(*given), program(family)(*given), f"{how} of {rows} rows")
    assert run.experimental_get_tracing_count() == 1


EMPTY = [name for name in CALLS if name not in ("reductions", "layout")]


@how
@pytest.mark.parametrize("family", EMPTY)
def test_one_graph_serves_no_rows_at_all(family, how):
    run = tf.function(program(family), input_signature=open_signature(family), **HOW[how])
    given = arrays(family, 0, 3)
    check(family, run(*given), program(family)(*given), f"{how} of no rows")


@how
def test_the_number_of_segments_may_be_a_tensor(how):
    x, ids = tf.constant([1.0, 2.0, 4.0]), tf.constant([0, 2, 2])
    run = tf.function(lambda x, ids, n: at.segment_sum(x, ids, n), reduce_retracing=True, **HOW[how])
    assert run(x, ids, 3).numpy().tolist() == [1, 0, 6]
    if how != "xla":  # XLA wants sizes that it can see, here as everywhere
        for n in (2, 3, 5):
            for dtype in ("int32", "int64", "uint8"):
                got = run(x, ids, tf.constant(n, dtype)).numpy().tolist()
                assert got == [1, 0, 6, 0, 0][:n]


def test_a_size_that_the_graph_knows_is_a_number():
    seen = []

    @tf.function
    def run(x):
        seen.extend(at.shape(at.zeros(tf.constant(3) + 1, like=x)))
        return x

    run(tf.ones(2))
    assert seen == [4]


def test_an_unknown_size_is_a_scalar_tensor_and_known_ones_are_numbers():
    seen = []

    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def run(x):
        seen.extend(at.shape(x))
        return at.shape(x)[0] + 1

    assert int(run(tf.ones([5, 3]))) == 6
    assert seen[0].shape == () and seen[0].dtype == tf.int32 and seen[1] == 3


def test_an_unknown_rank_is_refused_in_words():
    @tf.function(input_signature=[tf.TensorSpec(None), tf.TensorSpec([None], tf.int32)])
    def run(x, ids):
        return at.segment_sum(x, ids, 3)

    with pytest.raises(ValueError, match="unknown rank"):
        run(tf.ones([2, 3]), tf.constant([0, 1]))


def test_lengths_that_differ_are_refused_while_tracing():
    run = tf.function(lambda x, ids: at.segment_sum(x, ids, 3))
    with pytest.raises(ValueError, match="segment_ids"):
        run(tf.ones([3, 2]), tf.constant([0, 1]))


def test_an_index_out_of_range_raises_in_a_graph_and_is_nan_or_zero_under_xla():
    for x, gap in (([1.0, 2.0], np.nan), ([1, 2], 0), ([True, True], False)):
        x = tf.constant(x)
        call = lambda x, index: at.take(x, index)  # noqa: E731
        for index in ([0, 2], [-3, 1], [0, 2**40]):
            index = tf.constant(index, tf.int64)
            with pytest.raises(tf.errors.InvalidArgumentError):
                tf.function(call)(x, index)
            got = tf.function(call, jit_compile=True)(x, index).numpy()
            inside = (index.numpy() >= -2) & (index.numpy() < 2)
            assert np.array_equal(got, np.where(inside, x.numpy()[index.numpy() % 2], gap), equal_nan=True)


def test_an_eager_index_out_of_range_is_tensorflows_error_and_an_index_error():
    for error in (IndexError, tf.errors.InvalidArgumentError):
        with pytest.raises(error, match="not in"):
            at.take(tf.ones(3), tf.constant([3]))


@how
def test_indices_of_more_axes_are_masked_in_their_place(how):
    x = np.arange(24.0).reshape(2, 3, 4)
    for axis, index in ((0, [[1, -1]]), (1, [[0], [-3]]), (2, 3), (-2, [2, 0]), (None, [[23, -24]])):
        run = tf.function(lambda x, i, axis=axis: at.take(x, i, axis), **HOW[how])
        got = run(tf.constant(x), tf.constant(index)).numpy()
        assert np.array_equal(got, np.take(x, index, axis))


@how
def test_nan_and_infinities_are_kept_in_extremes(how):
    x = np.array([np.nan, 1, -np.inf, np.inf, -np.inf, -np.inf, 2, -0.0], np.float32)
    ids = np.array([0, 0, 1, 2, 2, 3, 3, 5])
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        rows, index = tf.cast(x, dtype), tf.constant(ids)
        high = tf.function(lambda x, i: at.segment_max(x, i, 6), **HOW[how])(rows, index)
        low = tf.function(lambda x, i: at.segment_min(x, i, 6), **HOW[how])(rows, index)
        assert np.array_equal(np.float64(high), [np.nan, -np.inf, np.inf, 2, -np.inf, 0], equal_nan=True)
        assert np.array_equal(np.float64(low), [np.nan, -np.inf, -np.inf, -np.inf, np.inf, 0], equal_nan=True)


@how
def test_nan_of_either_sign_and_any_payload_wins(how):
    for bits in (0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF, 0x7FFFFFFF):
        x = tf.constant(np.array([bits, 0x3F800000], np.uint32).view(np.float32))
        for op in (at.segment_max, at.segment_min):
            got = tf.function(lambda x, op=op: op(x, tf.constant([0, 0]), 1), **HOW[how])(x)
            assert np.isnan(got.numpy()).all(), hex(bits)


@how
def test_nothing_is_retraced_as_sizes_grow(how):
    run = tf.function(
        lambda x, ids: at.segment_softmax(x, ids, at.shape(x)[0]),
        input_signature=[tf.TensorSpec([None]), tf.TensorSpec([None], tf.int64)],
        **HOW[how],
    )
    for rows in range(4):
        assert run(tf.ones(rows), tf.zeros(rows, tf.int64)).shape == (rows,)
    assert run.experimental_get_tracing_count() == 1


def test_counts_may_be_known_at_run_time_only():
    x, counts = tf.constant([1.0, 2.0, 3.0]), tf.constant([2, 0, 1])
    spec = [tf.TensorSpec([None]), tf.TensorSpec([None], tf.int32)]
    run = tf.function(lambda x, counts: at.repeat(x, counts), input_signature=spec)
    assert run(x, counts).numpy().tolist() == [1, 1, 3]
    assert run(x, tf.constant([2])).numpy().tolist() == [1, 1, 2, 2, 3, 3]  # one count for all
    assert run(x[:0], counts[:0]).shape == (0,)


@pytest.mark.parametrize("where", ["eager", *HOW])
@pytest.mark.parametrize("slots", [1, 300])
def test_long_segments_of_float32_are_added_exactly(where, slots):
    rows = 400_000
    x = np.random.default_rng(1).random((rows, 1)).astype(np.float32)
    ids = (np.arange(rows) * 7 % slots).astype(np.int32)
    want = np.bincount(ids, x[:, 0].astype(np.float64), slots)
    call = lambda x, ids: at.segment_sum(x, ids, slots)  # noqa: E731
    got = (call if where == "eager" else tf.function(call, **HOW[where]))(x, tf.constant(ids)).numpy()
    assert np.abs(got[:, 0] / want - 1).max() < 3e-7
    if where in ("autograph", "plain"):
        spec = [tf.TensorSpec([None, 1]), tf.TensorSpec([None], tf.int32)]
        got = tf.function(call, input_signature=spec)(tf.constant(x), tf.constant(ids)).numpy()
        assert np.abs(got[:, 0] / want - 1).max() < 3e-7


def test_vectorized_map_gives_what_a_loop_gives():
    x = tf.constant(np.random.default_rng(2).random((3, 6)).astype(np.float32))
    ids = tf.constant([[0, 1, 1, 2, 5, -1], [0, 0, 0, 0, 0, 0], [2, 2, 1, 1, 0, 0]])
    calls = {
        "sum": lambda a: at.segment_sum(a[0], a[1], 3),
        "max": lambda a: at.segment_max(a[0], a[1], 3),
        "softmax": lambda a: at.segment_softmax(a[0], a[1], 3),
        "take": lambda a: at.take(a[0], at.clip(a[1], -2, 2)),
        "cumsum": lambda a: at.cumsum(a[0]),
        "maximum": lambda a: at.maximum(a[0], 0.5),
    }
    for name, call in calls.items():
        want = tf.stack([call((x[k], ids[k])) for k in range(3)])
        assert difference(tf.vectorized_map(call, (x, ids)), want) is None, name
