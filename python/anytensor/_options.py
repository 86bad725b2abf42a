"""promote_options(): how NumPy arrays join the other framework in a call."""

from contextlib import ContextDecorator
from typing import Any

from . import _core
from ._hook import no_type_check


@no_type_check
class promote_options(ContextDecorator):
    """Sets how NumPy arrays join another framework, within a ``with`` block or a decorated function.

    copy      True: a NumPy array is always copied, so that later writes to it are not seen; False: its memory is
              shared where the framework can share it (torch).
    fallback  what to do with an array whose memory cannot be shared (negative strides, foreign byte order,
              misaligned): ``"copy"`` warns and copies, ``"error"`` is a ValueError.

    Both are set on entry, so a nested bare ``promote_options()`` means the defaults, and restored on exit. Threads
    and asyncio tasks have their own.
    """

    def __init__(self, *, copy: bool = False, fallback: str = "copy") -> None:
        self._options = (copy, fallback)
        self._tokens: list[Any] = []

    def _recreate_cm(self) -> "promote_options":
        return type(self)(copy=self._options[0], fallback=self._options[1])

    def __enter__(self) -> None:
        self._tokens.append(_core._enter_options(*self._options))
        return None

    def __exit__(self, *_: object) -> None:
        _core._leave_options(self._tokens.pop())
