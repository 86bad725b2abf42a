# Written by tools/opgen from include/anytensor/ops.def and ops.h: change those, then run tools/opgen --write.
"""The functions with annotations that jaxtyping's import hook puts to the test: see _typecheck.py."""

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
from jaxtyping import Integer, Shaped

from . import _core
from ._typecheck import steps_aside

Array = Shaped[Any, "..."]
Scalar = bool | int | float | complex | np.generic
Data = Array | Scalar
Index = Integer[Any, "..."] | SupportsIndex
Axes = SupportsIndex | Sequence[SupportsIndex] | None
Axis = SupportsIndex | None
Flag = bool | np.bool_


@steps_aside
def exp(x: Data) -> Array:
    return _core.exp(x)


@steps_aside
def log(x: Data) -> Array:
    return _core.log(x)


@steps_aside
def sqrt(x: Data) -> Array:
    return _core.sqrt(x)


@steps_aside
def rsqrt(x: Data) -> Array:
    return _core.rsqrt(x)


@steps_aside
def is_nan(x: Data) -> Array:
    return _core.is_nan(x)


@steps_aside
def is_inf(x: Data) -> Array:
    return _core.is_inf(x)


@steps_aside
def is_finite(x: Data) -> Array:
    return _core.is_finite(x)


@steps_aside
def maximum(x: Data, y: Data) -> Array:
    return _core.maximum(x, y)


@steps_aside
def minimum(x: Data, y: Data) -> Array:
    return _core.minimum(x, y)


@steps_aside
def equal_nan(x: Data, y: Data) -> Array:
    return _core.equal_nan(x, y)


@steps_aside
def fill_nan(x: Data, value: Data = 0.0) -> Array:
    return _core.fill_nan(x, value)


@steps_aside
def fill_nan_mask(x: Data, value: Data = 0.0) -> tuple:
    return _core.fill_nan_mask(x, value)


@steps_aside
def nan_to_num(x: Data, *, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    return _core.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


@steps_aside
def where(condition: Data, x: Data, y: Data) -> Array:
    return _core.where(condition, x, y)


@steps_aside
def clip(x: Data, min: Data | None = None, max: Data | None = None) -> Array:
    return _core.clip(x, min, max)


@steps_aside
def sum(x: Data, axes: Axes = None, *, keepdims: Flag = False) -> Array:
    return _core.sum(x, axes, keepdims=keepdims)


@steps_aside
def prod(x: Data, axes: Axes = None, *, keepdims: Flag = False) -> Array:
    return _core.prod(x, axes, keepdims=keepdims)


@steps_aside
def mean(x: Data, axes: Axes = None, *, keepdims: Flag = False) -> Array:
    return _core.mean(x, axes, keepdims=keepdims)


@steps_aside
def min(x: Data, axes: Axes = None, *, keepdims: Flag = False) -> Array:
    return _core.min(x, axes, keepdims=keepdims)


@steps_aside
def max(x: Data, axes: Axes = None, *, keepdims: Flag = False) -> Array:
    return _core.max(x, axes, keepdims=keepdims)


@steps_aside
def cumsum(x: Data, axis: Axis = 0) -> Array:
    return _core.cumsum(x, axis)


@steps_aside
def take(x: Data, indices: Index, axis: Axis = 0) -> Array:
    return _core.take(x, indices, axis)


@steps_aside
def repeat(x: Data, repeats: Any, *, total_repeat_length: Any = None, axis: Axis = None) -> Array:
    return _core.repeat(x, repeats, total_repeat_length=total_repeat_length, axis=axis)


@steps_aside
def shape(x: Data) -> tuple:
    return _core.shape(x)


@steps_aside
def reshape(x: Data, shape: Any) -> Array:
    return _core.reshape(x, shape)


@steps_aside
def transpose(x: Data, axes: Axes = None) -> Array:
    return _core.transpose(x, axes)


@steps_aside
def split(x: Data, indices_or_sections: Any, axis: Axis = 0) -> list:
    return _core.split(x, indices_or_sections, axis)


@steps_aside
def concatenate(arrays: Sequence[Data], axis: Axis = 0) -> Array:
    return _core.concatenate(arrays, axis)


@steps_aside
def stack(arrays: Sequence[Data], axis: Axis = 0) -> Array:
    return _core.stack(arrays, axis)


@steps_aside
def astype(x: Data, dtype: Any) -> Array:
    return _core.astype(x, dtype)


@steps_aside
def cast(x: Data, dtype: Any) -> Array:
    return _core.cast(x, dtype)


@steps_aside
def matmul(x: Data, y: Data) -> Array:
    return _core.matmul(x, y)


@steps_aside
def full(shape: Any, fill_value: Any, *, dtype: Any = None, like: Any = None) -> Array:
    return _core.full(shape, fill_value, dtype=dtype, like=like)


@steps_aside
def zeros(shape: Any, *, dtype: Any = None, like: Any = None) -> Array:
    return _core.zeros(shape, dtype=dtype, like=like)


@steps_aside
def ones(shape: Any, *, dtype: Any = None, like: Any = None) -> Array:
    return _core.ones(shape, dtype=dtype, like=like)


@steps_aside
def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Array:
    return _core.full_like(x, fill_value, dtype)


@steps_aside
def zeros_like(x: Any, dtype: Any = None) -> Array:
    return _core.zeros_like(x, dtype)


@steps_aside
def ones_like(x: Any, dtype: Any = None) -> Array:
    return _core.ones_like(x, dtype)


@steps_aside
def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, like: Any = None, device: Any = None) -> Array:
    return _core.arange(start, stop, step, dtype=dtype, like=like, device=device)


@steps_aside
def segment_sum(x: Shaped[Any, "E ..."], segment_ids: Integer[Any, "E"], num_segments: Any, sorted: Flag = False) -> Shaped[Any, "num_segments ..."]:
    return _core.segment_sum(x, segment_ids, num_segments, sorted)


@steps_aside
def segment_max(x: Shaped[Any, "E ..."], segment_ids: Integer[Any, "E"], num_segments: Any, sorted: Flag = False) -> Shaped[Any, "num_segments ..."]:
    return _core.segment_max(x, segment_ids, num_segments, sorted)


@steps_aside
def segment_min(x: Shaped[Any, "E ..."], segment_ids: Integer[Any, "E"], num_segments: Any, sorted: Flag = False) -> Shaped[Any, "num_segments ..."]:
    return _core.segment_min(x, segment_ids, num_segments, sorted)


@steps_aside
def segment_mean(x: Shaped[Any, "E ..."], segment_ids: Integer[Any, "E"], num_segments: Any, sorted: Flag = False) -> Shaped[Any, "num_segments ..."]:
    return _core.segment_mean(x, segment_ids, num_segments, sorted)


@steps_aside
def segment_variance(x: Shaped[Any, "E ..."], segment_ids: Integer[Any, "E"], num_segments: Any, sorted: Flag = False) -> Shaped[Any, "num_segments ..."]:
    return _core.segment_variance(x, segment_ids, num_segments, sorted)


@steps_aside
def segment_normalize(x: Shaped[Any, "E ..."], segment_ids: Integer[Any, "E"], num_segments: Any, sorted: Flag = False) -> Shaped[Any, "E ..."]:
    return _core.segment_normalize(x, segment_ids, num_segments, sorted)


@steps_aside
def segment_softmax(logits: Shaped[Any, "E ..."], segment_ids: Integer[Any, "E"], num_segments: Any, sorted: Flag = False) -> Shaped[Any, "E ..."]:
    return _core.segment_softmax(logits, segment_ids, num_segments, sorted)


@steps_aside
def segment_count(segment_ids: Integer[Any, "E"], num_segments: Any, sorted: Flag = False) -> Shaped[Any, "num_segments"]:
    return _core.segment_count(segment_ids, num_segments, sorted)


@steps_aside
def segment_min_or_constant(x: Shaped[Any, "E ..."], segment_ids: Integer[Any, "E"], num_segments: Any, constant: Any = 0.0, sorted: Flag = False) -> Shaped[Any, "num_segments ..."]:
    return _core.segment_min_or_constant(x, segment_ids, num_segments, constant, sorted)


@steps_aside
def segment_max_or_constant(x: Shaped[Any, "E ..."], segment_ids: Integer[Any, "E"], num_segments: Any, constant: Any = 0.0, sorted: Flag = False) -> Shaped[Any, "num_segments ..."]:
    return _core.segment_max_or_constant(x, segment_ids, num_segments, constant, sorted)


@steps_aside
def partition_ids(partitions: Integer[Any, "N"], total_length: Any) -> Shaped[Any, "total_length"]:
    return _core.partition_ids(partitions, total_length)


@steps_aside
def partition_sum(x: Shaped[Any, "total_length ..."], partitions: Integer[Any, "N"], total_length: Any) -> Shaped[Any, "N ..."]:
    return _core.partition_sum(x, partitions, total_length)


@steps_aside
def partition_min(x: Shaped[Any, "total_length ..."], partitions: Integer[Any, "N"], total_length: Any) -> Shaped[Any, "N ..."]:
    return _core.partition_min(x, partitions, total_length)


@steps_aside
def partition_max(x: Shaped[Any, "total_length ..."], partitions: Integer[Any, "N"], total_length: Any) -> Shaped[Any, "N ..."]:
    return _core.partition_max(x, partitions, total_length)


@steps_aside
def partition_softmax(logits: Shaped[Any, "total_length ..."], partitions: Integer[Any, "N"], total_length: Any) -> Shaped[Any, "total_length ..."]:
    return _core.partition_softmax(logits, partitions, total_length)


@steps_aside
def segment_prod(x: Shaped[Any, "E ..."], segment_ids: Integer[Any, "E"], num_segments: Any, sorted: Flag = False) -> Shaped[Any, "num_segments ..."]:
    return _core.segment_prod(x, segment_ids, num_segments, sorted)


@steps_aside
def segment_any(x: Shaped[Any, "E ..."], segment_ids: Integer[Any, "E"], num_segments: Any, sorted: Flag = False) -> Shaped[Any, "num_segments ..."]:
    return _core.segment_any(x, segment_ids, num_segments, sorted)


@steps_aside
def segment_all(x: Shaped[Any, "E ..."], segment_ids: Integer[Any, "E"], num_segments: Any, sorted: Flag = False) -> Shaped[Any, "num_segments ..."]:
    return _core.segment_all(x, segment_ids, num_segments, sorted)


@steps_aside
def segment_std(x: Shaped[Any, "E ..."], segment_ids: Integer[Any, "E"], num_segments: Any, sorted: Flag = False) -> Shaped[Any, "num_segments ..."]:
    return _core.segment_std(x, segment_ids, num_segments, sorted)


@steps_aside
def segment_argmin(x: Shaped[Any, "E ..."], segment_ids: Integer[Any, "E"], num_segments: Any, sorted: Flag = False) -> Shaped[Any, "num_segments ..."]:
    return _core.segment_argmin(x, segment_ids, num_segments, sorted)


@steps_aside
def segment_argmax(x: Shaped[Any, "E ..."], segment_ids: Integer[Any, "E"], num_segments: Any, sorted: Flag = False) -> Shaped[Any, "num_segments ..."]:
    return _core.segment_argmax(x, segment_ids, num_segments, sorted)


@steps_aside
def segment_logsumexp(logits: Shaped[Any, "E ..."], segment_ids: Integer[Any, "E"], num_segments: Any, sorted: Flag = False) -> Shaped[Any, "num_segments ..."]:
    return _core.segment_logsumexp(logits, segment_ids, num_segments, sorted)


@steps_aside
def segment_attention(logits: Shaped[Any, "E ..."], values: Shaped[Any, "E ..."], segment_ids: Integer[Any, "E"], num_segments: Any, sorted: Flag = False) -> Shaped[Any, "num_segments ..."]:
    return _core.segment_attention(logits, values, segment_ids, num_segments, sorted)
