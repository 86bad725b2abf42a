"""The library's own ops inside TensorFlow: eager calls take them, nothing else does, and both ways agree.

`ran` lists the ops that TensorFlow ran or put into a graph, as TensorFlow itself tells it. The formula of a function
runs without our ops: `formula("segment_sum")(x, ids, n)`.
"""

import functools
import subprocess
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf
from frameworks import installed
from tensorflow.python.framework import op_callbacks
from tensorflow_calls import CALLS, array_names, difference, inputs

import anytensor as at

INF, NAN = np.inf, np.nan
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
OURS = {
    "segment_sum": "AnytensorSegmentSum",
    "segment_min": "AnytensorSegmentMin",
    "segment_max": "AnytensorSegmentMax",
    "segment_softmax": "AnytensorSegmentSoftmax",
    "segment_mean": "AnytensorSegmentMean",
    "segment_normalize": "AnytensorSegmentNormalize",
    "segment_min_or_constant": "AnytensorSegmentMinOr",
    "segment_max_or_constant": "AnytensorSegmentMaxOr",
}
PER_ROW = ("segment_softmax", "segment_normalize")
name_of_op = pytest.mark.parametrize("name", OURS)


@pytest.fixture
def ran():
    seen = []

    def callback(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        seen.append(op_type.decode() if isinstance(op_type, bytes) else op_type)  # TensorFlow gives either

    op_callbacks.add_op_callback(callback)
    yield seen
    op_callbacks.remove_op_callback(callback)


def own(names):
    return [name for name in names if name.startswith("Anytensor")]


@functools.cache
def rows_of_table():
    """Function names to the rows of the table of ops."""
    found = {}
    for row in range(100):
        try:
            at._core._formula(1, row)
        except TypeError as error:
            found[str(error).partition("()")[0]] = row
    return found


def formula(name):
    return functools.partial(at._core._formula, 1, rows_of_table()[name])


def data(dtype="float32", rows=9):
    x = (np.arange(rows * 2) * 29 % 17 * 0.25 - 1).reshape(rows, 2)
    x = tf.constant(x, "float64" if dtype == "bool" else dtype)
    return tf.cast(x, dtype) if dtype == "bool" else x


IDS = tf.constant([2, 0, -1, 3, 2, 9, 0, 2**40, 2])
KEPT = np.array([0, 1, 3, 4, 6, 8])


# --- which path --------------------------------------------------------------------------------------------------


@name_of_op
def test_an_eager_call_is_one_op_of_ours(name, ran):
    getattr(at, name)(data(), IDS, 4)
    assert ran == [OURS[name]]


def test_counts_and_partitions_are_ops_of_ours(ran):
    at.segment_count(IDS, 4)
    at.partition_sum(data(), tf.constant([3, 0, 4, 2]), 9)
    at.segment_variance(data(), IDS, 4)
    assert own(ran) == [
        "AnytensorSegmentCount",
        *("AnytensorPartitionIds", "AnytensorSegmentSum"),
        *("AnytensorSegmentMean", "AnytensorSpread", "AnytensorSegmentMean"),
    ]


def test_a_constant_that_is_an_array_keeps_its_derivative():
    constant = tf.constant(2.5)
    with tf.GradientTape() as tape:
        tape.watch(constant)
        y = at.segment_max_or_constant(data(), IDS, 4, constant)
    assert float(tape.gradient(y, constant)) == 2 and y[1].numpy().tolist() == [2.5, 2.5]


@name_of_op
def test_the_formula_runs_none_of_ours(name, ran):
    formula(name)(data(), IDS, 4)
    assert len(ran) > 1 and not own(ran)


@pytest.mark.parametrize("how", [{}, {"autograph": False}, {"jit_compile": True}], ids=str)
@pytest.mark.parametrize("family", ["sums", "extremes", "weights", "partitions"])
def test_no_graph_holds_one_of_ours(family, how, ran):
    given = inputs()
    given.update({"n": 4, "total": 7})

    @tf.function(**how)
    def run(**arrays):
        calls = CALLS[family]
        takes = [call.__code__.co_varnames[: call.__code__.co_argcount] for call in calls]
        return [call(*[arrays.get(k, given[k]) for k in ks]) for call, ks in zip(calls, takes, strict=True)]

    run(**{name: tf.constant(given[name]) for name in array_names(family)})
    assert ran and not own(ran)


def test_eager_tensors_within_a_graph_stay_with_the_formula(ran):
    x = data()
    tf.function(lambda: at.segment_sum(x, IDS, 4))()
    assert ran and not own(ran)


def test_a_graph_of_unknown_sizes_and_its_gradient_hold_none_of_ours(ran):
    spec = [tf.TensorSpec([None, 2]), tf.TensorSpec([None], tf.int64)]

    @tf.function(input_signature=spec)
    def run(x, ids):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(at.segment_softmax(x, ids, at.shape(x)[0]) ** 2)
        return tape.gradient(y, x)

    run(data(), IDS)
    assert not own(ran)


def test_init_scope_in_a_graph_is_eager(ran):
    x, found = data(), []

    @tf.function
    def run(y):
        with tf.init_scope():
            found.append(at.segment_max(x, IDS, 4))
        return at.segment_max(y, IDS, 4)

    y = run(x)
    assert own(ran) == ["AnytensorSegmentMax"]
    assert np.array_equal(found[0], y)


def test_functions_run_eagerly_take_the_kernels(ran):
    tf.config.run_functions_eagerly(True)
    try:
        tf.function(lambda x: at.segment_sum(x, IDS, 4))(data())
    finally:
        tf.config.run_functions_eagerly(False)
    assert ran == ["AnytensorSegmentSum"]


def test_an_eager_loop_takes_the_kernels(ran):
    x = tf.stack([data(), data() * 2])
    each = tf.map_fn(lambda row: at.segment_sum(row, IDS, 4), x)
    assert own(ran) == ["AnytensorSegmentSum"] * 2
    _, last = tf.while_loop(
        lambda k, y: k < 2, lambda k, y: (k + 1, at.segment_sum(x[k], IDS, 4)), (0, each[0])
    )
    assert own(ran) == ["AnytensorSegmentSum"] * 4
    assert np.array_equal(each[0], at.segment_sum(x[0], IDS, 4)) and np.array_equal(last, each[1])


@name_of_op
def test_vectorized_map_takes_the_formula(name, ran):
    x = tf.stack([data(), data()[::-1]])
    got = tf.vectorized_map(lambda row: getattr(at, name)(row, IDS, 4), x)
    assert not own(ran)
    for k in range(2):
        np.testing.assert_allclose(got[k], getattr(at, name)(x[k], IDS, 4), 1e-6)


@name_of_op
def test_variables_are_read_and_differentiated(name, ran):
    op = getattr(at, name)
    want = op(data(), IDS, 4)
    with tf.GradientTape() as tape:
        tape.watch(x := data())
        y = tf.reduce_sum(tf.where(tf.math.is_finite(want), op(x, IDS, 4), 0.0) ** 2)
    slope = tape.gradient(y, x)
    variables = [tf.Variable(data())]
    if installed("keras") >= (
        3,
    ):  # it came to TensorFlow with 2.16; the one before had no variables of its own
        variables.append(pytest.importorskip("keras").Variable(data().numpy()))
    for variable in variables:
        ran.clear()
        with tf.GradientTape() as tape:
            got = op(variable, IDS, tf.Variable(4))
            y = tf.reduce_sum(tf.where(tf.math.is_finite(got), got, 0.0) ** 2)
        assert own(ran) == [OURS[name]]
        assert np.array_equal(got, want)
        of = variable if isinstance(variable, tf.Variable) else variable.value
        np.testing.assert_allclose(tf.convert_to_tensor(tape.gradient(y, of)), slope, 1e-6)


def test_what_no_kernel_reads_stays_with_tensorflow(ran):
    x = tf.complex(data(), data())
    with pytest.raises(TypeError, match="dtype"):
        at.segment_sum(x, IDS, 4)
    assert not own(ran)


# --- values: our ops, the formula, graphs ------------------------------------------------------------------------


def check_values(name, *args):
    got = getattr(at, name)(*args)
    for other in (formula(name), tf.function(getattr(at, name))):
        assert difference(got, other(*args)) is None, difference(got, other(*args))


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
@pytest.mark.parametrize("name", ["segment_sum", "segment_min", "segment_max", "segment_max_or_constant"])
def test_values_of_every_dtype(name, dtype):
    check_values(name, data(dtype), IDS, 4)
    check_values(name, data(dtype, 0), IDS[:0], 3)
    check_values(name, tf.reshape(data(dtype), [9, 1, 2, 1]), IDS, 4)


@pytest.mark.parametrize("dtype", ["int32", *FLOATS])
@pytest.mark.parametrize("name", ["segment_softmax", "segment_normalize", "segment_mean", "segment_variance"])
def test_quotients_of_every_dtype(name, dtype):
    check_values(name, data(dtype), IDS, 4)
    check_values(name, data(dtype, 0), IDS[:0], 0)


@pytest.mark.parametrize("dtype", INTEGERS)
@name_of_op
def test_ids_of_every_dtype(name, dtype):
    bounds = np.iinfo(dtype)
    ids = np.array([0, 2, 2, bounds.max, bounds.min, 0, 3, 1, 120], dtype)
    check_values(name, data(), tf.constant(ids), 4)
    check_values(name, data(), tf.constant(ids), 0)


@pytest.mark.parametrize("dtype", FLOATS)
@name_of_op
def test_nan_infinities_and_empty_segments(name, dtype):
    values = [
        [NAN, 1],
        [INF, -INF],
        [-INF, -INF],
        [2, -INF],
        [NAN, INF],
        [INF, INF],
        [-INF, 3],
        [1, NAN],
        [0, -0.0],
    ]
    ids = tf.constant([0, 1, 2, 2, -1, 4, 4, 5, 7])
    check_values(name, tf.cast(tf.constant(values), dtype), ids, 7)


def test_long_segments_keep_their_digits():
    x = tf.fill([3_000_000, 1], tf.constant(0.1, tf.float32))
    got = at.segment_sum(x, tf.zeros([3_000_000], tf.int32), 1)
    assert abs(float(got[0, 0]) - 3_000_000 * float(np.float32(0.1))) < 0.1


def test_sizes_beyond_one_digit():
    x, ids = tf.constant([1.0, 2.0, 4.0]), tf.constant([4095, 4096, 70_000])
    for n in (4095, 4096, 4097, 70_001, 2**24 + 1):
        y = at.segment_sum(x, ids, n)
        assert y.shape == (n,)
        assert float(tf.reduce_sum(y)) == sum(v for v, k in ((1, 4095), (2, 4096), (4, 70_000)) if k < n)


# --- derivatives -------------------------------------------------------------------------------------------------


def finite(y):
    return tf.where(tf.math.is_finite(y), y, tf.zeros_like(y))


def derivatives(fn, x, order):
    """The derivatives up to an order, each of a sum with weights that differ."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = finite(fn(x)) ** 3
        found = [tf.reduce_sum(y * tf.reshape(tf.range(1.0, y.shape.num_elements() + 1.0), y.shape))]
        for _ in range(order):
            grad = tf.convert_to_tensor(tape.gradient(found[-1], x))
            found.append(tf.reduce_sum(tf.sin(grad)))
    return [tf.convert_to_tensor(tape.gradient(z, x)) for z in found]


@name_of_op
def test_derivatives_to_third_order_are_those_of_the_formula(name, ran):
    x = data()  # with ties
    got = derivatives(lambda x: getattr(at, name)(x, IDS, 4), x, 2)
    assert own(ran)
    ran.clear()
    want = derivatives(lambda x: formula(name)(x, IDS, 4), x, 2)
    assert not own(ran)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, 2e-4, 2e-4)


@pytest.mark.parametrize("value", [INF, -INF, NAN])
@name_of_op
def test_a_dropped_row_of_any_value_gets_zero(name, value):
    x = data().numpy()
    dropped = np.setdiff1d(np.arange(9), KEPT)
    want = derivatives(lambda x: getattr(at, name)(x, IDS, 4), tf.constant(x), 1)
    x[dropped] = value
    got = derivatives(lambda x: getattr(at, name)(x, IDS, 4), tf.constant(x), 1)
    for g, w in zip(got, want, strict=True):
        assert not g.numpy()[dropped].any()
        np.testing.assert_allclose(g, w, 1e-6)


def test_a_dropped_row_may_meet_any_cotangent():
    x = data()
    for name in OURS:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = getattr(at, name)(x, IDS, 4)
        weights = tf.fill(y.shape, INF) if name not in PER_ROW else tf.fill(y.shape, NAN)
        grad = tape.gradient(y, x, output_gradients=weights)
        assert not grad.numpy()[2].any() and not grad.numpy()[5].any()


@name_of_op
def test_a_tape_differentiated_in_a_graph_takes_the_formula(name, ran):
    x = data()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = finite(getattr(at, name)(x, IDS, 4))
        z = tf.reduce_sum(y**2)
    want = tape.gradient(z, x)
    ran.clear()
    got = tf.function(lambda: tf.convert_to_tensor(tape.gradient(z, x)))()
    assert not own(ran)
    np.testing.assert_allclose(got, want, 1e-5, 1e-6)
    jacobian = tape.jacobian(y, x)
    for place in ((0, 0), (2, 1), (3, 0)):
        with tf.GradientTape() as one:
            one.watch(x)
            entry = finite(getattr(at, name)(x, IDS, 4))[place]
        np.testing.assert_allclose(jacobian[place], tf.convert_to_tensor(one.gradient(entry, x)), 1e-5, 1e-6)


@name_of_op
def test_forward_accumulators_nest_with_tapes_and_each_other(name):
    x = data("float64")
    d = tf.reshape(tf.cast(tf.range(18) % 5, tf.float64), x.shape)

    own_op = getattr(at, name)

    def loss(x, op=own_op):
        return tf.reduce_sum(finite(op(x, IDS, 4)) ** 3)

    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = loss(x, formula(name))
        slope = tf.reduce_sum(tf.convert_to_tensor(inner.gradient(y, x)) * d)
    curve = tf.reduce_sum(tf.convert_to_tensor(outer.gradient(slope, x)) * d)

    with tf.autodiff.ForwardAccumulator(x, d) as over:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = loss(x)
        grad = tf.convert_to_tensor(tape.gradient(y, x))
    np.testing.assert_allclose([over.jvp(y), tf.reduce_sum(over.jvp(grad) * d)], [slope, curve], 1e-9)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, d) as under:
            y = under.jvp(loss(x))
    grad = tf.convert_to_tensor(tape.gradient(y, x))
    np.testing.assert_allclose(tf.reduce_sum(grad * d), curve, 1e-9)
    old = installed("tensorflow") < (2, 16)
    if name == "segment_normalize" or (old and name == "segment_softmax"):
        return  # TensorFlow fails on slices between nested accumulators; it does on our formula, too
    with tf.autodiff.ForwardAccumulator(x, d) as far, tf.autodiff.ForwardAccumulator(x, d) as near:
        first = near.jvp(loss(x))
    np.testing.assert_allclose([first, far.jvp(first)], [slope, curve], 1e-9)


def test_gradients_of_slices_and_of_recomputed_functions():
    x = data()

    @tf.recompute_grad
    def again(x):
        return at.segment_softmax(x, IDS, 4)

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        picked = tf.reduce_sum(
            tf.gather(at.segment_sum(x, IDS, 4), [0, 2, 2])
        )  # its gradient comes as slices
        same, twice = tf.reduce_sum(at.segment_softmax(x, IDS, 4) ** 2), tf.reduce_sum(again(x) ** 2)
    assert np.array_equal(tape.gradient(picked, x)[:, 0], [2, 1, 0, 0, 2, 0, 1, 0, 2])
    assert np.array_equal(tape.gradient(same, x), tape.gradient(twice, x))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@name_of_op
def test_half_types_share_among_more_ties_than_they_can_count(name, dtype):
    x = tf.zeros([3000, 1], dtype)
    ids = tf.zeros([3000], tf.int32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = getattr(at, name)(x, ids, 1)
    grad = tape.gradient(y, x, output_gradients=tf.fill(y.shape, tf.constant(1, dtype)))
    want = {"segment_sum": 1.0, **dict.fromkeys(PER_ROW, 0.0)}.get(name, 1 / 3000)
    np.testing.assert_allclose(tf.cast(grad, "float64"), np.full((3000, 1), want), 0.01, 1e-6)


# --- failures, threads, processes --------------------------------------------------------------------------------


def test_results_without_memory_are_an_exception():
    for n in (2**43, 2**60, 2**62):
        with pytest.raises(tf.errors.ResourceExhaustedError):
            at.segment_sum(data(), IDS, n)


@pytest.mark.parametrize(
    "arguments",
    [
        lambda x, ids: ("AnytensorSegmentSum", x, ids[:3], 0, 4),
        lambda x, ids: ("AnytensorSegmentSum", x[0, 0], ids, 0, 4),
        lambda x, ids: ("AnytensorSegmentSum", x, ids[:, None], 0, 4),
        lambda x, ids: ("AnytensorSegmentSum", x, ids, -1, 4),
        lambda x, ids: ("AnytensorSegmentSum", x, ids, 2**60, 4),
        lambda x, ids: ("AnytensorSegmentSum", x, ids, ids, 4),
        lambda x, ids: ("AnytensorSegmentSum", tf.reshape(x, [9, 2] + [1] * 40), ids, 0, 4),
        lambda x, ids: ("AnytensorSegmentSoftmax", tf.cast(x, tf.int32), ids, 0, 4),
        lambda x, ids: ("AnytensorSlotIds", ids[:, None], 0, 4),
    ],
)
def test_an_op_asked_for_nonsense_refuses(arguments):
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context

    name, *operands = arguments(data(), IDS)
    with pytest.raises(Exception, match="(operand|number of segments|logits|axes)") as caught:
        pywrap_tfe.TFE_Py_FastPathExecute(context.context(), name, None, *operands)
    assert caught.value.code == tf.errors.INVALID_ARGUMENT


def test_threads_get_their_own_results():
    x = tf.constant(np.random.default_rng(3).random((20_000, 8)), tf.float32)
    ids = tf.constant(np.arange(20_000) % 50)
    wrong = []

    def work(k):
        for _ in range(20):
            with tf.GradientTape() as tape:
                tape.watch(y := x * float(k))
                z = tf.reduce_sum(at.segment_sum(y, ids, 50))
            if not np.allclose(z, float(tf.reduce_sum(x)) * k, 1e-4) or not np.all(tape.gradient(z, y) == 1):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def run_program(text, *args):
    done = subprocess.run([sys.executable, "-c", text, *args], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


SPY = """
import numpy as np, tensorflow as tf, anytensor as at
from tensorflow.python.framework import op_callbacks
ran = []
op_callbacks.add_op_callback(lambda op, *args, **kwargs: ran.append(op))
"""


def test_logical_devices_and_asynchronous_calls():
    run_program(
        """
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
"""
        + SPY
        + """
ids = tf.constant([0, 2, 2])
for device in ("CPU:0", "CPU:1"):
    with tf.device(device):
        x = tf.constant([1.0, 2.0, 4.0])
        ran.clear()
        y = at.segment_sum(x, ids, 3)
        assert ran[-1] == "AnytensorSegmentSum" and y.device.endswith(device), (ran, y.device)
        assert y.numpy().tolist() == [1, 0, 6]
tf.config.experimental.set_synchronous_execution(False)
y = at.segment_sum(x, ids, 3)
assert y.shape == (3,) and y.numpy().tolist() == [1, 0, 6]
"""
    )


def test_a_saved_model_runs_where_the_library_is_not(tmp_path):
    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 2]), tf.TensorSpec([None], tf.int64)])
        def __call__(self, x, ids):
            return at.segment_softmax(x, ids, at.shape(x)[0]), at.segment_max(x, ids, 4)

    tf.saved_model.save(Model(), str(tmp_path))
    text = """
import sys, numpy as np, tensorflow as tf
soft, top = tf.saved_model.load(sys.argv[1])(tf.constant([[1., 2.], [3., 4.]]), tf.constant([0, 0], tf.int64))
assert "anytensor" not in sys.modules
assert np.allclose(tf.reduce_sum(soft, 0), 1) and top.numpy()[0].tolist() == [3, 4]
"""
    run_program(text, str(tmp_path))


def test_a_second_copy_of_the_library_leaves_the_ops_alone(tmp_path):
    """Registering an op twice would abort the process. The copy serves by its formulas."""
    text = (
        SPY
        + """
import importlib, pathlib, shutil, sys
x, ids = tf.constant([1.0, 2.0, 4.0]), tf.constant([0, 2, 2])
assert at.segment_sum(x, ids, 3).numpy().tolist() == [1, 0, 6] and ran == ["AnytensorSegmentSum"]
shutil.copytree(pathlib.Path(at.__file__).parent, pathlib.Path(sys.argv[1], "anytensor"))
for path, mine in ((sys.path[:], True), ([sys.argv[1], *sys.path], False)):
    for name in [name for name in sys.modules if name.partition(".")[0] == "anytensor"]:
        del sys.modules[name]
    sys.path[:] = path
    importlib.invalidate_caches()
    other = importlib.import_module("anytensor")
    assert other is not at
    ran.clear()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = other.segment_max(x, ids, 3)
    assert y.numpy().tolist() == [1, -np.inf, 4]
    assert (ran == ["AnytensorSegmentMax"]) == mine, ran
    assert tape.gradient(y, x).numpy().tolist() == [1, 0, 1]
"""
    )
    run_program(text, str(tmp_path))


def test_a_new_size_at_each_call_keeps_nothing():
    text = """
import numpy as np, tensorflow as tf, anytensor as at
x, ids = tf.ones([4, 1]), tf.constant([0, 1, 2, 3])
def pages():
    return int(open("/proc/self/statm").read().split()[1])
for n in (*range(1, 5000, 3), 30_000): at.segment_sum(x, ids, n)
before = pages()
for n in range(5000, 30_000): at.segment_sum(x, ids, n)
print((pages() - before) * 4)
"""
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    assert int(run_program(text)) < 8000  # kB; a kept size is 0.65, and 25,000 of them 16,000
