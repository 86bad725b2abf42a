"""What jaxtyping's import hook leaves alone: functions that Dynamo inlines, which cannot see through its wrappers."""

from typing import TypeVar

_T = TypeVar("_T")


def no_type_check(decorated: _T) -> _T:
    """The hook looks at the name only. typing's own would hide the types of what it decorates from readers, too."""
    return decorated
