"""The Array API namespace that a call's arrays belong to."""

from typing import Any

import numpy as np

from . import _core

__all__ = ["array_namespace"]


def array_namespace(*arrays: Any) -> Any:
    """The namespace of the arrays: array_api_compat's, or one of our own for TensorFlow, which has none.

    None and scalars say nothing; NumPy arrays beside another framework's join that one; without any it is NumPy's.

    Errors   TypeError: arrays of two frameworks; lists and other things that are no arrays; the library's own arrays
             (anytensor.native), which have no namespace.
    """
    found = {}
    for x in arrays:
        if x is not None and not isinstance(x, bool | int | float | complex | np.generic):
            found.setdefault(_core._backend_of(x, "array_namespace", "arrays"), x)
    if len(found) > 1:
        found.pop("numpy", None)
    if len(found) > 1:
        fault = "Cannot mix TensorFlow with others" if "tensorflow" in found else "Multiple namespaces"
        raise TypeError(
            f"array_namespace: argument 'arrays': {fault} for array inputs: "
            f"{' and '.join(found)}; one call takes one framework (and NumPy)"
        )
    return _namespace(*found.popitem()) if found else _namespace("numpy", None)


def _namespace(name, x):
    if name == "numpy":
        import array_api_compat.numpy as xp
    elif name == "tensorflow":
        xp = _tensorflow_namespace()
    elif name == "native":
        raise TypeError("array_namespace: argument 'arrays': native arrays have no Array API namespace")
    else:
        import array_api_compat

        xp = array_api_compat.array_namespace(x)
    return xp


def _tensorflow_namespace():
    """Release 1.1.0 had it under this name, too."""
    from . import _tensorflow_namespace as xp

    return xp
