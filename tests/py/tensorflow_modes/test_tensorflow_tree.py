"""Trees inside tf.function. Accuses python/anytensor/tree.py."""

import pytest
import tensorflow as tf

import anytensor as at
from anytensor import tree

X = tf.reshape(tf.range(6.0), (3, 2))


@pytest.mark.parametrize("xla", [False, True])
def test_trees_are_walked_while_tracing(xla):
    def run(nest):
        both = tree.batch([nest, tree.map(lambda x: 2 * x, nest)])
        return tree.map(at.sum, tree.unbatch(both)[4])

    got = tf.function(run, jit_compile=xla)({"a": X, "b": [X, None]})
    assert tree.map(float, got) == {"a": 10.0, "b": [10.0, None]}


def test_a_size_that_is_traced_cannot_be_the_length_of_a_list():
    @tf.function(input_signature=[tf.TensorSpec((None, 2))])
    def run(x):
        whole = tree.batch([{"x": x}, {"x": x}])
        with pytest.raises(ValueError, match="axis 0 must be known"):
            tree.unbatch(whole)
        return [part["x"] for part in tree.unbatch(whole, axis=1)]

    assert [part.shape.as_list() for part in run(X)] == [[6, 1], [6, 1]]
