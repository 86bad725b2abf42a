"""What torch.compile has to know of the builtins: registered when torch._dynamo is first imported.

Array functions go into the graph as they are and are traced through by the framework behind Dynamo, so that every
call they make is seen. shape() returns sizes, which a graph node cannot, dtypes, limits, constants and promotion
options are not arrays either, and trees are Python's: Dynamo inlines their Python equivalents. Those are
@no_type_check, so that jaxtyping's import hook leaves them as they are.
"""

import math

import numpy as np

from . import _core
from ._hook import no_type_check
from .backends import DTYPES

torch = None  # once there is one; Dynamo knows it by this name


def _build_tag():
    """Names this build: torch keys a builtin in its compile cache by the name alone."""
    import hashlib

    with open(_core.__file__, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    return f"anytensor-{_core.__version__}-{digest[:16]}"


@no_type_check
def _shape(x):
    return tuple(x.shape)


@no_type_check
def _enter_options(copy, fallback):
    return None  # inside a graph there are no NumPy arrays that could join


@no_type_check
def _leave_options(token):
    return None


@no_type_check
def _dtype(name, like):
    if isinstance(like, np.ndarray):
        return np.dtype(name)
    if name not in DTYPES:
        raise AttributeError(f"dtype: argument 'name': torch has no dtype {name!r}")
    return getattr(torch, name)


@no_type_check
def _finfo(x):
    return torch.finfo(x.dtype)


@no_type_check
def _iinfo(x):
    return torch.iinfo(x.dtype)


@no_type_check
def _backend_of(x, function, argument):
    return "numpy" if isinstance(x, np.ndarray) else "torch"


@no_type_check
def _nothing(*_, **__):
    return None  # the cache is off inside a graph: its compiler finds what is computed twice


@no_type_check
def _no_space(name):
    raise KeyError(name)


@no_type_check
def _has_no_space(name):
    return False


_EQUIVALENTS = {
    _core.shape: _shape,
    _core.inf: lambda like: math.inf,
    _core.ninf: lambda like: -math.inf,
    _core.nan: lambda like: math.nan,
    _core.pi: lambda like: math.pi,
    _core.e: lambda like: math.e,
    _core.dtype: _dtype,
    _core.finfo: _finfo,
    _core.iinfo: _iinfo,
    _core._backend_of: _backend_of,
    _core._checkable: lambda args, kwargs: False,  # checked functions step aside
    _core._enter_options: _enter_options,
    _core._leave_options: _leave_options,
    **dict.fromkeys(
        (
            _core._cache_lookup,
            _core._cache_store,
            _core._cache_purge,
            _core._cache_enable,
            _core._cache_disable,
            _core._cache_enter,
            _core._cache_leave,
        ),
        _nothing,
    ),
    _core._cache_space: _no_space,
    _core._cache_has: _has_no_space,
}


def register(dynamo):
    global torch
    import torch
    import torch.compiler as compiler

    if not hasattr(compiler, "substitute_in_graph"):
        return  # Dynamo before torch 2.6 takes no builtins of ours: the graph breaks around each call
    from . import _tree_dynamo

    compiler.allow_in_graph(_core._promote)
    for name in _core.ops:
        if getattr(_core, name) not in _EQUIVALENTS:
            compiler.allow_in_graph(getattr(_core, name))
    of_trees = {_core._tree[name]: equivalent for name, equivalent in _tree_dynamo.EQUIVALENTS.items()}
    for function, equivalent in (_EQUIVALENTS | of_trees).items():
        compiler.substitute_in_graph(function, skip_signature_check=True)(equivalent)
    config = getattr(compiler, "config", None)
    if config is not None and hasattr(config, "cache_key_tag"):
        config.cache_key_tag += ";" + _build_tag()
