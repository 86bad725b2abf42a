"""cache: what has been computed from arrays, kept for as long as they live and the cache is on.

State and lookups are the extension's (src/python/cache.c). Here are the forms in which users turn it on: they run the
user's functions, and torch.compile inlines them.
"""

from collections.abc import Iterable
from contextvars import ContextVar
from functools import wraps
from typing import Any

from . import _core
from ._hook import no_type_check


@no_type_check
def _sticky(function):
    @no_type_check
    @wraps(function)
    def wrapper(*args, **kwargs):
        _core._cache_enable()
        return function(*args, **kwargs)

    return wrapper


@no_type_check
class _Scope:
    """What ``cache()`` gives: a block within which the cache is on, or a decorator."""

    def __init__(self):
        self._entered = []

    def __call__(self, function):
        return _sticky(function)

    def __enter__(self):
        self._entered.append(_core._cache_enter())
        return cache

    def __exit__(self, *_):
        _core._cache_leave(self._entered.pop())


@no_type_check
class _Cache:
    """Keeps what was computed from arrays, while it is on: structure that layers share is then computed once.

    It is off to begin with, and a matter of the context: a new thread starts with it off, an asyncio task shares the
    cache of the task that has started it.

        with cache():            # on within the block, which may be nested; ``with cache:`` does the same
        @cache                   # on from the first call of the function to cache.disable(); also @cache()
        cache.enable(), cache.disable()

        cache.store("degrees", (senders, receivers), degrees, extra=(True,))
        cache.lookup("degrees", (senders, receivers), extra=(True,))   # None without
        cache.purge("degrees", senders)
        cache["degrees"], "degrees" in cache                           # the live dictionary of a namespace

    Entries are of arrays, held weakly and compared by identity; an entry goes when one of its arrays does. Whoever
    writes into an array purges it (torch's tensors count writes by themselves). Values that are traced are kept within
    their trace and under traced arrays only. ``partition_ids`` and the other partition functions look here, too
    (namespace ``"partition"``). Under torch.compile all of this does nothing.
    """

    @staticmethod
    def lookup(namespace: str, obj: Any, extra: Iterable[Any] = ()) -> Any:
        """What was stored under an array (or a tuple of arrays) and the extra key; None without."""
        return _core._cache_lookup(namespace, obj, extra)

    @staticmethod
    def store(namespace: str, obj: Any, value: Any, extra: Iterable[Any] = ()) -> None:
        """Keeps a value for as long as the arrays live and the cache is on; does nothing while it is off."""
        return _core._cache_store(namespace, obj, value, extra)

    @staticmethod
    def purge(namespace: str, obj: Any) -> None:
        """Drops what was stored under an array, whatever the extra key."""
        return _core._cache_purge(namespace, obj)

    purge_cache = purge

    @staticmethod
    def enable() -> None:
        """On until disable()."""
        return _core._cache_enable()

    @staticmethod
    def disable() -> None:
        """Off, and everything dropped, within a block, too."""
        return _core._cache_disable()

    def __init__(self):
        self._entered = ContextVar("anytensor.cache.entered", default=())

    def __call__(self, function=None):
        return _Scope() if function is None else _sticky(function)

    def __getitem__(self, name):
        return _core._cache_space(name)

    def __contains__(self, name):
        return _core._cache_has(name)

    def __enter__(self):
        self._entered.set((*self._entered.get(), _core._cache_enter()))
        return self

    def __exit__(self, *_):
        *outer, entered = self._entered.get()
        self._entered.set(tuple(outer))
        _core._cache_leave(entered)

    def __repr__(self):
        return "<anytensor.cache>"


cache = _Cache()
