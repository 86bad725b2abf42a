"""What a framework is called and a few things it is asked, as objects: one class per framework, no state.

For programs of the first versions; the functions of the package choose the framework by themselves.
"""

import math
import sys
from typing import Any

import numpy as np

from . import _core
from ._hook import no_type_check

__all__ = [
    "AbstractBackend",
    "ArrayApiBackend",
    "JaxBackend",
    "NativeBackend",
    "NumpyBackend",
    "TensorflowBackend",
    "TorchBackend",
    "get_backend",
]

DTYPES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64".split()
)
_REDUCTIONS = {"sum": _core.segment_sum, "min": _core.segment_min, "max": _core.segment_max}


@no_type_check
class AbstractBackend:
    """One framework. Attributes: framework_name, the constants, and its dtypes by name (``backend.float32``)."""

    framework_name: str = ""
    inf, ninf, nan, pi, e, newaxis = math.inf, -math.inf, math.nan, math.pi, math.e, None

    def __repr__(self) -> str:
        return f"<anytensor backend for {self.framework_name}>"

    def __getattr__(self, name: str) -> Any:
        if name not in DTYPES:
            raise AttributeError(f"{self!r} has no attribute {name!r}")
        return _core.dtype(name, self.from_numpy(np.zeros(1, np.float32)))

    def is_appropriate_type(self, tensor: Any) -> bool:
        """Whether it is an array of this framework."""
        try:
            return _core._backend_of(tensor, "is_appropriate_type", "tensor") == self.framework_name
        except RuntimeError:
            return False

    def from_numpy(self, x: Any) -> Any:
        """An array of this framework with the elements of a NumPy array."""
        raise NotImplementedError(f"{self!r} makes no arrays")

    def to_numpy(self, x: Any) -> Any:
        """The elements as a NumPy array."""
        return np.asarray(x)

    def shape(self, x: Any) -> Any:
        """Sizes of the axes."""
        return _core.shape(x)

    def device(self, x: Any) -> Any:
        """Where the elements are, as the framework says it."""
        return x.device

    def split(self, x: Any, indices_or_sections: Any, axis: int = 0) -> Any:
        """Parts along an axis, as anytensor.split gives them."""
        return _core.split(x, indices_or_sections, axis)

    def finfo(self, x: Any) -> Any:
        """Limits of a floating dtype, an array's or given itself."""
        return _core.finfo(self._with_dtype(x))

    def iinfo(self, x: Any) -> Any:
        """Limits of an integer dtype, an array's or given itself."""
        return _core.iinfo(self._with_dtype(x))

    def _with_dtype(self, x: Any) -> Any:
        """The array, or one of the dtype."""
        if self.is_appropriate_type(x):
            return x
        return _core.zeros((1,), dtype=x, like=self.from_numpy(np.zeros(1, np.float32)))

    def segment_reduce(
        self, x: Any, seg_ids: Any, num_segments: Any, reduction: str, sorted: bool = False
    ) -> Any:
        """Rows folded by segment: "sum", "min" or "max"."""
        if reduction not in _REDUCTIONS:
            raise ValueError(
                f"segment_reduce: argument 'reduction': expected 'sum', 'min' or 'max', found {reduction!r}"
            )
        return _REDUCTIONS[reduction](x, seg_ids, num_segments, sorted)


@no_type_check
class NumpyBackend(AbstractBackend):
    framework_name = "numpy"

    def from_numpy(self, x: Any) -> Any:
        return x

    def device(self, x: Any) -> Any:
        return "cpu"


@no_type_check
class JaxBackend(NumpyBackend):
    framework_name = "jax"

    def from_numpy(self, x: Any) -> Any:
        return sys.modules["jax.numpy"].asarray(x)

    def device(self, x: Any) -> Any:
        return x.device


@no_type_check
class TorchBackend(AbstractBackend):
    framework_name = "torch"

    def from_numpy(self, x: Any) -> Any:
        return sys.modules["torch"].from_numpy(x)

    def to_numpy(self, x: Any) -> Any:
        return x.detach().cpu().numpy()


@no_type_check
class TensorflowBackend(AbstractBackend):
    framework_name = "tensorflow"

    @property
    def tf(self) -> Any:
        """The module."""
        return sys.modules["tensorflow"]

    def from_numpy(self, x: Any) -> Any:
        return sys.modules["tensorflow"].convert_to_tensor(x)

    def to_numpy(self, x: Any) -> Any:
        return x.numpy()


@no_type_check
class NativeBackend(AbstractBackend):
    framework_name = "native"

    def from_numpy(self, x: Any) -> Any:
        return _core._native_from_dlpack(x, None)

    def device(self, x: Any) -> Any:
        return "cpu"


@no_type_check
class ArrayApiBackend(AbstractBackend):
    """Any other library with an Array API namespace, met through one of its arrays."""

    def __init__(self, name: str, xp: Any):
        self.framework_name = name
        self._xp = xp

    def from_numpy(self, x: Any) -> Any:
        return self._xp.asarray(x)

    def to_numpy(self, x: Any) -> Any:
        return np.from_dlpack(x)


_KNOWN: dict[str, AbstractBackend] = {
    backend.framework_name: backend
    for backend in (NumpyBackend(), JaxBackend(), TorchBackend(), TensorflowBackend(), NativeBackend())
}


@no_type_check
def get_backend(tensor: Any) -> AbstractBackend:
    """The backend of an array; the same object for every array of a framework.

    Errors   RuntimeError and TypeError: scalars, lists, None, and whatever else is no array of a framework that is
             loaded.
    """
    name = _core._backend_of(tensor, "get_backend", "tensor")
    if name not in _KNOWN:
        from .namespace import array_namespace

        _KNOWN[name] = ArrayApiBackend(name, array_namespace(tensor))
    return _KNOWN[name]
