"""Variables of TensorFlow and Keras beside tensors; what is no array; how NumPy arrays join; dtype objects."""

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from frameworks import installed, needs
from tensorflow_calls import CALLS, array_names, difference, inputs, program

import anytensor as at

KERAS = needs("keras", "3", "variables of Keras's own")


def keras_variable(x):
    return pytest.importorskip("keras").Variable(x, dtype=x.dtype.name)


@pytest.mark.parametrize(
    "make", [tf.Variable, pytest.param(keras_variable, marks=KERAS)], ids=["tf", "keras"]
)
@pytest.mark.parametrize("family", CALLS)
def test_variables_give_what_tensors_give(family, make):
    given = inputs()
    names = array_names(family)
    tensors = [tf.constant(given[name]) for name in names]
    variables = [
        make(given[name]) if given[name].dtype.kind == "f" else tf.constant(given[name]) for name in names
    ]
    want = program(family)(*tensors)
    for k, got in enumerate(program(family)(*variables)):
        assert isinstance(got, tf.Tensor), f"{family}[{k}]"
        assert difference(got, want[k]) is None, f"{family}[{k}]"


def test_a_variable_of_integers_is_an_index_and_a_size():
    v = tf.Variable([1.0, 2.0, 4.0])
    ids, n = tf.Variable([0, 1, 1]), tf.Variable(2)
    assert at.segment_sum(v, ids, n).numpy().tolist() == [1, 6]
    assert at.take(v, ids).numpy().tolist() == [1, 2, 2]
    assert at.shape(v) == (3,)


def test_a_result_does_not_follow_its_variable():
    v = tf.Variable([1.0, 2.0])
    results = [at.astype(v, "float32"), at.clip(v), at.concatenate([v]), at.sum(v, axes=())]
    v.assign([7.0, 8.0])
    for result in results:
        assert isinstance(result, tf.Tensor) and result.numpy().tolist() == [1, 2]


def test_gradients_reach_variables():
    variables = [tf.Variable([1.0, 3.0, 2.0])]
    if installed("keras") >= (3,):
        variables.append(keras_variable(np.array([1, 3, 2], np.float32)))
    for v in variables:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(at.segment_max(v, tf.constant([0, 0, 1]), 2) * [2.0, 5.0])
        grad = tape.gradient(y, v if isinstance(v, tf.Variable) else v.value)
        assert tf.convert_to_tensor(grad).numpy().tolist() == [0, 2, 5]


def test_variables_work_inside_a_graph():
    v = tf.Variable([1.0, 3.0, 2.0])
    run = tf.function(lambda ids: at.segment_max(v, ids, 2))
    assert run(tf.constant([0, 0, 1])).numpy().tolist() == [3, 2]
    v.assign([9.0, 3.0, 2.0])
    assert run(tf.constant([0, 0, 1])).numpy().tolist() == [9, 2]


@pytest.mark.parametrize("kind", ["ragged", "sparse", "slices"])
def test_what_has_no_rows_of_its_own_is_no_array(kind):
    x = {
        "ragged": lambda: tf.ragged.constant([[1.0], [2.0, 3.0]]),
        "sparse": lambda: tf.sparse.from_dense([[1.0, 0.0]]),
        "slices": lambda: tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0])),
    }[kind]()
    with pytest.raises(TypeError, match="'x'"):
        at.exp(x)


def test_what_numpy_writes_later_is_not_seen():
    for size in (8, 100_000):
        host = np.ones(size, np.float32)
        joined = at.maximum(tf.zeros(size), host)
        (_, aligned) = at.align_arrays(tf.zeros(1), host, copy=True)
        host[:] = 5.0
        assert float(tf.reduce_max(joined)) == 1.0 and float(tf.reduce_max(aligned)) == 1.0


def test_strided_and_swapped_numpy_arrays_join():
    x = np.arange(6, dtype=np.float32)
    for host in (x[::-1], x[::2], x.astype(">f4"), x.reshape(2, 3).T):
        got = at.maximum(tf.zeros(host.shape), host)
        assert np.array_equal(got.numpy(), host)


def test_dtypes_are_known_before_the_first_tensor():
    text = """
import numpy as np, tensorflow as tf, anytensor as at
assert at.astype(np.ones(2), tf.float16).dtype == np.float16
assert at.zeros(2, dtype=tf.int8).dtype == np.int8
"""
    subprocess.run([sys.executable, "-c", text], check=True)


def test_an_active_tape_that_watches_something_else_costs_no_ops():
    x, ids, other = tf.constant([1.0, 2.0]), tf.constant([0, 0]), tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(other)
        y = at.segment_max(x, ids, 1)
    assert tape.gradient(y, other) is None and y.numpy().tolist() == [2]


@needs("tensorflow", "2.16", "TensorFlow's own ops stay on the second of two logical CPUs")
def test_results_lie_on_the_device_of_like():
    text = """
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
import numpy as np, anytensor as at
with tf.device("CPU:1"):
    x = tf.ones([2, 3])
assert x.device.endswith("CPU:1")
for y in (at.zeros(2, like=x), at.full((2,), 3, like=x), at.zeros_like(x), at.arange(3, like=x),
          at.align_arrays(x, np.ones(3))[1], at.align_arrays(x, 2.0)[1]):
    assert y.device.endswith("CPU:1"), y.device
assert at.arange(3, like=x, device="CPU:0").device.endswith("CPU:0")
"""
    subprocess.run([sys.executable, "-c", text], check=True)
