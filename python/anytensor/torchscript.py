"""TorchScript: torch.jit.script takes the functions of segments and partitions as operators.

The script compiler knows a builtin by its address, in a table of its own, and calls an operator of the dispatcher in
its place: anytensor::script_<name>, which runs the function itself, with its derivative, on every device. A script
that was saved needs them again: import torch and anytensor before it is loaded.
"""

import inspect
import sys

from . import _core
from ._hook import no_type_check
from ._loaded import module_if_loaded

_TYPES = {"num_segments": "SymInt", "total_length": "SymInt", "sorted": "bool", "constant": "Scalar"}
_installed = False


def _scriptable():
    return [name for name in _core.ops if name.startswith(("segment_", "partition_"))]


def _schema(name):
    parameters = inspect.signature(getattr(_core, name)).parameters.values()
    words = [
        f"{_TYPES.get(p.name, 'Tensor')} {p.name}" + ("" if p.default is p.empty else f"={p.default}")
        for p in parameters
    ]
    return f"script_{name}({', '.join(words)}) -> Tensor"


@no_type_check
def register_public():
    """Makes the compiler know the functions, those of the package too where they are others."""
    if not _installed:
        return
    builtins = sys.modules["torch.jit._builtins"]
    for name in _scriptable():
        for function in {getattr(_core, name), getattr(sys.modules[__package__], name)}:
            builtins._register_builtin(function, f"anytensor::script_{name}")


def _define(torch):
    """The operators; they live as long as what is returned."""
    library = torch.library.Library("anytensor", "FRAGMENT")
    for name in _scriptable():
        library.define(_schema(name))
        library.impl(f"script_{name}", getattr(_core, name), "CompositeImplicitAutograd")
    return library


def _install(torch):
    """The operators are of the process, while this library might be there twice."""
    global _installed
    operators = torch.ops.anytensor
    if "_scripted" not in vars(operators):
        operators._scripted = _define(torch)
    _installed = True
    register_public()


@no_type_check
def enable_torchscript() -> bool:
    """Lets torch.jit.script compile calls of the functions of segments and partitions.

    Called when the package is imported. True once it is done; False while torch is not imported: then it is done as
    soon as torch is.
    """
    if not _installed:
        module_if_loaded("torch", _install)
    return _installed
