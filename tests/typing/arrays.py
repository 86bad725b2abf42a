"""The array that goes in is the kind of array that comes out. Read by mypy and pyright, never run."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import anytensor as at
from anytensor import native


class Tensor:
    """An array of some framework."""


x, ids = Tensor(), Tensor()
ones: NDArray[np.float32] = np.ones(3, np.float32)
total: native.Array = native.from_dlpack(ones)

assert_type(at.exp(x), Tensor)
assert_type(at.maximum(x, 2.0), Tensor)
assert_type(at.maximum(0, x), Tensor)
assert_type(at.clip(x, max=1.0), Tensor)
assert_type(at.sum(x, axes=(0, 1), keepdims=True), Tensor)
assert_type(at.take(x, [0, 1]), Tensor)
assert_type(at.concatenate([x, x]), Tensor)
assert_type(at.astype(x, "float32"), Tensor)
assert_type(at.reshape(x, (-1, 2)), Tensor)
assert_type(at.zeros_like(x), Tensor)

# segments and partitions, with the sizes of their axes in the annotation
assert_type(at.segment_sum(x, ids, 3), Tensor)
assert_type(at.segment_sum(x, np.array([0, 1]), num_segments=3, sorted=True), Tensor)
assert_type(at.segment_softmax(x, ids, at.shape(x)[0]), Tensor)
assert_type(at.segment_count(ids, 3), Tensor)
assert_type(at.segment_max_or_constant(x, ids, 3, constant=0.0), Tensor)
assert_type(at.partition_ids(ids, 4), Tensor)
assert_type(at.partition_softmax(x, ids, 4), Tensor)

# constructors: NumPy's without like
assert_type(at.zeros((2, 3)), NDArray[Any])
assert_type(at.zeros((2, 3), like=x), Tensor)
assert_type(at.full(2, 1.0, like=ones), NDArray[np.float32])
assert_type(at.arange(3), NDArray[Any])
assert_type(at.arange(0, 6, 2, like=x), Tensor)

# NumPy, native
assert_type(at.exp(ones), NDArray[np.float32])
assert_type(at.segment_sum(total, ids, 2), native.Array)
assert_type(total.shape, tuple[int, ...])
assert_type(total.dtype, str)
assert_type(np.asarray(total), NDArray[Any])

# facts
assert_type(at.inf(x), float)
assert_type(at.get_backend(x).framework_name, str)
assert_type(at.newaxis, None)
assert_type(at.__version__, str)
assert_type(at.enable_torchscript(), bool)
