"""The frameworks under test: one row each. Tests ask for the fixture `fw` and run once per framework found.

A new framework is a class here, with the same members, and its name in ROWS. Cases that a framework itself cannot
serve stand in tests/xfail/<name>.txt (format: see tests/README.md); a listed case that passes is a failure.
"""

import importlib.util
import os
import pathlib

import numpy as np
import pytest

BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = SIGNED + UNSIGNED
DTYPES = BOOL + INTEGERS + FLOATS
XFAIL = pathlib.Path(__file__).resolve().parent.parent / "xfail"


def numpy_dtype(name):
    """NumPy's dtype of a name; bfloat16 is ml_dtypes'."""
    if name != "bfloat16":
        return np.dtype(name)
    return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)


def has(fw, dtype):
    """Whether a framework has arrays of a dtype."""
    return dtype not in getattr(fw, "lacks", ())


class NumPy:
    name = "numpy"
    errors = ()  # exception types of its own, beside Python's
    elsewhere = None  # a device that holds arrays without values, to see that results stay on it

    def array(self, data, dtype):
        return np.array(data, dtype=numpy_dtype(dtype))

    def numpy(self, x):
        return x.astype(np.float32) if x.dtype.name == "bfloat16" else x

    def dtype(self, x):
        return x.dtype.name

    def own_dtype(self, name):
        return numpy_dtype(name)

    def is_array(self, x):
        return type(x) is np.ndarray

    def default(self, kind):
        return {"f": "float64", "i": "int64"}[kind]

    def device(self, x):
        return "cpu"


class Torch:
    name = "torch"
    errors = (RuntimeError,)
    elsewhere = "meta"

    def __init__(self):
        self.torch = pytest.importorskip("torch")
        self.torch.set_num_threads(1)  # the arrays are small, and the tests run side by side

    def array(self, data, dtype):
        if dtype == "bfloat16":
            return self.torch.tensor(np.asarray(data, np.float32)).to(self.torch.bfloat16)
        return self.torch.from_numpy(np.array(data, dtype=dtype, order="C"))

    def numpy(self, x):
        x = x.detach().cpu()
        return (x.float() if x.dtype == self.torch.bfloat16 else x).numpy()

    def dtype(self, x):
        return str(x.dtype).removeprefix("torch.")

    def own_dtype(self, name):
        return getattr(self.torch, name)

    def is_array(self, x):
        return type(x) is self.torch.Tensor

    def default(self, kind):
        return str(self.torch.get_default_dtype()).removeprefix("torch.") if kind == "f" else "int64"

    def device(self, x):
        return str(x.device)


class JAX:
    """With 64-bit types switched on; JAX32 below is JAX as it comes."""

    name = "jax"
    elsewhere = None
    x64 = True

    def __init__(self):
        self.jax = pytest.importorskip("jax")
        self.errors = (self.jax.errors.JAXTypeError, self.jax.errors.JAXIndexError)

    def enter(self):
        self.jax.config.update("jax_enable_x64", self.x64)

    def array(self, data, dtype):
        return self.jax.numpy.asarray(np.array(data, dtype=numpy_dtype(dtype)))

    def numpy(self, x):
        x = np.asarray(x)
        return x.astype(np.float32) if x.dtype.name == "bfloat16" else x

    def dtype(self, x):
        return x.dtype.name

    def own_dtype(self, name):
        return getattr(self.jax.numpy, name)

    def is_array(self, x):
        return isinstance(x, self.jax.Array)

    def default(self, kind):
        return {"f": "float", "i": "int"}[kind] + ("64" if self.x64 else "32")

    def device(self, x):
        return str(next(iter(x.devices())))


class JAX32(JAX):
    """Without 64-bit types: JAX makes 32-bit arrays of 64-bit data, and so does this row."""

    x64 = False
    narrow = {"int64": "int32", "uint64": "uint32", "float64": "float32"}

    def array(self, data, dtype):
        return super().array(data, self.narrow.get(dtype, dtype))


class TensorFlow:
    name = "tensorflow"
    elsewhere = None

    def __init__(self):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        self.tf = pytest.importorskip("tensorflow")
        self.errors = (self.tf.errors.OpError,)

    def array(self, data, dtype):
        return self.tf.constant(np.array(data, dtype=numpy_dtype(dtype)))

    def numpy(self, x):
        x = x.numpy()
        return x.astype(np.float32) if x.dtype.name == "bfloat16" else x

    def dtype(self, x):
        return x.dtype.name

    def own_dtype(self, name):
        return getattr(self.tf, name)

    def is_array(self, x):
        return isinstance(x, self.tf.Tensor)

    def default(self, kind):
        return {"f": "float64", "i": "int64"}[kind]

    def device(self, x):
        return x.device


class Strict:
    """array_api_strict: the Python Array API standard and nothing else."""

    name = "array_api_strict"
    errors = ()
    elsewhere = None
    lacks = ("float16", "bfloat16")

    def __init__(self):
        self.xp = pytest.importorskip("array_api_strict")

    def array(self, data, dtype):
        return self.xp.asarray(np.array(data, dtype=dtype))

    def numpy(self, x):
        return np.from_dlpack(x)

    def dtype(self, x):
        return str(x.dtype).removeprefix("array_api_strict.")

    def own_dtype(self, name):
        return getattr(self.xp, name)

    def is_array(self, x):
        return type(x) is type(self.xp.asarray(0))

    def default(self, kind):
        return {"f": "float64", "i": "int64"}[kind]

    def device(self, x):
        return str(x.device)


ROWS = {
    "numpy": NumPy,
    "torch": Torch,
    "jax": JAX,
    "jax32": JAX32,
    "tensorflow": TensorFlow,
    "array_api_strict": Strict,
}
FOUND = [name for name, row in ROWS.items() if importlib.util.find_spec(row.name)]
_made = {}


def framework(name):
    """A framework, ready for use. It is imported here, so that collecting tests imports none."""
    if name not in _made:
        _made[name] = ROWS[name]()
    if hasattr(_made[name], "enter"):
        _made[name].enter()
    return _made[name]


def read_xfail(name):
    """[(pattern, reason, program)] of tests/xfail/<name>.txt."""
    path = XFAIL / f"{name}.txt"
    blocks, lines = [], path.read_text().splitlines() if path.exists() else []
    for line in lines:
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith("case: "):
            patterns = line[6:].split(" | ")
            blocks.append((patterns, [], []))
        elif line.startswith("why: "):
            blocks[-1][1].append(line[5:])
        else:
            blocks[-1][2].append(line.removeprefix("    "))
    return [(patterns, " ".join(why), "\n".join(program)) for patterns, why, program in blocks]
