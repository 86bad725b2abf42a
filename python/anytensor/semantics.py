"""What holds for segment operations of every framework: the value of a segment without rows."""

import math
from typing import Any

from . import _core
from ._hook import no_type_check
from .backends import DTYPES

__all__ = ["empty_segment_identity"]

_WHOLE = {name for name in DTYPES if "int" in name}


@no_type_check
def empty_segment_identity(dtype: Any, reduction: str, *, xp: Any) -> Any:
    """The value of an empty segment: what changes nothing when it is folded with others.

    dtype      a name, a NumPy dtype or the framework's own
    reduction  "sum": 0; "min": +inf, or the largest integer; "max": -inf, or the smallest integer. The minimum of no
               bool is True (all), their maximum False (any).
    xp         the namespace whose iinfo() is asked about dtypes that this library has no name for
    Errors     ValueError: another reduction, or a dtype without an order.
    """
    if reduction not in ("sum", "min", "max"):
        raise ValueError(
            "empty_segment_identity: argument 'reduction': expected 'sum', 'min' or 'max', "
            f"found {reduction!r}"
        )
    if reduction == "sum":
        return 0
    name, least = _core._dtype_name(dtype), reduction == "max"
    if name == "bool":
        return not least
    if name in _WHOLE:
        return _end_of_integers(name, least)
    if name is not None or _is_floating(dtype):
        return -math.inf if least else math.inf
    limits = xp.iinfo(dtype)  # raises for what is no integer
    return limits.min if least else limits.max


def _end_of_integers(name, least):
    bits = int(name.partition("int")[2])
    if name.startswith("u"):
        return 0 if least else 2**bits - 1
    return -(2 ** (bits - 1)) if least else 2 ** (bits - 1) - 1


def _is_floating(dtype):
    """Of a dtype that NumPy knows behind the framework's, or that says its kind."""
    return getattr(getattr(dtype, "as_numpy_dtype", dtype), "kind", None) == "f"
