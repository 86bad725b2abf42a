"""Native arrays in Python: DLPack in and out, buffers, and native arrays as operands.

Accuses src/python/native_array_type.c, src/python/backends/native_adapter.c, src/backends/native/native_dlpack.c. What
holds for operands of every framework is tested with the others: native arrays are a row of frameworks.py.
"""

import ctypes
import gc
import pickle
import random
import sys
import threading
import weakref
import zlib

import numpy as np
import pytest
from frameworks import DTYPES, installed, needs
from test_leaks import tidy

import anytensor as at
from anytensor import _core, native

NUMPYS = [dtype for dtype in DTYPES if dtype != "bfloat16"]
DLPACK_1 = needs("numpy", "2.1", "read-only memory, a device and bool through NumPy's DLPack")


@pytest.fixture(autouse=True)
def _strict_hands_on_numpys(request):
    """array_api_strict's DLPack is NumPy's; TensorFlow's arrays had none."""
    if "peer" in request.fixturenames and not hasattr(
        type(request.getfixturevalue("peer").array([1.0], "float32")), "__dlpack__"
    ):
        pytest.skip("the framework's arrays have no DLPack: TensorFlow's from 2.16 on")
    params = getattr(getattr(request.node, "callspec", None), "params", {})
    if params.get("peer") == "array_api_strict" and installed("numpy") < (2, 1):
        pytest.skip("NumPy's DLPack takes and gives no read-only memory before 2.1")


LAYOUTS = {
    "row-major": lambda: np.arange(12.0).reshape(3, 4),
    "transposed": lambda: np.arange(12.0).reshape(3, 4).T,
    "strided": lambda: np.arange(24.0).reshape(4, 6)[::2, 1::2],
    "backwards": lambda: np.arange(12.0).reshape(3, 4)[::-1, ::-1],
    "broadcast": lambda: np.broadcast_to(np.arange(3.0), (4, 3)),
    "offset": lambda: np.arange(13.0)[1:].reshape(3, 4),
    "0-d": lambda: np.array(2.5),
    "empty": lambda: np.zeros((3, 0, 2)),
    "of no rows": lambda: np.zeros((0, 4))[::-1],
    "of size 1": lambda: np.arange(6.0).reshape(1, 6, 1)[:, ::2],
    "misaligned": lambda: np.frombuffer(bytes(1) + np.arange(4.0).tobytes(), np.uint8)[1:].view(np.float64),
    "between": lambda: np.frombuffer(bytes(range(64)), np.dtype([("a", "<f8"), ("b", "u1")]), count=7)["a"],
}


@pytest.fixture(autouse=True)
def nothing_lives_on():
    before = _core._native_live()
    yield
    if _core._native_live() > before:  # collecting takes long with a framework in memory
        gc.collect()
    assert _core._native_live() <= before


# --- a producer and a consumer in ctypes --------------------------------------------------------------------


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Plain(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("manager_ctx", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


def c_function(name, result, *arguments):
    """A function of Python's C API, apart from what other users of ctypes make of it."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


new_capsule = c_function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
pointer_of = c_function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
rename = c_function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
name_of = c_function("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)


class Producer:
    """Three int32 numbers, and how often their deleter ran."""

    def __init__(self, versioned=True, flags=0, major=1, **fields):
        self.numbers = (ctypes.c_int32 * 3)(1, 2, 4)
        self.sizes = (ctypes.c_int64 * 1)(3)
        self.deleted = 0
        self.form = b"dltensor_versioned" if versioned else b"dltensor"
        deleter = DELETER(self.delete)
        tensor = Tensor(
            ctypes.addressof(self.numbers),
            1,
            0,
            1,
            0,
            32,
            1,
            ctypes.cast(self.sizes, ctypes.POINTER(ctypes.c_int64)),
        )
        for name, value in fields.items():
            setattr(tensor, name, value)
        self.managed = (
            Versioned(major, 0, None, deleter, flags, tensor) if versioned else Plain(tensor, None, deleter)
        )

    def delete(self, managed):
        assert managed == ctypes.addressof(self.managed)
        self.deleted += 1

    def capsule(self):
        return new_capsule(ctypes.addressof(self.managed), self.form, None)

    def __dlpack__(self, **kwargs):
        self.asked = kwargs
        return self.capsule()

    def __dlpack_device__(self):
        return (1, 0)


class Consumer:
    """What takes a tensor out of a capsule, and ends it."""

    def __init__(self, capsule):
        self.form = name_of(capsule)
        kind = Versioned if self.form == b"dltensor_versioned" else Plain
        self.managed = kind.from_address(pointer_of(capsule, self.form))
        assert rename(capsule, b"used_" + self.form) == 0

    @property
    def flags(self):
        return self.managed.flags

    def values(self):
        t = self.managed.tensor
        first = (ctypes.c_float * (1 + t.strides[0] * (t.shape[0] - 1))).from_address(t.data + t.byte_offset)
        return [first[i * t.strides[0]] for i in range(t.shape[0])]

    def end(self):
        self.managed.deleter(ctypes.addressof(self.managed))


def floats(*values):
    return native.from_dlpack(np.array(values, np.float32))


# --- in -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [pytest.param(t, marks=DLPACK_1) if t == "bool" else t for t in NUMPYS])
def test_numpy_arrays_come_in_and_go_out_without_a_copy(dtype):
    host = np.array([[1, 0, 1], [0, 1, 1]], dtype)
    x = native.from_dlpack(host)
    assert (x.shape, x.dtype, x.ndim) == ((2, 3), dtype, 2)
    back = np.from_dlpack(x)
    assert back.dtype == dtype and back.tolist() == host.tolist()
    assert back.ctypes.data == host.ctypes.data == np.asarray(x).ctypes.data


@pytest.mark.filterwarnings("ignore:a NumPy array cannot be shared")
@pytest.mark.parametrize(
    "layout", [pytest.param(k, marks=DLPACK_1) if k in ("broadcast", "misaligned") else k for k in LAYOUTS]
)
def test_memory_of_every_layout_means_the_same_elements(layout):
    host = LAYOUTS[layout]()
    try:
        x = native.from_dlpack(host)
    except BufferError:  # NumPy's own: DLPack cannot say these strides; a NumPy array joins all the same
        assert layout == "between"
        x = at.align_arrays(floats(1), host)[1]
    assert x.shape == host.shape and x.dtype == "float64"
    for back in (np.from_dlpack(x), np.asarray(x), np.asarray(memoryview(x))):
        assert back.shape == host.shape and back.tobytes() == host.tobytes()
    assert (
        np.from_dlpack(at.exp(x)).tobytes() == np.from_dlpack(at.exp(at.align_arrays(x, host)[1])).tobytes()
    )


def test_random_views_come_through():
    for seed in range(400):
        rng = random.Random(seed)
        sizes = [rng.randrange(0, 6) for _ in range(rng.randrange(0, 5))]
        host = np.arange(int(np.prod(sizes)), dtype=rng.choice(NUMPYS[1:])).reshape(sizes)
        for _ in range(rng.randrange(4)):
            step = rng.choice([1, 2, -1, -2, 3])
            cut = tuple(slice(rng.choice([None, 0, 1]), None, rng.choice([1, step])) for _ in sizes)
            host = np.asarray(host[cut]).transpose(rng.sample(range(host.ndim), host.ndim))
        x = native.from_dlpack(host)
        assert np.from_dlpack(x).tolist() == host.tolist(), seed
        assert np.asarray(x).tolist() == host.tolist(), seed
        assert np.from_dlpack(native.from_dlpack(x, copy=True)).tolist() == host.tolist(), seed
        if host.ndim and host.dtype.kind == "f":
            ids = np.array([rng.randrange(-1, 4) for _ in range(host.shape[0])], int)
            sums = np.zeros((3, *host.shape[1:]), host.dtype)
            for i, row in zip(ids.tolist(), host, strict=True):
                if 0 <= i < 3:
                    sums[i] += row
            got = at.segment_sum(x, native.from_dlpack(ids), 3)
            assert type(got) is native.Array and np.from_dlpack(got).tolist() == sums.tolist(), seed


@pytest.mark.parametrize("versioned", [True, False])
def test_the_deleter_runs_once_when_the_last_array_goes(versioned):
    made = Producer(versioned)
    x = native.from_dlpack(made)
    assert made.asked == {"max_version": (1, 0)}
    view = at.reshape(x, (3, 1))
    assert made.deleted == 0
    del x
    assert made.deleted == 0 and np.from_dlpack(view).tolist() == [[1], [2], [4]]
    del view
    assert made.deleted == 1


def test_a_copy_is_the_librarys_own():
    host = np.arange(3.0)
    made = Producer()
    x, y = native.from_dlpack(host, copy=True), native.from_dlpack(made, copy=True)
    assert made.deleted == 1  # nothing of it is needed any more
    host[:] = 7
    assert np.from_dlpack(x).tolist() == [0, 1, 2] and np.from_dlpack(y).tolist() == [1, 2, 4]
    assert np.from_dlpack(x).ctypes.data % 64 == 0


def test_never_copy_is_passed_on_to_the_producer():
    made = Producer()
    native.from_dlpack(made, copy=False)
    assert made.asked == {"max_version": (1, 0), "copy": False}

    class Old(Producer):
        def __dlpack__(self, stream=None):
            return self.capsule()

    assert np.from_dlpack(native.from_dlpack(Old(False))).tolist() == [1, 2, 4]
    with pytest.raises(TypeError, match="keyword"):
        native.from_dlpack(Old(), copy=False)


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"lanes": 2}, "2 lanes"),
        ({"code": 5, "bits": 64}, "code 5"),
        ({"code": 2, "bits": 8}, "8 bits"),
        ({"device_type": 2}, "device type 2"),
        ({"ndim": 33}, "rank"),
        ({"ndim": -1}, "rank"),
        ({"shape": None}, "no shape"),
        ({"data": None}, "no memory"),
        ({"byte_offset": 2**64 - 1}, "beyond"),
    ],
)
@pytest.mark.parametrize("versioned", [True, False])
def test_what_cannot_come_in_is_a_buffer_error_and_stays_its_makers(versioned, fields, word):
    made = Producer(versioned, **fields)
    capsule = made.capsule()
    for _ in range(2):
        with pytest.raises(BufferError, match=word):
            native.from_dlpack(capsule)
        assert name_of(capsule) == made.form and made.deleted == 0


def test_another_major_version_is_a_buffer_error():
    made = Producer(major=2)
    with pytest.raises(BufferError, match="version 2.0"):
        native.from_dlpack(made)
    assert made.deleted == 0


def test_a_capsule_is_consumed_once():
    made = Producer()
    capsule = made.capsule()
    x = native.from_dlpack(capsule)
    assert name_of(capsule) == b"used_dltensor_versioned"
    with pytest.raises(ValueError, match="consumed once.*used_dltensor_versioned"):
        native.from_dlpack(capsule)
    del x
    assert made.deleted == 1
    with pytest.raises(ValueError, match="a DLPack capsule.*datetime"):
        import datetime

        native.from_dlpack(datetime.datetime_CAPI)


def test_what_is_no_array_is_a_type_error():
    class Device:
        def __dlpack_device__(self):
            return self.device

    class Gpu(Device):
        device = (2, 0)

    class Odd(Device):
        device = (1, 0)

        def __dlpack__(self, **_):
            return 5

    for x in (None, 3, [1.0], "text", object()):
        with pytest.raises(TypeError, match="__dlpack__"):
            native.from_dlpack(x)
    with pytest.raises(BufferError, match="device type 2"):
        native.from_dlpack(Gpu())
    with pytest.raises(TypeError, match="no capsule, but int"):
        native.from_dlpack(Odd())
    Odd.device = "cpu"
    with pytest.raises(TypeError, match="__dlpack_device__.*tuple of two"):
        native.from_dlpack(Odd())
    with pytest.raises(TypeError, match="copy"):
        native.from_dlpack(np.ones(2), copy=1)
    with pytest.raises(BufferError):
        native.from_dlpack(np.ones(2, complex))


# --- out ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "form"),
    [
        (None, b"dltensor"),
        ((0, 8), b"dltensor"),
        ((1, 0), b"dltensor_versioned"),
        ((1, 9), b"dltensor_versioned"),
        ((2, 0), b"dltensor_versioned"),
    ],
)
def test_the_form_is_the_newest_that_the_consumer_knows(version, form):
    x = floats(1, 2, 4)
    capsule = x.__dlpack__(max_version=version)
    assert name_of(capsule) == form
    consumer = Consumer(capsule)
    assert consumer.values() == [1, 2, 4]
    if version and version[0] >= 1:
        assert (consumer.managed.major, consumer.flags) == (1, 0)
    consumer.end()


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_a_capsule_that_nobody_consumed_ends_its_tensor(version):
    made = Producer()
    x = native.from_dlpack(made)
    capsule = x.__dlpack__(max_version=version)
    del x
    gc.collect()
    assert made.deleted == 0
    del capsule
    assert made.deleted == 1


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_a_consumer_outlives_the_capsule_and_every_array(version):
    host = np.arange(6, dtype=np.float32)
    alive = weakref.ref(host)
    x = native.from_dlpack(host)
    view = at.reshape(x, (6,))
    consumer = Consumer(view.__dlpack__(max_version=version))
    del x, view, host
    gc.collect()
    filler = [np.full(6, -1, np.float32) for _ in range(100)]
    assert alive() is not None and consumer.values() == [0, 1, 2, 3, 4, 5]
    consumer.end()
    gc.collect()
    assert alive() is None and len(filler) == 100


def test_a_consumer_may_end_on_another_thread():
    ended = []
    for _ in range(50):
        consumer = Consumer(floats(1, 2, 4).__dlpack__())
        thread = threading.Thread(target=lambda one=consumer: (ended.append(one.values()), one.end()))
        thread.start()
        thread.join()
    assert ended == [[1, 2, 4]] * 50


def test_threads_share_and_drop_one_array():
    x = floats(*range(100))
    wrong = []

    def work():
        for _ in range(300):
            y = native.from_dlpack(x)
            if float(at.sum(np.from_dlpack(y))) != 4950.0 or float(at.sum(y)) != 4950.0:
                wrong.append(y)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_copy_is_asked_for_and_said():
    x = floats(1, 2, 4)
    for copy, flags in ((None, 0), (False, 0), (True, 2)):
        consumer = Consumer(x.__dlpack__(max_version=(1, 0), copy=copy))
        assert consumer.flags == flags and consumer.values() == [1, 2, 4]
        assert (consumer.managed.tensor.data == np.asarray(x).ctypes.data) == (copy is not True)
        consumer.end()


@DLPACK_1
def test_strides_that_consumers_cannot_take_are_copied_unless_that_is_forbidden():
    steps = native.from_dlpack(np.arange(4, dtype=np.float32)[::-1])
    consumer = Consumer(steps.__dlpack__(max_version=(1, 0)))
    assert consumer.flags == 2 and consumer.values() == [3, 2, 1, 0]
    consumer.end()
    consumer = Consumer(steps.__dlpack__(max_version=(1, 0), copy=False))
    assert consumer.flags == 0 and consumer.managed.tensor.strides[0] == -1
    consumer.end()
    misaligned = native.from_dlpack(LAYOUTS["misaligned"]())
    with pytest.raises(BufferError, match="multiple of 8 bytes"):
        misaligned.__dlpack__(max_version=(1, 0), copy=False)
    Consumer(misaligned.__dlpack__(max_version=(1, 0))).end()


@DLPACK_1
def test_read_only_memory_stays_read_only():
    host = np.arange(3, dtype=np.float32)
    host.flags.writeable = False
    for x in (
        native.from_dlpack(host),
        at.align_arrays(floats(1), host)[1],
        native.from_dlpack(Producer(flags=1)),
    ):
        for y in (x, at.reshape(x, (3,))):
            assert not np.from_dlpack(y).flags.writeable and not np.asarray(y).flags.writeable
            for copy in (None, False):
                with pytest.raises(BufferError, match="read-only"):
                    y.__dlpack__(copy=copy)
            Consumer(y.__dlpack__(copy=True)).end()
            consumer = Consumer(y.__dlpack__(max_version=(1, 0)))
            assert consumer.flags == 1
            consumer.end()
    assert np.from_dlpack(at.exp(x)).flags.writeable
    assert np.from_dlpack(native.from_dlpack(host, copy=True)).flags.writeable


@pytest.mark.parametrize(
    ("arguments", "error", "word"),
    [
        ({"stream": 1}, BufferError, "stream"),
        ({"dl_device": (2, 0)}, BufferError, r"\(2, 0\)"),
        ({"dl_device": (1, 1)}, BufferError, r"\(1, 1\)"),
        ({"dl_device": 1}, TypeError, "dl_device"),
        ({"max_version": 1}, TypeError, "max_version"),
        ({"max_version": (1,)}, TypeError, "max_version"),
        ({"max_version": ("1", 0)}, TypeError, "int"),
        ({"max_version": (2**70, 0)}, OverflowError, "int"),
        ({"copy": 1}, TypeError, "copy"),
        ({"nonsense": 1}, TypeError, "nonsense"),
    ],
)
def test_odd_requests_are_refused(arguments, error, word):
    with pytest.raises(error, match=word):
        floats(1).__dlpack__(**arguments)
    with pytest.raises(TypeError):
        floats(1).__dlpack__(None)


@DLPACK_1
def test_the_device_is_the_cpu():
    x = floats(1, 2)
    assert x.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(x, device="cpu").tolist() == [1, 2]
    Consumer(x.__dlpack__(dl_device=(1, 0))).end()


# --- the object -------------------------------------------------------------------------------------------------


def test_an_array_says_what_it_is():
    x = at.zeros((2, 3), dtype="bfloat16", like=floats(1))
    assert repr(x) == "<anytensor.native.Array bfloat16 (2, 3)>"
    assert (x.shape, x.dtype, x.ndim) == ((2, 3), "bfloat16", 2)
    assert weakref.ref(x)() is x
    assert float(floats(2.5)) == 2.5 and bool(floats(0.0)) is False and bool(floats(-1.0)) is True
    for several in (x, floats()):
        with pytest.raises(TypeError, match="one element"):
            bool(several)
    with pytest.raises(TypeError):
        native.Array()
    with pytest.raises(TypeError):
        pickle.dumps(x)
    with pytest.raises((TypeError, AttributeError)):
        x.shape = (6,)


def test_buffers_are_given_as_asked_for():
    x = native.from_dlpack(np.arange(6, dtype=np.int16).reshape(2, 3).T)
    view = memoryview(x)
    assert (view.format, view.shape, view.strides, view.readonly) == ("h", (3, 2), (2, 6), False)
    assert view.tolist() == [[0, 3], [1, 4], [2, 5]] and view.f_contiguous
    with pytest.raises(BufferError, match="contiguous"):
        zlib.crc32(x)
    row = native.from_dlpack(np.arange(3, dtype=np.uint8))
    assert bytes(row) == b"\0\1\2" and b"".join([row]) == b"\0\1\2"
    assert memoryview(at.sum(row)).shape == ()
    del view
    view = memoryview(row)
    del row
    gc.collect()
    assert view.tolist() == [0, 1, 2]


@DLPACK_1
def test_bfloat16_is_no_array_of_objects():
    x = at.astype(floats(1, 2), "bfloat16")
    for call in (np.asarray, memoryview, lambda x: x.__array__()):
        with pytest.raises(BufferError, match="bfloat16"):
            call(x)
    y = floats(1, 2)
    assert y.__array__("float64", copy=True).dtype == "float64"


# --- as operands ------------------------------------------------------------------------------------------------


def test_numpy_arrays_join_and_results_are_native():
    x, host = floats(1, 2, 4), np.array([1, 1, 0])
    got = at.segment_sum(x, host, 2)
    assert type(got) is native.Array and np.from_dlpack(got).tolist() == [4, 3]
    got = at.concatenate([np.ones(2, np.float32), x])
    assert type(got) is native.Array and np.from_dlpack(got).tolist() == [1, 1, 1, 2, 4]
    joined = at.align_arrays(x, host)[1]
    assert np.from_dlpack(joined).ctypes.data == host.ctypes.data
    alive = weakref.ref(host)
    del host
    gc.collect()
    assert alive() is not None and np.from_dlpack(joined).tolist() == [1, 1, 0]
    del joined
    gc.collect()
    assert alive() is None
    with pytest.raises(TypeError, match="complex"):
        at.align_arrays(x, np.ones(2, complex))


@needs("numpy", "2.0", "arrays of more than 32 axes")
def test_more_axes_than_a_native_array_has_are_refused():
    with pytest.raises(ValueError, match="rank"):
        at.align_arrays(floats(1), np.ones((1,) * 40))


@DLPACK_1
def test_many_round_trips_leave_nothing_behind():
    host, x = np.arange(6.0), floats(1, 2, 4)
    locked = np.arange(3.0)
    locked.flags.writeable = False
    locked = native.from_dlpack(locked)

    def good():
        y = native.from_dlpack(host)
        np.from_dlpack(y), np.asarray(y), y.__dlpack__(), repr(y), y.shape, float(at.sum(y))
        native.from_dlpack(y, copy=True), at.maximum(y, host), at.align_arrays(y, host)
        native.from_dlpack(y.__dlpack__(max_version=(1, 0)))

    def bad():
        made = Producer(lanes=3)
        failures = [
            lambda: native.from_dlpack(made),
            lambda: native.from_dlpack(3),
            lambda: locked.__dlpack__(),
            lambda: x.__dlpack__(stream=1),
            lambda: x.__dlpack__(max_version=(1, "0")),
            lambda: at.align_arrays(x, np.ones(2, complex)),
            lambda: at.reshape(x, (2, 2)),
            lambda: at.maximum(x, floats(1, 2)),
        ]
        for fail in failures:
            try:
                fail()
            except (BufferError, TypeError, ValueError):
                continue
            raise AssertionError("it did not fail")

    for call in (good, bad):
        left = []
        for _ in range(5):
            tidy()
            before, live, refs = sys.getallocatedblocks(), _core._native_live(), sys.getrefcount(host)
            for _ in range(200):
                call()
            tidy()
            assert (_core._native_live(), sys.getrefcount(host)) == (live, refs)
            left.append(sys.getallocatedblocks() - before)
        assert min(left) < 40, left


# --- every framework ----------------------------------------------------------------------------------------------


def out_of(peer, x):
    """A native array as an array of a framework, by the framework's own function."""
    if peer.name == "tensorflow":
        return peer.tf.experimental.dlpack.from_dlpack(x.__dlpack__())
    home = {"torch": "torch", "jax": "jax", "array_api_strict": "xp", "native": "native"}[peer.name]
    module = getattr(peer, home)
    return (module.numpy if peer.name == "jax" else module).from_dlpack(x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_frameworks_arrays_come_in_and_go_out(peer, dtype):
    if dtype in peer.lacks or (peer.name == "array_api_strict" and dtype in ("float16", "bfloat16")):
        pytest.skip(f"{peer.name} has no {dtype}")
    x = native.from_dlpack(peer.array([[1, 0, 1], [0, 1, 1]], dtype))
    assert (x.shape, x.dtype) == ((2, 3), peer.held(dtype))
    sums = at.sum(x, 0) if dtype != "bool" else x
    back = out_of(peer, x)
    assert peer.is_array(back) and peer.dtype(back) == peer.held(dtype)
    assert peer.numpy(back).tolist() == [[1, 0, 1], [0, 1, 1]]
    assert type(sums) is native.Array


@pytest.mark.parametrize("layout", sorted(set(LAYOUTS) - {"misaligned", "between", "broadcast"}))
def test_native_arrays_of_every_layout_go_out_or_are_refused_by_the_framework(peer, layout):
    host = LAYOUTS[layout]().astype("float32", order="K")
    x = native.from_dlpack(np.asarray(host))
    try:
        back = out_of(peer, x)
    except Exception as error:  # JAX and TensorFlow take compact strides alone
        assert peer.name in ("jax", "tensorflow") and layout in ("transposed", "strided"), repr(error)
        back = out_of(peer, native.from_dlpack(x, copy=True))
    assert peer.numpy(back).tolist() == host.tolist()


def test_a_result_goes_out_after_its_operands_are_gone(peer):
    x = native.from_dlpack(peer.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "float32"))
    total = at.segment_sum(x, native.from_dlpack(peer.array([1, 0, 1], "int32")), 2)
    del x
    back = out_of(peer, total)
    del total
    gc.collect()
    assert peer.numpy(back).tolist() == [[3.0, 4.0], [6.0, 8.0]]


def test_frameworks_keep_native_memory_alive_and_let_it_go(peer):
    before = _core._native_live()
    for _ in range(10):
        back = out_of(peer, at.maximum(floats(1, 2, 4), 2.0))
        assert _core._native_live() >= before and peer.numpy(back).tolist() == [2, 2, 4]
        del back
    gc.collect()
    assert _core._native_live() == before


def test_a_native_array_beside_another_framework_is_a_type_error(peer):
    if peer.name == "native":
        pytest.skip("one framework")
    with pytest.raises(TypeError, match=r"native.*one framework|one framework.*native"):
        at.maximum(floats(1, 2), peer.array([1.0, 2.0], "float32"))
    with pytest.raises(TypeError, match="native"):
        at.segment_sum(
            peer.array([1.0, 2.0], "float32"), np.array([0, 1]), at.sum(native.from_dlpack(np.array([2])))
        )


def test_torch_shares_memory_and_refuses_what_it_must(torch):
    x = native.from_dlpack(torch.arange(3.0))
    y = torch.from_dlpack(x)
    y[0] = 5.0
    assert np.from_dlpack(x).tolist() == [5.0, 1.0, 2.0]  # one memory
    with pytest.raises((BufferError, RuntimeError)):
        native.from_dlpack(torch.ones(2, requires_grad=True))
    with pytest.raises((BufferError, ValueError)):
        native.from_dlpack(torch.ones(2, device="meta"))
