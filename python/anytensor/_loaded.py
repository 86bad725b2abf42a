"""Modules that may be loaded one day, looked at without importing them.

``module_if_loaded`` answers from ``sys.modules``. A callback for a module that is not there yet waits in a queue;
a finder at the head of ``sys.meta_path`` wraps the loader of the watched names only, and runs the callbacks once
the import has succeeded.
"""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ._hook import no_type_check

_waiting = {}  # module name -> callbacks, in the order in which they came


class _Loader:
    """A module's own loader, and what waits for the module."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader  # the module keeps no trace of this
        self._loader.exec_module(module)
        _drain(module.__name__)

    def __getattr__(self, name):
        return getattr(self._loader, name)


class _Finder:
    """Asks the finders behind it for watched names, and wraps the loader that they come up with."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in _waiting:
            return None
        for finder in sys.meta_path:
            if finder is _Finder or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


def _drain(name):
    """Runs what waits for a module, and what is queued meanwhile."""
    module = sys.modules[name]
    while callbacks := _waiting.pop(name, None):
        for callback in callbacks:
            callback(module)


@no_type_check
def module_if_loaded(
    name: str, callback: Callable[[ModuleType], Any] | None = None, *, raises: bool = False
) -> ModuleType | None:
    """The module of that name if it is loaded, else None; it is never imported.

    callback(module) runs at once if the module is loaded, otherwise as soon as it is first imported.
    With raises=True a module that is not loaded is a RuntimeError; the callback stays queued.
    """
    module = sys.modules.get(name)
    half_way = getattr(getattr(module, "__spec__", None), "_initializing", False)
    if callback is not None:
        if module is not None and not half_way:
            callback(module)
        else:
            _waiting.setdefault(name, []).append(callback)
            if _Finder not in sys.meta_path:
                sys.meta_path.insert(0, _Finder)
    if module is None and raises:
        raise RuntimeError(f"{name} is not imported")
    return module
