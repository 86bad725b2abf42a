# Written by tools/opgen from include/anytensor/ops.def and ops.h: change those, then run tools/opgen --write.
from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np
from jaxtyping import Integer, Shaped
from numpy.typing import NDArray

_ArrayT = TypeVar("_ArrayT")  # an array of any framework
_Scalar: TypeAlias = int | float | np.generic  # beside an array; a Python scalar takes the array's dtype
_Size: TypeAlias = int | Any  # a number, a 0-d integer array, or the framework's symbol while it traces

__version__: str
ops: tuple[str, ...]  # the names of the functions of arrays
aliases: dict[str, str]  # other names of some of them
facts: tuple[str, ...]  # those of constants, dtypes and limits

class UnknownArrayError(TypeError, RuntimeError):
    """An array was asked for, and what came is none of any framework that is loaded."""

def exp(x: _ArrayT) -> _ArrayT:
    """e raised to each element."""

def log(x: _ArrayT) -> _ArrayT:
    """Natural logarithm of each element; -inf at 0, NaN below."""

def sqrt(x: _ArrayT) -> _ArrayT:
    """Square root of each element; NaN below 0."""

def rsqrt(x: _ArrayT) -> _ArrayT:
    """One over the square root of each element; +inf at 0."""

def is_nan(x: _ArrayT) -> _ArrayT:
    """True where an element is NaN."""

isnan = is_nan

def is_inf(x: _ArrayT) -> _ArrayT:
    """True where an element is infinite, of either sign."""

isinf = is_inf

def is_finite(x: _ArrayT) -> _ArrayT:
    """True where an element is neither NaN nor infinite."""

isfinite = is_finite

def maximum(x: _ArrayT | _Scalar, y: _ArrayT | _Scalar) -> _ArrayT:
    """Larger of two arrays, elementwise with broadcasting."""

def minimum(x: _ArrayT | _Scalar, y: _ArrayT | _Scalar) -> _ArrayT:
    """Smaller of two arrays, elementwise with broadcasting."""

def equal_nan(x: _ArrayT | _Scalar, y: _ArrayT | _Scalar) -> _ArrayT:
    """True where two arrays are equal, or both NaN; elementwise with broadcasting."""

def fill_nan(x: _ArrayT | _Scalar, value: _ArrayT | _Scalar = 0.0) -> _ArrayT:
    """Replaces NaN by a value; infinities stay."""

nan_fill = fill_nan

def fill_nan_mask(x: _ArrayT | _Scalar, value: _ArrayT | _Scalar = 0.0) -> tuple[_ArrayT, _ArrayT]:
    """Replaces NaN by a value, and says where: the filled array, and a mask that is True where x was NaN."""

nan_fill_mask = fill_nan_mask

def nan_to_num(x: _ArrayT, *, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> _ArrayT:
    """Replaces NaN and infinities by finite numbers."""

def where(condition: Any, x: _ArrayT | _Scalar, y: _ArrayT | _Scalar) -> _ArrayT:
    """x where the condition holds, y elsewhere, with broadcasting."""

def clip(x: _ArrayT, min: _ArrayT | _Scalar | None = None, max: _ArrayT | _Scalar | None = None) -> _ArrayT:
    """Bounds each element from below, then from above; a bound that is not given does nothing."""

def sum(x: _ArrayT, axes: int | Sequence[int] | None = None, *, keepdims: bool = False) -> _ArrayT:
    """Sum over axes."""

def prod(x: _ArrayT, axes: int | Sequence[int] | None = None, *, keepdims: bool = False) -> _ArrayT:
    """Product over axes."""

def mean(x: _ArrayT, axes: int | Sequence[int] | None = None, *, keepdims: bool = False) -> _ArrayT:
    """Arithmetic mean over axes."""

def min(x: _ArrayT, axes: int | Sequence[int] | None = None, *, keepdims: bool = False) -> _ArrayT:
    """Smallest element over axes."""

def max(x: _ArrayT, axes: int | Sequence[int] | None = None, *, keepdims: bool = False) -> _ArrayT:
    """Largest element over axes."""

def cumsum(x: _ArrayT, axis: int | None = 0) -> _ArrayT:
    """Running sum along one axis."""

def take(x: _ArrayT, indices: Any, axis: int | None = 0) -> _ArrayT:
    """Elements of x at indices along one axis; axis None takes from the flattened array."""

def repeat(
    x: _ArrayT,
    repeats: Any,
    *,
    total_repeat_length: _Size | None = None,
    axis: int | None = None,
) -> _ArrayT:
    """Repeats each element along an axis; axis None flattens x first."""

def shape(x: _ArrayT) -> tuple[_Size, ...]:
    """Sizes of all axes: numbers, or the framework's symbols while it traces."""

def reshape(x: _ArrayT, shape: int | Sequence[_Size]) -> _ArrayT:
    """The same elements in another shape, in row-major order; one size may be -1."""

def transpose(x: _ArrayT, axes: int | Sequence[int] | None = None) -> _ArrayT:
    """The same elements with the axes in another order; None reverses them."""

def split(
    x: _ArrayT,
    indices_or_sections: int | Sequence[_Size] | Any,
    axis: int | None = 0,
) -> list[_ArrayT]:
    """Cuts an array along one axis, into equal sections or before given indices, as a list."""

def concatenate(arrays: Sequence[_ArrayT], axis: int | None = 0) -> _ArrayT:
    """Joins arrays along an existing axis; axis None flattens them first."""

def stack(arrays: Sequence[_ArrayT], axis: int | None = 0) -> _ArrayT:
    """Joins arrays of one shape along a new axis."""

def astype(x: _ArrayT, dtype: Any) -> _ArrayT:
    """x with another dtype; x itself where it has that dtype already."""

def cast(x: _ArrayT, dtype: Any) -> _ArrayT:
    """x with another dtype, as by astype()."""

def matmul(x: _ArrayT | _Scalar, y: _ArrayT | _Scalar) -> _ArrayT:
    """Matrix product; axes before the last two are batches and broadcast."""

@overload
def full(
    shape: int | Sequence[_Size],
    fill_value: Any,
    *,
    dtype: Any = None,
    like: None = None,
) -> NDArray[Any]: ...
@overload
def full(shape: int | Sequence[_Size], fill_value: Any, *, dtype: Any = None, like: _ArrayT) -> _ArrayT:
    """An array of one value."""

@overload
def zeros(shape: int | Sequence[_Size], *, dtype: Any = None, like: None = None) -> NDArray[Any]: ...
@overload
def zeros(shape: int | Sequence[_Size], *, dtype: Any = None, like: _ArrayT) -> _ArrayT:
    """An array of zeros."""

@overload
def ones(shape: int | Sequence[_Size], *, dtype: Any = None, like: None = None) -> NDArray[Any]: ...
@overload
def ones(shape: int | Sequence[_Size], *, dtype: Any = None, like: _ArrayT) -> _ArrayT:
    """An array of ones."""

def full_like(x: _ArrayT, fill_value: Any, dtype: Any = None) -> _ArrayT:
    """An array of one value with the shape, device and (unless given) dtype of x."""

def zeros_like(x: _ArrayT, dtype: Any = None) -> _ArrayT:
    """Zeros with the shape, device and (unless given) dtype of x."""

def ones_like(x: _ArrayT, dtype: Any = None) -> _ArrayT:
    """Ones with the shape, device and (unless given) dtype of x."""

@overload
def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    like: None = None,
    device: Any = None,
) -> NDArray[Any]: ...
@overload
def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    like: _ArrayT,
    device: Any = None,
) -> _ArrayT:
    """Evenly spaced values from start (0 if only one bound is given) up to and without stop."""

def segment_sum(
    x: Shaped[_ArrayT, "E ..."],
    segment_ids: Integer[Any, "E"],
    num_segments: _Size,
    sorted: bool = False,
) -> Shaped[_ArrayT, "num_segments ..."]:
    """Sum of the rows of x per segment."""

def segment_max(
    x: Shaped[_ArrayT, "E ..."],
    segment_ids: Integer[Any, "E"],
    num_segments: _Size,
    sorted: bool = False,
) -> Shaped[_ArrayT, "num_segments ..."]:
    """Largest row of x per segment, elementwise."""

def segment_min(
    x: Shaped[_ArrayT, "E ..."],
    segment_ids: Integer[Any, "E"],
    num_segments: _Size,
    sorted: bool = False,
) -> Shaped[_ArrayT, "num_segments ..."]:
    """Smallest row of x per segment, elementwise."""

def segment_mean(
    x: Shaped[_ArrayT, "E ..."],
    segment_ids: Integer[Any, "E"],
    num_segments: _Size,
    sorted: bool = False,
) -> Shaped[_ArrayT, "num_segments ..."]:
    """Mean of the rows of x per segment."""

def segment_variance(
    x: Shaped[_ArrayT, "E ..."],
    segment_ids: Integer[Any, "E"],
    num_segments: _Size,
    sorted: bool = False,
) -> Shaped[_ArrayT, "num_segments ..."]:
    """Population variance (divided by the count) of the rows of x per segment."""

def segment_normalize(
    x: Shaped[_ArrayT, "E ..."],
    segment_ids: Integer[Any, "E"],
    num_segments: _Size,
    sorted: bool = False,
) -> Shaped[_ArrayT, "E ..."]:
    """Each row of x over the sum of its segment; 0 where that sum is 0."""

def segment_softmax(
    logits: Shaped[_ArrayT, "E ..."],
    segment_ids: Integer[Any, "E"],
    num_segments: _Size,
    sorted: bool = False,
) -> Shaped[_ArrayT, "E ..."]:
    """Softmax over the rows of each segment, elementwise: positive, and summing to 1 per segment."""

def segment_count(
    segment_ids: Integer[_ArrayT, "E"],
    num_segments: _Size,
    sorted: bool = False,
) -> Shaped[_ArrayT, "num_segments"]:
    """Number of rows per segment."""

def segment_min_or_constant(
    x: Shaped[_ArrayT, "E ..."],
    segment_ids: Integer[Any, "E"],
    num_segments: _Size,
    constant: Any = 0.0,
    sorted: bool = False,
) -> Shaped[_ArrayT, "num_segments ..."]:
    """Smallest row of x per segment, and a constant in empty segments."""

def segment_max_or_constant(
    x: Shaped[_ArrayT, "E ..."],
    segment_ids: Integer[Any, "E"],
    num_segments: _Size,
    constant: Any = 0.0,
    sorted: bool = False,
) -> Shaped[_ArrayT, "num_segments ..."]:
    """Largest row of x per segment, and a constant in empty segments."""

def partition_ids(partitions: Integer[_ArrayT, "N"], total_length: _Size) -> Shaped[_ArrayT, "total_length"]:
    """Segment ids of consecutive runs: 0 partitions[0] times, then 1 partitions[1] times, and so on."""

def partition_sum(
    x: Shaped[_ArrayT, "total_length ..."],
    partitions: Integer[Any, "N"],
    total_length: _Size,
) -> Shaped[_ArrayT, "N ..."]:
    """Sum of each run of rows; runs are given by their lengths."""

def partition_min(
    x: Shaped[_ArrayT, "total_length ..."],
    partitions: Integer[Any, "N"],
    total_length: _Size,
) -> Shaped[_ArrayT, "N ..."]:
    """Smallest row of each run, elementwise; runs are given by their lengths."""

def partition_max(
    x: Shaped[_ArrayT, "total_length ..."],
    partitions: Integer[Any, "N"],
    total_length: _Size,
) -> Shaped[_ArrayT, "N ..."]:
    """Largest row of each run, elementwise; runs are given by their lengths."""

def partition_softmax(
    logits: Shaped[_ArrayT, "total_length ..."],
    partitions: Integer[Any, "N"],
    total_length: _Size,
) -> Shaped[_ArrayT, "total_length ..."]:
    """Softmax over each run of rows; runs are given by their lengths."""

def segment_prod(
    x: Shaped[_ArrayT, "E ..."],
    segment_ids: Integer[Any, "E"],
    num_segments: _Size,
    sorted: bool = False,
) -> Shaped[_ArrayT, "num_segments ..."]:
    """Product of the rows of x per segment."""

def segment_any(
    x: Shaped[_ArrayT, "E ..."],
    segment_ids: Integer[Any, "E"],
    num_segments: _Size,
    sorted: bool = False,
) -> Shaped[_ArrayT, "num_segments ..."]:
    """Whether some row of x is true per segment, elementwise."""

def segment_all(
    x: Shaped[_ArrayT, "E ..."],
    segment_ids: Integer[Any, "E"],
    num_segments: _Size,
    sorted: bool = False,
) -> Shaped[_ArrayT, "num_segments ..."]:
    """Whether all rows of x are true per segment, elementwise."""

def segment_std(
    x: Shaped[_ArrayT, "E ..."],
    segment_ids: Integer[Any, "E"],
    num_segments: _Size,
    sorted: bool = False,
) -> Shaped[_ArrayT, "num_segments ..."]:
    """Standard deviation of the rows of x per segment: the root of the population variance."""

def segment_argmin(
    x: Shaped[_ArrayT, "E ..."],
    segment_ids: Integer[Any, "E"],
    num_segments: _Size,
    sorted: bool = False,
) -> Shaped[_ArrayT, "num_segments ..."]:
    """The row of x, by its number, that holds the smallest element of its segment, elementwise."""

def segment_argmax(
    x: Shaped[_ArrayT, "E ..."],
    segment_ids: Integer[Any, "E"],
    num_segments: _Size,
    sorted: bool = False,
) -> Shaped[_ArrayT, "num_segments ..."]:
    """The row of x, by its number, that holds the largest element of its segment, elementwise."""

def segment_logsumexp(
    logits: Shaped[_ArrayT, "E ..."],
    segment_ids: Integer[Any, "E"],
    num_segments: _Size,
    sorted: bool = False,
) -> Shaped[_ArrayT, "num_segments ..."]:
    """Logarithm of the sum of e raised to the rows of each segment, elementwise; nothing overflows on the way."""

def segment_attention(
    logits: Shaped[_ArrayT, "E ..."],
    values: Shaped[_ArrayT, "E ..."],
    segment_ids: Integer[Any, "E"],
    num_segments: _Size,
    sorted: bool = False,
) -> Shaped[_ArrayT, "num_segments ..."]:
    """Mean of the values of each segment, weighted by the softmax of its logits."""

def align_arrays(
    *arrays: _ArrayT | _Scalar | None,
    copy: bool | None = None,
    fallback: str | None = None,
) -> tuple[_ArrayT | None, ...]:
    """The arrays on one framework, as a tuple."""

def inf(like: Any) -> float:
    """Infinity as a Python float, for use beside an array."""

def ninf(like: Any) -> float:
    """Minus infinity as a Python float, for use beside an array."""

def nan(like: Any) -> float:
    """NaN as a Python float, for use beside an array."""

def pi(like: Any) -> float:
    """The number pi as a Python float, for use beside an array."""

def e(like: Any) -> float:
    """The number e as a Python float, for use beside an array."""

def dtype(name: str, like: Any) -> Any:
    """The dtype of that name, as the framework of an array has it."""

def finfo(x: Any) -> Any:
    """Limits of the floating dtype of an array, as its framework says them."""

def iinfo(x: Any) -> Any:
    """Limits of the integer dtype of an array, as its framework says them."""
