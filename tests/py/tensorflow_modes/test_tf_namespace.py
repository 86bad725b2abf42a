"""The namespace of TensorFlow's arrays, and facts about them in graphs.

Accuses python/anytensor/_tensorflow_namespace.py, src/python/info.c.
"""

import math

import numpy as np
import pytest
import tensorflow as tf

import anytensor as at
from anytensor.namespace import array_namespace


def test_the_namespace_of_tensorflow():
    xp = array_namespace(tf.Variable([1.0]), np.ones(1))
    x = tf.constant([1.0, math.nan, -math.inf])
    assert xp.nan_to_num(x, neginf=-1.0).numpy().tolist() == [1, 0, -1]
    assert xp.nan_to_num(x).numpy().tolist() == [1, 0, np.finfo(np.float32).min]
    assert xp.nan_to_num(tf.constant([3])).numpy().tolist() == [3]
    assert xp.clip(x, 0.0, 0.5).numpy()[::2].tolist() == [0.5, 0]
    assert xp.arange(1, 7, 2, device="ignored").numpy().tolist() == [1, 3, 5]
    assert xp.repeat(tf.constant([1, 2]), 2).numpy().tolist() == [1, 1, 2, 2]
    assert xp.zeros(2).dtype == tf.float64 and xp.ones((1,), dtype="int8").dtype == tf.int8
    assert xp.full((2,), 7).numpy().tolist() == [7, 7] and xp.bool is tf.bool
    assert xp.asarray([1, 2], dtype=tf.float32).dtype == tf.float32
    assert xp.isdtype(tf.uint8, tf.uint8) and xp.isdtype(tf.complex64, "numeric")
    assert float(xp.mean(tf.ones(3))) == 1  # of tf.experimental.numpy
    with pytest.raises(NotImplementedError, match="include_initial"):
        xp.cumulative_sum(x, include_initial=True)
    with pytest.raises(ValueError, match="expected one for an array of rank 2"):
        xp.cumulative_sum(tf.ones((2, 2)))
    with pytest.raises(ValueError, match="isdtype: argument 'kind': .* found 'odd'"):
        xp.isdtype(tf.int8, "odd")


@pytest.mark.parametrize(
    "how", [{}, {"autograph": False}, {"jit_compile": True}], ids=["autograph", "plain", "xla"]
)
def test_facts_in_a_graph(how):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32), tf.TensorSpec(None, tf.int8)], **how)
    def run(x, i):
        y = at.where(x > at.pi(x), at.inf(x), x * at.finfo(x).eps)
        return at.astype(y, at.dtype("float64", i)), at.full((1,), at.iinfo(i).max, like=i)

    y, top = run(tf.constant([1.0, 4.0]), tf.constant(1, tf.int8))
    assert y.dtype == tf.float64 and y.numpy().tolist() == [2.0**-23, math.inf]
    assert top.dtype == tf.int8 and top.numpy().tolist() == [127]
    assert at.get_backend(tf.Variable([1.0])).to_numpy(tf.Variable([1.0])).tolist() == [1]
