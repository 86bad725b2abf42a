from typing import Any, final

from numpy.typing import DTypeLike, NDArray

__all__ = ["Array", "from_dlpack"]

@final
class Array:
    """An array of the library's own, in the CPU's memory; made by from_dlpack(), and by every function of anytensor
    that is given one. Immutable here; what shares its memory may not be."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def ndim(self) -> int: ...
    def __float__(self) -> float: ...
    def __bool__(self) -> bool: ...
    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]: ...
    def __dlpack__(
        self,
        /,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self, /) -> tuple[int, int]: ...

def from_dlpack(x: Any, /, *, copy: bool | None = None) -> Array:
    """An Array over the memory of x: any array with ``__dlpack__``, or a DLPack capsule, which is consumed."""
