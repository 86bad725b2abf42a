from collections.abc import Callable
from typing import Any

from . import *

def as_array_result(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function like fn whose results are arrays: a scalar becomes a 0-d array of the framework of the arguments."""
