"""The functions of the package by the path under which programs of the first versions import them."""

import functools
import sys

import numpy as np

from . import _core
from ._hook import no_type_check
from .namespace import array_namespace

_package = sys.modules[__package__]


@no_type_check
def __getattr__(name):
    if name not in _package.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_package, name)


@no_type_check
def as_array_result(fn):
    """A function like fn whose results are arrays: a scalar becomes a 0-d array of the framework of the arguments."""

    @functools.wraps(fn)
    def function(*args, **kwargs):
        result = fn(*args, **kwargs)
        if not isinstance(result, bool | int | float | complex | np.generic):
            return result
        arrays = [x for x in (*args, *kwargs.values()) if _is_array(x)]
        return array_namespace(*arrays).asarray(result)

    return function


def _is_array(x):
    try:
        _core._backend_of(x, "as_array_result", "fn")
    except RuntimeError:
        return False
    return True
