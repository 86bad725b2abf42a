"""promote_options(): how NumPy arrays join the other framework in a call."""

from contextlib import ContextDecorator
from typing import no_type_check

from . import _core


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

    def __init__(self, *, copy=False, fallback="copy"):
        self._options = (copy, fallback)
        self._tokens = []

    def _recreate_cm(self):
        return type(self)(copy=self._options[0], fallback=self._options[1])

    def __enter__(self):
        self._tokens.append(_core._enter_options(*self._options))
        return None

    def __exit__(self, *_):
        _core._leave_options(self._tokens.pop())
