"""What torch.compile has to know of the builtins: registered when torch._dynamo is first imported.

Array functions go into the graph as they are and are traced through by the framework behind Dynamo, so that every
call they make is seen. shape() returns sizes, which a graph node cannot, and promotion options are not arrays:
Dynamo inlines their Python equivalents.
"""

from . import _core


def _build_tag():
    """Names this build: torch keys a builtin in its compile cache by the name alone."""
    import hashlib

    with open(_core.__file__, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    return f"anytensor-{_core.__version__}-{digest[:16]}"


def _shape(x):
    return tuple(x.shape)


def _enter_options(copy, fallback):
    return None  # inside a graph there are no NumPy arrays that could join


def _leave_options(token):
    return None


_EQUIVALENTS = {
    _core.shape: _shape,
    _core._enter_options: _enter_options,
    _core._leave_options: _leave_options,
}


def register(dynamo):
    import torch.compiler as compiler

    if not hasattr(compiler, "substitute_in_graph"):
        return  # Dynamo before torch 2.6 takes no builtins of ours: the graph breaks around each call
    for name in _core.ops:
        if getattr(_core, name) not in _EQUIVALENTS:
            compiler.allow_in_graph(getattr(_core, name))
    for function, equivalent in _EQUIVALENTS.items():
        compiler.substitute_in_graph(function, skip_signature_check=True)(equivalent)
    config = getattr(compiler, "config", None)
    if config is not None and hasattr(config, "cache_key_tag"):
        config.cache_key_tag += ";" + _build_tag()
