"""What torch.compile has to know of the builtins: registered when torch._dynamo is first imported.

Array functions go into the graph as they are and are traced through by the framework behind Dynamo, so that every
call they make is seen. shape() returns sizes, which a graph node cannot: Dynamo inlines its Python equivalent.
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


def register(dynamo):
    import torch.compiler as compiler

    for name in _core.ops:
        if name != "shape":
            compiler.allow_in_graph(getattr(_core, name))
    compiler.substitute_in_graph(_core.shape, skip_signature_check=True)(_shape)
    config = getattr(compiler, "config", None)
    if config is not None and hasattr(config, "cache_key_tag"):
        config.cache_key_tag += ";" + _build_tag()
