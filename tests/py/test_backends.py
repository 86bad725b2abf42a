"""Names that programs of the first versions use: backends, namespaces, import paths, einops and typing names.

Accuses python/anytensor/backends.py, namespace.py, semantics.py, core.py, segment.py, __init__.py.
"""

import importlib
import math

import numpy as np
import pytest

import anytensor as at
from anytensor.backends import AbstractBackend, JaxBackend, NumpyBackend, get_backend
from anytensor.namespace import array_namespace
from anytensor.semantics import empty_segment_identity

EINOPS = ("einsum", "pack", "rearrange", "reduce", "unpack")
TYPING = (
    "ArrayT Axes Bool DtypeLike Float FloatArray Inexact Int IntArray Integer Num Real SegmentIds SegmentOut "
    "SegmentValues ShapeLike ShapeSize Shaped ShapedArray"
).split()


def called(fw):
    """The framework as a user knows it."""
    return fw.name.removesuffix("32")


# ---- backends
def test_a_backend_has_the_name_of_its_framework(fw):
    backend = get_backend(fw.array([1.0], "float32"))
    assert isinstance(backend, AbstractBackend)
    assert backend.framework_name == called(fw)
    assert repr(backend) == f"<anytensor backend for {called(fw)}>"
    assert backend is get_backend(fw.array([1], "int8")) is at.get_backend(fw.array([True], "bool"))


def test_a_backend_makes_and_reads_arrays(fw):
    host = np.array([[1.0, 2.0]], np.float32)
    backend = get_backend(fw.array([1.0], "float32"))
    x = backend.from_numpy(host)
    assert fw.is_array(x) and fw.dtype(x) == "float32"
    assert type(backend.to_numpy(x)) is np.ndarray
    assert backend.to_numpy(x).tolist() == host.tolist()
    assert backend.shape(x) == (1, 2)
    assert backend.is_appropriate_type(x)
    assert fw.device(x) in str(backend.device(x)) or called(fw) == "jax"


def test_a_backend_refuses_the_arrays_of_others(peer):
    x = peer.array([1.0], "float32")
    assert not get_backend(x).is_appropriate_type(np.ones(1))
    assert not get_backend(np.ones(1)).is_appropriate_type(x)
    assert not get_backend(x).is_appropriate_type("text")


def test_a_backend_has_constants_and_dtypes(fw):
    backend = get_backend(fw.array([1.0], "float32"))
    assert (backend.inf, backend.ninf, backend.pi, backend.e) == (math.inf, -math.inf, math.pi, math.e)
    assert math.isnan(backend.nan) and backend.newaxis is None
    assert backend.float32 == fw.own_dtype("float32") and backend.bool == fw.own_dtype("bool")
    assert float(backend.finfo(fw.array([1.0], "float32")).eps) == 2.0**-23
    assert backend.iinfo(fw.array([1], "int8")).max == 127
    with pytest.raises(AttributeError, match="has no attribute 'float31'"):
        backend.float31  # noqa: B018


@pytest.mark.parametrize(
    ("reduction", "want"), [("sum", [3.0, 4.0]), ("min", [1.0, 4.0]), ("max", [2.0, 4.0])]
)
def test_a_backend_reduces_segments(fw, reduction, want):
    x, ids = fw.array([1, 2, 4], "float32"), fw.array([0, 0, 1], "int32")
    backend = get_backend(x)
    assert fw.numpy(backend.segment_reduce(x, ids, 2, reduction)).tolist() == want
    assert fw.numpy(backend.segment_reduce(x, ids, 2, reduction, sorted=True)).tolist() == want
    with pytest.raises(ValueError, match="segment_reduce: argument 'reduction': .* found 'mean'"):
        backend.segment_reduce(x, ids, 2, "mean")


@pytest.mark.skipif(not hasattr(at, "split"), reason="there is no split yet")
def test_a_backend_splits(fw):
    x = fw.array([1, 2, 3, 4], "int32")
    assert [fw.numpy(part).tolist() for part in get_backend(x).split(x, 2)] == [[1, 2], [3, 4]]


@pytest.mark.parametrize("stranger", [1.0, True, [1.0], (1.0,), None, "x", np.float32(1), object()])
def test_a_stranger_has_no_backend(stranger):
    for error in (RuntimeError, TypeError):
        with pytest.raises(error, match="Tensor type unknown to anytensor: <class"):
            get_backend(stranger)


def test_jax_is_a_kind_of_numpy():
    assert issubclass(JaxBackend, NumpyBackend)


def test_a_tensor_from_numpy_shares_memory_and_wants_no_gradient(torch):
    host = np.ones(2)
    x = get_backend(torch.ones(1)).from_numpy(host)
    host[0] = 5
    assert x[0] == 5 and not x.requires_grad
    assert get_backend(x).to_numpy(torch.nn.Parameter(x)).tolist() == [5, 1]


# ---- namespaces
def test_scalars_and_nothing_have_the_namespace_of_numpy():
    import array_api_compat.numpy as xp

    assert (
        array_namespace() is array_namespace(1.0, None, np.int8(1)) is array_namespace(np.ones(1), True) is xp
    )


def test_the_namespace_is_that_of_the_framework(fw):
    x = fw.array([1.0, 2.0], "float32")
    if fw.name == "native":
        with pytest.raises(TypeError, match="native arrays have no Array API namespace"):
            array_namespace(x)
        return
    xp = array_namespace(None, x, np.ones(1), 2.0)
    assert xp is array_namespace(np.ones(1), x) or fw.name == "numpy"
    assert fw.is_array(xp.asarray([1.0, 2.0]))
    assert fw.numpy(xp.concat([x, x])).tolist() == [1, 2, 1, 2]
    assert fw.numpy(xp.permute_dims(xp.ones((2, 3)), (1, 0))).shape == (3, 2)
    assert xp.isdtype(x.dtype, "real floating") and not xp.isdtype(x.dtype, ("integral", "bool"))
    assert fw.numpy(xp.cumulative_sum(x)).tolist() == [1, 3]
    assert fw.dtype(xp.astype(x, xp.int32)) == "int32"


def test_two_frameworks_have_no_namespace(peer):
    if peer.name == "native":
        pytest.skip("native arrays have none")
    from anytensor import native

    with pytest.raises(TypeError, match=f"(Multiple namespaces|Cannot mix TensorFlow) .*{called(peer)}"):
        array_namespace(peer.array([1.0], "float32"), native.from_dlpack(np.ones(1)))


def test_a_list_has_no_namespace():
    with pytest.raises(TypeError, match="array_namespace: argument 'arrays': expected an array, found list"):
        array_namespace([1.0])


# ---- semantics
@pytest.mark.parametrize("reduction", ["sum", "min", "max"])
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int64", "uint64", "float16", "float32", "float64"]
)
def test_the_identity_of_an_empty_segment(fw, dtype, reduction):
    """It is what a segment without rows holds, and is said by a name, NumPy's dtype and the framework's own."""
    if dtype in fw.lacks:
        pytest.skip(f"{fw.name} has no {dtype}")
    dtype = fw.held(dtype)
    given = [dtype, np.dtype(dtype), fw.own_dtype(dtype), fw.array([0], dtype).dtype]
    (value,) = {empty_segment_identity(one, reduction, xp=np) for one in given}
    assert type(value) in (bool, int, float)
    if reduction == "sum":
        assert value == 0
    elif not (dtype in ("uint64", "uint32", "uint16") and fw.name == "torch"):
        x, ids = fw.array([], dtype), fw.array([], "int32")
        fold = {"min": at.segment_min, "max": at.segment_max}[reduction]
        assert fw.numpy(fold(x, ids, 1))[0] == value


def test_what_has_no_identity():
    with pytest.raises(ValueError, match="empty_segment_identity: argument 'reduction': .* found 'mean'"):
        empty_segment_identity(np.float32, "mean", xp=np)
    with pytest.raises(ValueError):
        empty_segment_identity(np.complex64, "min", xp=np)
    assert empty_segment_identity(np.complex64, "sum", xp=np) == 0


def test_dtypes_that_only_say_their_kind_have_an_identity():
    class Odd:
        kind = "f"

    assert empty_segment_identity(Odd(), "max", xp=None) == -math.inf


# ---- import paths
@pytest.mark.parametrize("path", ["core", "segment"])
def test_functions_are_found_by_their_old_paths(path):
    module = importlib.import_module(f"anytensor.{path}")
    assert all(getattr(module, name) is getattr(at, name) for name in at._core.ops + at._core.facts)
    with pytest.raises(AttributeError, match="module 'anytensor.core' has no attribute 'nonsense'"):
        module.nonsense  # noqa: B018


def test_a_result_that_is_a_scalar_becomes_an_array(fw):
    from anytensor.core import as_array_result

    @as_array_result
    def first(x, *others, as_scalar=True):
        "A function."
        return np.float32(2.0) if as_scalar else others

    if fw.name != "native":
        got = first(fw.array([1], "float32"), "text", [1])
        assert fw.is_array(got) and fw.numpy(got).shape == () and fw.numpy(got) == 2
    assert first(fw.array([1], "float32"), 7, as_scalar=False) == (7,)
    assert (first.__name__, first.__doc__) == ("first", "A function.")


@pytest.mark.parametrize("name", EINOPS)
def test_einops_is_handed_on_as_it_is(name):
    assert getattr(at, name) is getattr(importlib.import_module("einops"), name)


@pytest.mark.parametrize("name", TYPING)
def test_typing_names_are_those_of_the_module(name):
    assert getattr(at, name) is getattr(importlib.import_module("anytensor.typing"), name)


def test_all_names_can_be_imported_at_once():
    names = {}
    exec("from anytensor import *", names)
    assert set(at.__all__) <= set(names) and set(at.__all__) <= set(dir(at))
    with pytest.raises(AttributeError, match="module 'anytensor' has no attribute 'nonsense'"):
        at.nonsense  # noqa: B018
