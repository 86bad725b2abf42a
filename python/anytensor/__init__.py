"""AnyTensor: write a tensor helper once; it runs on whatever array the caller already has.

The functions are builtins of the C extension ``anytensor._core``; see ``help(anytensor.segment_sum)`` and
docs/reference.md. No array framework is imported here, nor later: a framework is found when it is loaded.
"""

import importlib
from typing import TYPE_CHECKING

from . import _hook, backends, tree
from ._cache import cache
from ._core import (
    __version__,
    align_arrays,
    arange,
    astype,
    cast,
    clip,
    concatenate,
    cumsum,
    dtype,
    e,
    equal_nan,
    exp,
    fill_nan,
    fill_nan_mask,
    finfo,
    full,
    full_like,
    iinfo,
    inf,
    is_finite,
    is_inf,
    is_nan,
    isfinite,
    isinf,
    isnan,
    log,
    matmul,
    max,
    maximum,
    mean,
    min,
    minimum,
    nan,
    nan_fill,
    nan_fill_mask,
    nan_to_num,
    ninf,
    ones,
    ones_like,
    partition_ids,
    partition_max,
    partition_min,
    partition_softmax,
    partition_sum,
    pi,
    prod,
    repeat,
    reshape,
    rsqrt,
    segment_all,
    segment_any,
    segment_argmax,
    segment_argmin,
    segment_attention,
    segment_count,
    segment_logsumexp,
    segment_max,
    segment_max_or_constant,
    segment_mean,
    segment_min,
    segment_min_or_constant,
    segment_normalize,
    segment_prod,
    segment_softmax,
    segment_std,
    segment_sum,
    segment_variance,
    shape,
    split,
    sqrt,
    stack,
    sum,
    take,
    transpose,
    where,
    zeros,
    zeros_like,
)
from ._dynamo import register as _register_dynamo
from ._loaded import module_if_loaded
from ._options import promote_options
from ._typecheck import enable_typecheck
from ._typecheck import is_hooked as _is_hooked
from ._typecheck import use_checked as _use_checked
from .backends import get_backend
from .semantics import empty_segment_identity
from .torchscript import enable_torchscript

if TYPE_CHECKING:  # for readers; __getattr__ finds them when they are asked for
    from einops import einsum, pack, rearrange, reduce, unpack

    from .typing import (
        ArrayT,
        Axes,
        Bool,
        DtypeLike,
        Float,
        FloatArray,
        Inexact,
        Int,
        IntArray,
        Integer,
        Num,
        Real,
        SegmentIds,
        SegmentOut,
        SegmentValues,
        Shaped,
        ShapedArray,
        ShapeLike,
        ShapeSize,
    )
from ._promote import promote, promote_scalars

__all__ = [
    "ArrayT",
    "Axes",
    "Bool",
    "DtypeLike",
    "Float",
    "FloatArray",
    "Inexact",
    "Int",
    "IntArray",
    "Integer",
    "Num",
    "Real",
    "SegmentIds",
    "SegmentOut",
    "SegmentValues",
    "ShapeLike",
    "ShapeSize",
    "Shaped",
    "ShapedArray",
    "__version__",
    "align_arrays",
    "arange",
    "astype",
    "backends",
    "cache",
    "cast",
    "clip",
    "concatenate",
    "cumsum",
    "dtype",
    "e",
    "einsum",
    "empty_segment_identity",
    "enable_torchscript",
    "enable_typecheck",
    "equal_nan",
    "exp",
    "fill_nan",
    "fill_nan_mask",
    "finfo",
    "full",
    "full_like",
    "get_backend",
    "iinfo",
    "inf",
    "is_finite",
    "is_inf",
    "is_nan",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "module_if_loaded",
    "nan",
    "nan_fill",
    "nan_fill_mask",
    "nan_to_num",
    "newaxis",
    "ninf",
    "ones",
    "ones_like",
    "pack",
    "partition_ids",
    "partition_max",
    "partition_min",
    "partition_softmax",
    "partition_sum",
    "pi",
    "prod",
    "promote",
    "promote_options",
    "promote_scalars",
    "rearrange",
    "reduce",
    "repeat",
    "reshape",
    "rsqrt",
    "segment_all",
    "segment_any",
    "segment_argmax",
    "segment_argmin",
    "segment_attention",
    "segment_count",
    "segment_logsumexp",
    "segment_max",
    "segment_max_or_constant",
    "segment_mean",
    "segment_min",
    "segment_min_or_constant",
    "segment_normalize",
    "segment_prod",
    "segment_softmax",
    "segment_std",
    "segment_sum",
    "segment_variance",
    "shape",
    "split",
    "sqrt",
    "stack",
    "sum",
    "take",
    "transpose",
    "tree",
    "unpack",
    "where",
    "zeros",
    "zeros_like",
]

_EINOPS = ("einsum", "pack", "rearrange", "reduce", "unpack")

newaxis = None

if not TYPE_CHECKING:

    @_hook.no_type_check
    def __getattr__(name):
        """einops and jaxtyping are imported when one of their names is first used."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = "einops" if name in _EINOPS else f"{__name__}.typing"
        value = globals()[name] = getattr(importlib.import_module(home), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


module_if_loaded("torch._dynamo", _register_dynamo)
enable_torchscript()
if _is_hooked():
    _use_checked()
