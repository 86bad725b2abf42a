"""promote() and promote_scalars(): decorators that bring a function's operands to one framework and dtype.

The operands are found here, as the function's signature says, and promoted in the extension (src/python/promoted.c) by
the rule of every call of the library. What the decorators give are plain functions, which torch.compile inlines.
"""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from sys import maxsize
from typing import Any, TypeVar

from . import _core
from ._hook import no_type_check

_Function = TypeVar("_Function", bound=Callable[..., Any])

_KINDS = {"data": "d", "index": "i", "mask": "m", "shape": "s"}


@no_type_check
def promote(
    *, copy: bool | None = None, fallback: str | None = None, **roles: str
) -> Callable[[_Function], _Function]:
    """Promotes the named arguments of a function before each call, by their kinds.

        @promote(x="data", y="data", ids="index")
        def f(x, y, ids, scale=2.0): ...

    "data"    one dtype for all of them: Python's numbers take that of the arrays, floating arrays win over integers;
              NumPy arrays join the other framework, numbers become 0-d arrays
    "index"   must be integral; its dtype is kept
    "mask"    becomes bool
    "shape"   a size: an int (whole floats become one), a symbol, or a 0-d integral array as it is

    None stays None, defaults are promoted like arguments, all other arguments pass through. copy and fallback as in
    promote_options(), or None for the options in force when the function is called.

    Errors: TypeError for arrays of two frameworks, lists, an index that is not integral, what is no size; ValueError
    for a kind that there is not.
    """
    if not roles:
        raise TypeError("promote: expected at least one role, such as x='data'")
    for name, kind in roles.items():
        if not isinstance(kind, str):
            raise TypeError(f"promote: argument '{name}': expected the name of a kind, found {kind!r}")
        if kind not in _KINDS:
            raise ValueError(
                f"promote: argument '{name}': expected one of {', '.join(_KINDS)}, found {kind!r}"
            )
    return lambda function: _promoting(function, roles, copy, fallback)


@no_type_check
def promote_scalars(
    *names: str, copy: bool | None = None, fallback: str | None = None
) -> Callable[[_Function], _Function]:
    """promote() with every name as data."""
    if not names:
        raise TypeError("promote_scalars: expected at least one name")
    return promote(copy=copy, fallback=fallback, **dict.fromkeys(names, "data"))


@no_type_check
def _promoting(function, roles, copy, fallback):
    bound = signature(function)
    order = list(bound.parameters.values())
    chosen = [one for one in order if one.name in roles]
    label = f"promote({getattr(function, '__qualname__', type(function).__name__)})"
    names = tuple(one.name for one in chosen)
    kinds = "".join(_KINDS[roles[name]] for name in names)
    spread = [one.name for one in chosen if one.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)]
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    places = tuple(order.index(one) if one.kind in positional else maxsize for one in chosen)
    defaults = tuple(one.default for one in chosen)
    reach = max(places, default=-1)
    first = places == tuple(range(len(places)))  # the roles are those of the first parameters
    many = len(places)
    by_keyword = all(one.kind is not Parameter.POSITIONAL_ONLY for one in chosen)
    missing = Parameter.empty

    @no_type_check
    @wraps(function)
    def wrapper(*args, **kwargs):
        if spread:
            raise TypeError(f"{label}: argument '{spread[0]}': expected an array or a scalar, found many")
        given = len(args)
        if first and reach < given:
            promoted = _core._promote(label, names, kinds, args[:many], copy, fallback)
            return function(*promoted, *args[many:], **kwargs)
        if reach < given:
            values = tuple([args[place] for place in places])
        elif by_keyword:
            values = tuple(
                [
                    args[place] if place < given else kwargs.get(name, default)
                    for name, place, default in zip(names, places, defaults, strict=True)
                ]
            )
            for value in values:
                if value is missing:
                    bound.bind(*args, **kwargs)  # which says what is missing
        else:
            whole = bound.bind(*args, **kwargs)
            whole.apply_defaults()
            args, kwargs = whole.args, whole.kwargs
            given = len(args)
            values = tuple([whole.arguments[name] for name in names])
        args = list(args)
        promoted = _core._promote(label, names, kinds, values, copy, fallback)
        for name, place, value in zip(names, places, promoted, strict=True):
            if place < given:
                args[place] = value
            else:
                kwargs[name] = value
        return function(*args, **kwargs)

    return wrapper
