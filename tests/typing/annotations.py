"""Names for annotations, by both ways to import them. Read by mypy and pyright, and run."""

from typing import Any

import numpy as np
from typing_extensions import assert_type

import anytensor as at
from anytensor.core import exp
from anytensor.segment import segment_mean
from anytensor.typing import ArrayT, SegmentIds, SegmentOut, SegmentValues, ShapeSize


def pool(x: SegmentValues, ids: SegmentIds, n: ShapeSize) -> SegmentOut:
    return segment_mean(x, ids, n)


def twice(x: ArrayT) -> ArrayT:
    return at.maximum(exp(x), x)


def axes_of(x: at.ShapedArray, axes: at.Axes = None) -> at.FloatArray:
    return at.mean(x, axes)


assert_type(twice(np.ones(3, np.float32)), np.ndarray[tuple[int], np.dtype[np.float32]])
rows: Any = at.rearrange(np.ones((2, 3)), "n f -> f n")
