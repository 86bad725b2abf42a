"""The frameworks under test: one row each. Tests ask for the fixture `fw` and run once per framework found.

A new framework is a class here, with the same members, and its name in ROWS and in ../selections.py. Cases that a
framework itself cannot serve stand in tests/xfail/<name>.txt (format: see tests/README.md); a listed case that
passes is a failure.
"""

import importlib.metadata
import importlib.util
import os
import pathlib
import re

import numpy as np
import pytest

BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = SIGNED + UNSIGNED
DTYPES = BOOL + INTEGERS + FLOATS
XFAIL = pathlib.Path(__file__).resolve().parent.parent / "xfail"

# How memory may lie: the array that is made of some data, and the view of it that holds these data. What is expanded
# has equal rows.
LAYOUTS = {
    "strided": (lambda x: np.repeat(x, 2, -1), lambda x: x[..., ::2]),
    "shifted": (lambda x: np.concatenate([x[:1], x]), lambda x: x[1:]),
    "transposed": (lambda x: x.T, lambda x: x.T),
    "expanded": (lambda x: x[:1], None),
    "reversed": (lambda x: x[::-1], lambda x: x[::-1]),
    "swapped": (lambda x: x, lambda x: x.astype(x.dtype.newbyteorder("S"))),
}


def numbers(version):
    """The leading numbers of a version, to compare: "2.13.0rc1+cpu" is (2, 13, 0)."""
    return tuple(int(number) for number in re.match(r"\d+(?:\.\d+)*", version)[0].split("."))


def installed(name):
    """The version of a framework that is installed, as numbers; nothing is imported."""
    for package in (name, f"{name}-cpu"):
        try:
            return numbers(importlib.metadata.version(package))
        except importlib.metadata.PackageNotFoundError:
            continue
    return ()


def needs(name, version, why):
    """A mark for tests of what a framework has from a version on."""
    return pytest.mark.skipif(installed(name) < numbers(version), reason=f"{why}, from {name} {version} on")


COMPILES = needs("torch", "2.6", "Dynamo and torch.export take builtins into their graphs")


def numpy_dtype(name):
    """NumPy's dtype of a name; bfloat16 is ml_dtypes'."""
    if name != "bfloat16":
        return np.dtype(name)
    return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)


class Row:
    """What a test may ask of a framework, with the usual answers."""

    name = ""
    module = None  # what is imported, where it is not called so
    errors = ()  # exception types of its own, beside Python's
    lacks = ()  # dtypes that it does not have; a case that carries one is skipped
    narrow = {}  # what it makes of dtypes wider than its own
    elsewhere = None  # the name of a second device, to see that results stay on it
    take_out_of_range = "raises"  # or "fills": NaN or 0, where the framework would clamp (SEMANTICS 18)
    runs_later = False  # whether what runs is out of our reach, so that its errors are its own (SEMANTICS 18)
    reads_counts = True  # whether a total that is not the sum of the counts is seen (SEMANTICS 9)
    quick = True  # whether a call takes microseconds
    compiles = False  # whether a call compiles at a new shape or dtype, which makes tests slow
    mutable = True  # whether elements can be assigned
    shares_numpy = False  # whether an array made of NumPy's memory shares it
    shape_error = ValueError  # what it raises itself for shapes that do not go together
    notes = True  # whether errors of its own are foreign ones, told by a note; else the library's, which name the call
    host_lacks = (
        () if importlib.util.find_spec("ml_dtypes") else ("bfloat16",)
    )  # dtypes of NumPy's beside its arrays
    leaks = False  # whether its own calls leave memory behind, so that ours cannot be seen to leave none
    layouts = ()  # of LAYOUTS, those that its arrays may have
    subclass = None  # makes an array of a subclass of the framework's array, where it has such

    def held(self, dtype):
        """The dtype that an array really has which was asked for as `dtype`."""
        return self.narrow.get(dtype, dtype)

    def device_object(self, name):
        """A device as the framework takes it, from its name."""
        return name

    def laid_out(self, data, dtype, layout):
        """An array whose memory lies in a certain way, where the framework has arrays of that kind."""
        if layout not in self.layouts:
            return self.array(data, dtype)
        data = np.asarray(data)
        base, view = LAYOUTS[layout]
        made = self.array(base(data), dtype)
        return view(made) if view else self.expanded(made, data.shape)


class NumPy(Row):
    name = "numpy"
    layouts = tuple(LAYOUTS)
    expanded = staticmethod(np.broadcast_to)
    subclass = staticmethod(lambda x: x.view(type("Mine", (np.ndarray,), {})))

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


class Torch(Row):
    name = "torch"
    errors = (RuntimeError,)
    layouts = ("strided", "shifted", "transposed", "expanded")
    elsewhere = "meta"
    shares_numpy = True
    shape_error = RuntimeError

    def __init__(self):
        self.torch = pytest.importorskip("torch")
        self.torch.set_num_threads(1)  # the arrays are small, and the tests run side by side
        self.lacks = tuple(
            t for t in DTYPES if not hasattr(self.torch, t)
        )  # before 2.3: uint16, uint32, uint64

    def array(self, data, dtype):
        if dtype == "bfloat16":
            return self.torch.tensor(np.asarray(data, np.float32)).to(self.torch.bfloat16)
        return self.torch.from_numpy(np.array(data, dtype=dtype, order="C"))

    def numpy(self, x):
        x = x.detach().cpu()
        return (x.float() if x.dtype == self.torch.bfloat16 else x).numpy()

    def dtype(self, x):
        return str(x.dtype).removeprefix("torch.")

    def laid_out(self, data, dtype, layout):
        if layout != "transposed":
            return super().laid_out(data, dtype, layout)
        made = self.array(np.asarray(data).T, dtype)
        return made.permute(*range(made.ndim - 1, -1, -1))

    def expanded(self, x, shape):
        return x.expand(shape)

    def own_dtype(self, name):
        return getattr(self.torch, name)

    def is_array(self, x):
        return type(x) is self.torch.Tensor

    def default(self, kind):
        return str(self.torch.get_default_dtype()).removeprefix("torch.") if kind == "f" else "int64"

    def device(self, x):
        return str(x.device)

    def empty_elsewhere(self, shape, dtype):
        return self.torch.empty(shape, dtype=self.own_dtype(dtype), device=self.elsewhere)

    def subclass(self, x):
        return self.torch.nn.Parameter(x, requires_grad=x.is_floating_point())


class JAX(Row):
    """With 64-bit types switched on; JAX32 below is JAX as it comes."""

    name = "jax"
    errors = (RuntimeError,)
    take_out_of_range = "fills"
    reads_counts = False
    quick = False
    compiles = True
    mutable = False
    shape_error = (TypeError, ValueError)
    x64 = True

    def __init__(self):
        flags = os.environ.get("XLA_FLAGS", "")
        if "host_platform_device_count" not in flags:  # read when JAX first looks for devices
            os.environ["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count=2".strip()
        self.jax = pytest.importorskip("jax")
        self.elsewhere = str(self.jax.devices()[1]) if len(self.jax.devices()) > 1 else None

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

    def device_object(self, name):
        return next(one for one in self.jax.devices() if str(one) == name)

    def empty_elsewhere(self, shape, dtype):
        return self.jax.device_put(self.array(np.zeros(shape), dtype), self.device_object(self.elsewhere))


class JAX32(JAX):
    """Without 64-bit types: JAX makes 32-bit arrays of 64-bit data, and so does this row.

    Its uint64 arrays would be uint32 ones and promote as these do, so cases about uint64 say nothing here.
    """

    x64 = False
    lacks = ("uint64",)
    narrow = {"int64": "int32", "uint64": "uint32", "float64": "float32"}

    def array(self, data, dtype):
        return super().array(data, self.narrow.get(dtype, dtype))


class TensorFlow(Row):
    name = "tensorflow"
    quick = False
    mutable = False

    def __init__(self):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        self.tf = pytest.importorskip("tensorflow")
        self.errors = (self.tf.errors.OpError,)
        self.shape_error = (self.tf.errors.OpError, ValueError)

        if installed("tensorflow") < (2, 14):  # its bfloat16 is not ml_dtypes'
            self.host_lacks = ("bfloat16",)
        self.leaks = installed("tensorflow") < (2, 16)  # each of its own calls left a block of memory behind

    def array(self, data, dtype):
        if dtype == "bfloat16":  # before 2.14 its NumPy type is not ml_dtypes'
            return self.tf.cast(np.array(data, np.float32), self.tf.bfloat16)
        return self.tf.constant(np.array(data, dtype=dtype))

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


class Strict(Row):
    """array_api_strict: the Python Array API standard and nothing else."""

    name = "array_api_strict"
    lacks = ("float16", "bfloat16")
    quick = False
    take_out_of_range = "fills"
    reads_counts = False
    elsewhere = "device1"

    def __init__(self):
        self.xp = pytest.importorskip("array_api_strict")

    def array(self, data, dtype):
        return self.xp.asarray(np.array(data, dtype=dtype))

    def numpy(self, x):
        return np.asarray(x.to_device(self.xp.Device("CPU_DEVICE")))

    def dtype(self, x):
        return str(x.dtype).removeprefix("array_api_strict.")

    def own_dtype(self, name):
        return getattr(self.xp, name)

    def is_array(self, x):
        return type(x) is type(self.xp.asarray(0))

    def default(self, kind):
        return {"f": "float64", "i": "int64"}[kind]

    def device(self, x):
        return re.sub(r".*'(.*)'.*", r"\1", str(x.device))

    def device_object(self, name):
        return self.xp.Device(name)

    def empty_elsewhere(self, shape, dtype):
        return self.xp.zeros(shape, dtype=self.own_dtype(dtype), device=self.device_object(self.elsewhere))


class Dask(Row):
    """dask.array: a lazy library behind the generic adapter, in chunks of two. Its graphs take milliseconds to build
    and to run, so it is no row of every test: test_lazy.py runs a part of the cases on it."""

    name = "dask"
    lacks = ("float16", "bfloat16")  # its namespace is the standard's
    quick = False
    take_out_of_range = "fills"
    reads_counts = False

    def __init__(self):
        self.da = pytest.importorskip("dask.array")

    def array(self, data, dtype):
        return self.da.from_array(np.array(data, dtype=dtype), chunks=2)

    def numpy(self, x):
        return x.compute(scheduler="synchronous")

    def dtype(self, x):
        return x.dtype.name

    def own_dtype(self, name):
        return np.dtype(name)

    def is_array(self, x):
        return isinstance(x, self.da.Array)

    def default(self, kind):
        return {"f": "float64", "i": "int64"}[kind]


class Native(NumPy):
    """The library's own arrays, from NumPy's memory or by a cast."""

    name = "native"
    module = "anytensor"
    layouts = tuple(set(LAYOUTS) - {"swapped"})
    subclass = None
    mutable = False
    shares_numpy = True
    notes = False

    def __init__(self):
        import anytensor
        import anytensor.native

        self.at, self.native = anytensor, anytensor.native

    def array(self, data, dtype):
        host = np.array(data, dtype="float32" if dtype == "bfloat16" else dtype)
        return self.of_numpy(host, dtype)

    def of_numpy(self, host, dtype):
        """NumPy's DLPack had no bool before 1.25: its bytes come in. Before 2.1, no read-only memory: a copy does."""
        if installed("numpy") < (2, 1) and not host.flags.writeable:
            host = host.copy()
        x = self.native.from_dlpack(host.view("uint8") if host.dtype == bool else host)
        return self.at.astype(x, dtype) if dtype in ("bfloat16", "bool") else x

    def laid_out(self, data, dtype, layout):
        """Views that NumPy made, imported with their strides; a cast has none."""
        if dtype == "bfloat16" or layout not in self.layouts:
            return self.array(data, dtype)
        return self.of_numpy(framework("numpy").laid_out(data, dtype, layout), dtype)

    def numpy(self, x):
        return np.asarray(self.at.astype(x, "float32") if x.dtype == "bfloat16" else x)

    def dtype(self, x):
        return x.dtype

    def own_dtype(self, name):
        return name

    def is_array(self, x):
        return type(x) is self.native.Array


ROWS = {
    "numpy": NumPy,
    "native": Native,
    "torch": Torch,
    "jax": JAX,
    "jax32": JAX32,
    "tensorflow": TensorFlow,
    "array_api_strict": Strict,
}
LAZY = {"dask": Dask}  # of test_lazy.py alone
FOUND = [name for name, row in ROWS.items() if importlib.util.find_spec(row.module or row.name)]
_made = {}


def framework(name):
    """A framework, ready for use. It is imported here, so that collecting tests imports none."""
    if name not in _made:
        _made[name] = (ROWS | LAZY)[name]()
    if hasattr(_made[name], "enter"):
        _made[name].enter()
    return _made[name]


def read_xfail(name):
    """[(pattern, reason, program)] of tests/xfail/<name>.txt, without what the installed version has mended."""
    path = XFAIL / f"{name}.txt"
    blocks, lines = [], path.read_text().splitlines() if path.exists() else []
    for line in lines:
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith("case: "):
            patterns = line[6:].split(" | ")
            blocks.append((patterns, [], [], []))
        elif line.startswith("why: "):
            blocks[-1][1].append(line[5:])
        elif line.startswith("before: "):
            blocks[-1][3].append(line[8:])
        else:
            blocks[-1][2].append(line.removeprefix("    "))
    return [
        (patterns, " ".join(why), "\n".join(program))
        for patterns, why, program, before in blocks
        if not before or installed(name) < numbers(before[0])
    ]
