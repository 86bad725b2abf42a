"""Names for annotations: arrays of any framework, by dtype and shape, as jaxtyping writes them.

    def mean_pool(x: SegmentValues, ids: SegmentIds, n: ShapeSize) -> SegmentOut: ...

jaxtyping checks them at run time where it is asked to; equal names of axes are equal sizes.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

from jaxtyping import Bool, Float, Inexact, Int, Integer, Num, Real, Shaped

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
]

ArrayT = TypeVar("ArrayT")  # an array of any framework; the same one where it stands twice
Axes: TypeAlias = int | Sequence[int] | None
ShapeSize: TypeAlias = Any  # a number, a 0-d integer array, or the framework's symbol while it traces
ShapeLike: TypeAlias = int | Sequence[Any] | Any
DtypeLike: TypeAlias = Any  # a name, a NumPy dtype, or the framework's own

ShapedArray: TypeAlias = Shaped[Any, "..."]
FloatArray: TypeAlias = Float[Any, "..."]
IntArray: TypeAlias = Integer[Any, "..."]
SegmentValues: TypeAlias = Shaped[Any, "n ..."]
SegmentIds: TypeAlias = Integer[Any, "n"]
SegmentOut: TypeAlias = Shaped[Any, "num_segments ..."]
