"""Any library with an Array API namespace: discovery, devices, segments by sort and scan.

Accuses src/python/backends/array_api*.c, the end of src/python/registry.c. What ops give stands in the cases, which
run on array_api_strict as on every other framework; here stands what is particular to the generic adapter.
"""

import gc
import itertools
import math
import types
import warnings
import weakref

import cases
import numpy as np
import oracle
import pytest
from frameworks import framework, installed, needs
from test_imports import python

import anytensor as at

SELECTION = "array_api_strict"
pytest.importorskip(SELECTION)

# --- a small library of its own ---------------------------------------------------------------------------

DTYPES = [*oracle.WIDTH, "float32", "float64"]
FUNCTIONS = (
    "exp log sqrt isnan isfinite add subtract multiply divide equal less greater_equal maximum minimum logical_and "
    "logical_or where sum prod mean min max take repeat reshape broadcast_to astype full zeros_like ones_like arange "
    "sort argsort searchsorted cumulative_sum concat"
).split()


class Wrapped:
    """A NumPy array that shows nothing but what the standard asks for, and not even a device."""

    def __init__(self, array, home):
        self._array, self._home = np.asarray(array), home

    shape = property(lambda self: self._array.shape)
    dtype = property(lambda self: self._array.dtype)

    def __array_namespace__(self, api_version=None):
        return self._home

    def __getitem__(self, key):
        return type(self)(self._array[key], self._home)


def library(name="wrapping", without=(), array_type=None, **more):
    """A namespace of a name, and the class of its arrays. It has no device, no info, and asarray refuses NumPy's."""
    if installed("numpy") < (2, 1):
        pytest.skip("its functions are NumPy's, under the standard's names: from 2.1 on")
    home = types.SimpleNamespace(__name__=name, __version__="7.8.9", bool=np.dtype(bool), **more)
    kind = array_type or type("Array", (Wrapped,), {})

    def wrap(f):
        def call(*args, device=None, **kwargs):
            assert device is None
            args = [type(a)(map(open, a)) if isinstance(a, (list, tuple)) else open(a) for a in args]
            return kind(f(*args, **kwargs), home)

        open = lambda a: a._array if isinstance(a, kind) else a  # noqa: E731
        return call

    def refuse(x, *, device=None):
        raise TypeError("no NumPy here")

    for function in FUNCTIONS:
        setattr(home, function, wrap(getattr(np, function)))
    home.asarray, home.from_dlpack = refuse, wrap(np.from_dlpack)
    for dtype in DTYPES:
        setattr(home, dtype, np.dtype(dtype))
    for function in without:
        delattr(home, function)
    return home, lambda data, dtype="float32": kind(np.array(data, dtype), home)


@pytest.fixture
def strict():
    return framework("array_api_strict").xp


def values(x):
    return x._array.tolist()


# --- discovery --------------------------------------------------------------------------------------------


def test_an_array_of_any_namespace_is_an_array():
    _, array = library()
    x, ids = array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), array([1, -1, 1], "int32")
    assert values(at.exp(x)) == np.exp(x._array).tolist()
    assert values(at.segment_sum(x, ids, 2)) == [[0.0, 0.0], [6.0, 8.0]]
    assert values(at.take(x, array([-1], "int8"), 1)) == [[2.0], [4.0], [6.0]]
    assert at.mean(ids).dtype == np.float64
    assert at.shape(x) == (3, 2)


def test_numpy_joins_by_dlpack_where_asarray_refuses_it():
    _, array = library()
    got = at.maximum(array([1.0, 4.0]), np.array([2.0, 3.0], np.float32))
    assert values(got) == [2.0, 4.0]


def test_where_dlpack_fails_too_asarray_speaks():
    _, array = library()
    with pytest.raises(TypeError, match="no NumPy here"):
        at.where(array([True], "bool"), array([1.0]), np.array(["text"]))


def test_a_function_that_a_namespace_lacks_is_named_with_its_version_and_leaves_the_others_working():
    _, array = library(without=("searchsorted", "logical_and"))
    x, ids = array([1.0, 2.0]), array([0, 1], "int64")
    assert values(at.maximum(x, 1.5)) == [1.5, 2.0]
    with pytest.raises(NotImplementedError, match=r"wrapping 7\.8\.9.*no function 'logical_and'") as caught:
        at.segment_sum(x, ids, 2)
    assert "in anytensor.segment_sum(" in caught.value.__notes__[0]


def test_a_dtype_that_a_namespace_lacks_is_a_type_error():
    _, array = library()
    fw = framework("array_api_strict")
    for x, name in ((array([1.0]), "wrapping"), (fw.array([1.0], "float32"), "array_api_strict")):
        for dtype in ("float16", "bfloat16"):
            with pytest.raises(TypeError, match=f"this {name} has no {dtype}"):
                at.astype(x, dtype)
        with pytest.raises(TypeError, match=f"this {name} has no float16"):
            at.maximum(x, np.ones(1, np.float16))


@pytest.mark.parametrize("error", [RuntimeError, TypeError, AttributeError, RecursionError])
def test_an_object_whose_namespace_raises_is_no_array(error):
    class Broken:
        def __array_namespace__(self, api_version=None):
            raise error("broken")

    class Nothing:
        def __array_namespace__(self, api_version=None):
            return None

    for odd in (Broken(), Nothing()):
        with pytest.raises(TypeError, match="exp: argument 'x': expected an array or a scalar"):
            at.exp(odd)
        with pytest.raises(TypeError, match="expected a size"):
            at.zeros(odd)


def test_what_stops_the_interpreter_is_not_swallowed():
    class Stops:
        def __array_namespace__(self, api_version=None):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        at.exp(Stops())


def test_classes_and_numpy_scalars_are_not_arrays_of_a_namespace():
    _, array = library()
    with pytest.raises(TypeError, match="expected an array or a scalar"):
        at.exp(type(array([1.0])))
    assert type(at.exp(np.float32(0))) is np.ndarray


def test_an_array_of_unknown_size_serves_where_no_size_is_needed():
    class Unsized(Wrapped):
        shape = (None,)

    _, array = library(array_type=Unsized)
    x = array([1.0])
    assert values(at.maximum(x, x)) == [1.0]
    with pytest.raises(ValueError, match="known shape.*wrapping.*None"):
        at.segment_sum(x, array([0], "int64"), 1)


def test_two_namespaces_in_one_call_are_refused_with_both_names():
    arrays = {name: library(name)[1]([1.0]) for name in ("first", "second")}
    arrays["array_api_strict"] = framework("array_api_strict").array([1.0], "float32")
    for one, other in itertools.permutations(arrays, 2):
        with pytest.raises(TypeError, match="maximum: argument 'y'") as caught:
            at.maximum(arrays[one], arrays[other])
        assert one in str(caught.value) and other in str(caught.value)


def test_one_namespace_serves_several_types_of_arrays():
    home, array = library()
    sub = type("Sub", (type(array([0.0])),), {})
    assert values(at.maximum(sub(np.ones(1), home), array([0.5], "float64"))) == [1.0]


def test_array_types_do_not_live_longer_for_having_been_seen():
    home, array = library()
    kind = type("Brief", (Wrapped,), {})
    at.shape(kind(np.ones(2), home))
    gone = weakref.ref(kind)
    del kind
    gc.collect()
    assert gone() is None


def test_strict_arrays_import_no_framework():
    python("""
        import sys
        import array_api_strict as xp
        import anytensor as at
        x, ids = xp.ones(3), xp.asarray([0, 1, 1])
        at.segment_softmax(x, ids, 2), at.exp(x), at.zeros(3, like=x)
        loaded = [name for name in ("torch", "jax", "tensorflow", "cupy", "dask") if name in sys.modules]
        assert not loaded, loaded
    """)


def test_a_dtype_of_a_namespace_that_no_array_has_woken_is_known():
    python("""
        import array_api_strict as xp
        import numpy as np
        import anytensor as at
        assert at.zeros(2, dtype=xp.float32).dtype == np.float32
        try:
            at.zeros(2, dtype=xp.complex64)
        except TypeError:
            pass
        else:
            raise AssertionError
    """)


def test_dtypes_of_one_namespace_are_not_compared_with_those_of_numpy():
    assert at.shape(library("numpys dtypes")[1]([1.0])) == (1,)
    fw = framework("array_api_strict")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fw.dtype(at.zeros(2, like=fw.array([1.0], "float64"), dtype=fw.xp.int8)) == "int8"
        with pytest.raises(TypeError, match="'dtype'"):
            at.zeros(2, like=fw.array([1.0], "float64"), dtype=fw.xp.complex64)


def test_a_module_that_goes_releases_the_namespaces_it_has_seen():
    python("""
        import gc, importlib.util, weakref
        import numpy as np
        import array_api_strict as xp
        import anytensor._core as core
        spec = importlib.util.find_spec("anytensor._core")
        class Array:
            shape = ()
            def __array_namespace__(self, api_version=None):
                return space
        class Space:
            pass
        space = Space()
        space.__name__ = "brief"
        second = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(second)
        second.shape(Array())
        second.exp(xp.ones(3))
        gone = weakref.ref(space)
        del space, second
        gc.collect()
        assert gone() is None
    """)


@pytest.mark.parametrize("index_dtype", ["int8", "int64", "uint8", "uint64"])
@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
def test_an_index_out_of_range_gives_nan_or_0_and_never_another_element(dtype, index_dtype):
    fw, ones = framework("array_api_strict"), np.ones((3, 2), dtype)
    beyond = {"uint64": 2**63 + 1, "int8": -4}.get(index_dtype, 3)
    nothing = np.full(2, np.nan if dtype == "float32" else 0)
    for axis in (0, -2):
        for index, want in (
            ([0, beyond, 2], [ones[0], nothing, ones[2]]),
            ([[beyond]], [[nothing]]),
            (beyond, nothing),
        ):
            got = at.take(fw.array(ones, dtype), fw.array(index, index_dtype), axis)
            assert np.array_equal(fw.numpy(got), np.asarray(want), equal_nan=True)


@needs("numpy", "2.1", "bool by DLPack, and asarray with copy=")
def test_take_from_an_axis_of_nothing_gives_nothing():
    fw = framework("array_api_strict")
    x = fw.array(np.zeros((0, 2)), "float32")
    got = fw.numpy(at.take(x, fw.array([[0, -1]], "int64")))
    assert got.shape == (1, 2, 2) and np.isnan(got).all()
    assert fw.numpy(at.take(x, fw.array([], "int64"))).shape == (0, 2)


def test_counts_that_crash_a_library_never_reach_it(strict):
    x = strict.ones(8)
    for counts in ([2**61], [2**61] * 8, 2**61, [2**63 - 1] * 8):
        with pytest.raises(ValueError, match="repeat: argument 'repeats'.*too many"):
            at.repeat(x, strict.asarray(np.array(counts)))
    for counts in ([1, 2, 3, -1, 0, 0, 0, 0], -1):
        with pytest.raises(ValueError, match="repeat: argument 'repeats'.*>= 0, found -1"):
            at.repeat(x, strict.asarray(np.array(counts)))


# --- devices ----------------------------------------------------------------------------------------------


def on(strict, device, data, dtype):
    return strict.asarray(np.array(data, dtype), device=strict.Device(device))


@pytest.mark.parametrize("device", ["CPU_DEVICE", "device1"])
def test_results_stay_on_the_device_of_the_operands(strict, device):
    x = on(strict, device, [[1, 2], [3, 4], [5, 6]], "float32")
    ids, lengths = on(strict, device, [0, 2, 9], "int64"), on(strict, device, [1, 2], "int64")
    host = np.ones((3, 2), np.float32)
    results = [getattr(at, op)(x, ids, 3) for op in cases.SEGMENT_OPS if op != "segment_count"]
    results += [getattr(at, op)(host, ids, 3) for op in cases.SEGMENT_OPS if op != "segment_count"]
    results += [getattr(at, op)(x, np.arange(3), 3) for op in cases.SEGMENT_OPS if op != "segment_count"]
    results += [getattr(at, f"partition_{op}")(x, lengths, 3) for op in ("sum", "min", "max", "softmax")]
    results += [at.segment_count(ids, 3), at.partition_ids(lengths, 3), at.take(x, ids), at.take(x, 1)]
    results += [at.maximum(x, host), at.minimum(host, x), at.maximum(x, 2), at.where(host > 0, x, 0.0)]
    results += [at.exp(x), at.mean(ids), at.sum(x, 1), at.max(x > 2), at.cumsum(ids), at.clip(x, 1, 2)]
    results += [at.fill_nan(x), at.fill_nan(ids), at.reshape(x, (6,)), at.concatenate([x, host])]
    results += [at.repeat(x, 2), at.repeat(x, lengths, axis=1), at.repeat(lengths, 3, total_repeat_length=5)]
    results += [at.zeros(2, like=x), at.full(2, np.float32(1), like=x), at.ones_like(x), at.astype(x, "int8")]
    results += [at.arange(3, like=x), at.arange(at.sum(lengths)), at.full((2, 2), lengths)]
    assert {str(got.device) for got in results} == {str(strict.Device(device))}


@needs("numpy", "2.1", "bool by DLPack, and asarray with copy=")
def test_a_value_from_another_device_goes_where_like_is(strict):
    value, like = on(strict, "CPU_DEVICE", 3, "int64"), on(strict, "device1", [1.0], "float32")
    got = at.full((2,), value, like=like)
    assert got.device == strict.Device("device1") and got.dtype == strict.float32


def test_arange_takes_a_device(strict):
    like = on(strict, "CPU_DEVICE", [1.0], "float32")
    assert at.arange(3, like=like, device=strict.Device("device2")).device == strict.Device("device2")


def test_two_devices_are_the_frameworks_own_error(strict):
    with pytest.raises(ValueError, match="two different devices") as caught:
        at.maximum(on(strict, "device1", [1.0], "float32"), on(strict, "device2", [1.0], "float32"))
    assert "in anytensor.maximum(" in caught.value.__notes__[0]


def test_indices_take_the_dtype_that_a_device_has(strict):
    x, index = on(strict, "no_x64", [1, 2, 3], "float32"), on(strict, "no_x64", [-1, 7], "int32")
    got = np.from_dlpack(at.take(x, index))
    assert got[0] == 3 and np.isnan(got[1])


# --- segments by sort and scan ----------------------------------------------------------------------------

OPS = ("segment_sum", "segment_max", "segment_min", "segment_mean", "segment_softmax")
IDS = {
    "none": np.zeros(0, int),
    "one": np.array([2]),
    "all the same": np.full(37, 3),
    "all dropped": np.full(5, -1),
    "all different": np.arange(33)[::-1].copy(),
    "random": np.random.default_rng(5).integers(-2, 9, 100),
    "sorted": np.sort(np.random.default_rng(6).integers(0, 6, 64)),
}


@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("width", [(), (3,), (2, 2)], ids=str)
def test_sort_and_scan_agrees_with_loops(ids, width):
    fw, rng = framework("array_api_strict"), np.random.default_rng(1)
    ids = IDS[ids]
    x = rng.normal(size=(len(ids), *width))
    x[rng.random(x.shape) < 0.05] = math.nan
    x[rng.random(x.shape) < 0.05] = math.inf
    x[rng.random(x.shape) < 0.05] = -math.inf
    for op in OPS:
        for n in (0, 1, 7, 40):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                got = getattr(at, op)(fw.array(x, "float64"), fw.array(ids, "int64"), n)
            want = oracle.segment(op, x, ids, n, "float64")
            assert oracle.difference(fw.numpy(got), want, 1e-12) is None, (op, n)


@pytest.mark.parametrize("dtype", [*oracle.WIDTH, "bool"])
def test_sort_and_scan_of_integers_is_exact(dtype):
    fw, ids = framework("array_api_strict"), IDS["random"]
    info = np.iinfo(np.uint8 if dtype == "bool" else dtype)
    x = np.random.default_rng(2).integers(info.min, info.max, (len(ids), 2), info.dtype, endpoint=True)
    x = x > 100 if dtype == "bool" else x
    for op in ("segment_sum", "segment_max", "segment_min"):
        got = getattr(at, op)(fw.array(x, dtype), fw.array(ids, "int64"), 9)
        want = oracle.segment(op, x, ids, 9, "int64" if dtype == "bool" and op == "segment_sum" else dtype)
        assert oracle.difference(fw.numpy(got), want, 0) is None, op


def test_segments_of_finite_and_infinite_rows_side_by_side_do_not_warn():
    fw = framework("array_api_strict")
    x = fw.array([math.inf, -math.inf, 3e38, 3e38], "float32")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = at.segment_sum(x, fw.array([0, 1, 2, 3], "int64"), 5)
    assert fw.numpy(got).tolist() == [math.inf, -math.inf, fw.numpy(x)[2], fw.numpy(x)[3], 0.0]


def test_a_long_segment_of_float32_stays_within_a_millionth():
    fw, n = framework("array_api_strict"), 10**6
    x = np.random.default_rng(0).random(n, dtype=np.float32)
    exact = math.fsum(x.astype(np.float64))
    got = at.segment_sum(fw.array(x, "float32"), fw.array(np.zeros(n), "int32"), 1)
    assert fw.dtype(got) == "float32"
    assert abs(float(got[0]) - exact) <= 1e-6 * exact


def test_half_precision_is_added_in_float32_where_a_namespace_has_it():
    _, array = library(float16=np.dtype("float16"))
    x, ids = array(np.full(5000, 1.0), "float16"), array(np.zeros(5000), "int64")
    got = at.segment_sum(x, ids, 1)
    assert got.dtype == np.float16 and values(got) == [5000.0]
    assert values(at.segment_mean(x, ids, 1)) == [1.0]


# --- a library that array_api_compat knows without a method ---------------------------------------------------


def test_dask_arrays_are_arrays():
    da = pytest.importorskip("dask.array")
    x, ids = np.arange(12.0).reshape(6, 2), np.array([1, 0, -1, 3, 1, 2])
    lazy, lazy_ids = da.from_array(x, chunks=(4, 1)), da.from_array(ids, chunks=3)
    pairs = [(getattr(at, op)(lazy, lazy_ids, 3), getattr(at, op)(x, ids, 3)) for op in OPS]
    pairs += [(at.exp(lazy), at.exp(x)), (at.mean(lazy, 0), at.mean(x, 0)), (at.max(lazy > 3), np.True_)]
    pairs += [(at.take(lazy, ids), None), (at.maximum(lazy, x + 1), x + 1)]
    for got, want in pairs:
        assert isinstance(got, da.Array)
        assert want is None or np.allclose(got.compute(), want)
    with pytest.raises(ValueError, match="known shape.*dask.array.*nan"):
        at.segment_sum(lazy[lazy[:, 0] > 3], lazy_ids, 3)
