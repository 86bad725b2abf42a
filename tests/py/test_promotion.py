"""Common dtypes, weak scalars, NumPy beside a tensor (SEMANTICS 12-14, 24); accuses src/core/promote.c."""

import warnings

import cases
import numpy as np
import pytest
from frameworks import installed

import anytensor as at


@pytest.mark.parametrize("case", cases.PROMOTION, ids=str)
def test_promotion(fw, case):
    cases.check(fw, case)


@pytest.mark.parametrize("op", ["maximum", "minimum", "fill_nan"])
def test_numpy_on_either_side_gives_the_frameworks_array_and_dtype(peer, op):
    f = getattr(at, op)
    for dtype in sorted({"float32", "float16", "int64"} - set(peer.lacks)):
        x, y = peer.array([1, 2], dtype), np.array([1, 2], dtype)
        for got in (f(x, y), f(y, x)):
            assert peer.is_array(got) and peer.dtype(got) == peer.held(dtype)


def test_numpy_scalars_and_0d_arrays_carry_their_dtype_beside_a_framework(peer):
    x = peer.array([1.0, 2.0], "float32")
    for strong in (np.float64(2), np.array(2.0), peer.array(2.0, "float64")):
        assert peer.dtype(at.maximum(x, strong)) == peer.held("float64")
        assert peer.dtype(at.maximum(strong, x)) == peer.held("float64")
    for weak in (2.0, 2, True):
        assert peer.dtype(at.maximum(x, weak)) == "float32"
    assert peer.dtype(at.maximum(peer.array([1], "int8"), np.int64(1))) == peer.held("int64")


def test_numpy_scalars_carry_their_dtype_on_numpy():
    x = np.ones(2, np.float32)
    assert at.maximum(x, np.float64(2)).dtype == np.float64
    assert at.maximum(x, np.float16(2)).dtype == np.float32
    assert at.maximum(np.ones(2, np.int8), np.int8(1)).dtype == np.int8


def test_numbers_of_subclasses_are_weak(fw):
    class Count(int):
        pass

    class Ratio(float):
        pass

    assert fw.dtype(at.maximum(fw.array([1], "int8"), Count(3))) == "int8"
    small = "float32" if "float16" in fw.lacks else "float16"
    assert fw.dtype(at.maximum(fw.array([1], small), Ratio(3))) == small


def test_numpy_joins_without_a_copy_where_memory_can_be_shared(peer):
    x = np.arange(4.0, dtype="float32")
    joined = at.reshape(at.concatenate([x]), (4,))
    assert isinstance(joined, np.ndarray)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = at.maximum(peer.array([1.0], "float32"), x)
    assert peer.numpy(got).tolist() == [1.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("kind", ["negative strides", "foreign byte order"])
def test_memory_that_cannot_be_shared_is_copied_with_a_warning_at_the_callers_line(peer, kind):
    x = np.arange(4.0, dtype="float32")[::-1] if kind == "negative strides" else np.arange(4.0, dtype=">f4")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = at.maximum(peer.array([0.0], "float32"), x)
    assert peer.numpy(got).tolist() == x.tolist()
    assert [w.category for w in caught] == [UserWarning]
    assert "fell back to a copy" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_a_warning_made_an_error_is_raised(peer):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="fell back to a copy"):
            at.maximum(peer.array([0.0], "float32"), np.arange(4.0, dtype="float32")[::-1])


@pytest.mark.filterwarnings("ignore:a NumPy array cannot be shared")
def test_numpys_bfloat16_joins_a_framework(peer):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    if "bfloat16" in peer.lacks or (peer.name == "tensorflow" and installed("tensorflow") < (2, 14)):
        pytest.skip("no bfloat16 here, or none that is ml_dtypes': TensorFlow's from 2.14 on")
    x = np.array([1.5, 2.5], ml_dtypes.bfloat16)
    one, ids = peer.array([1.0, 2.0], "bfloat16"), peer.array([0, 0], "int64")
    for got in (at.maximum(one, x), at.maximum(x, one), at.maximum(x[0], one), at.segment_max(x, ids, 1)):
        assert peer.is_array(got) and peer.dtype(got) == "bfloat16"
    assert peer.numpy(at.maximum(one, x[::-1].copy()[::-1])).tolist() == [1.5, 2.5]


def test_numpy_beside_another_device_goes_there(peer):
    if peer.elsewhere is None:
        pytest.skip("one device")
    x = peer.empty_elsewhere((2,), "float32")
    for other in (np.ones(2, np.float32), np.float32(1), 2.0, np.array(1.0)):
        assert peer.device(at.maximum(x, other)) == peer.elsewhere
        assert peer.device(at.maximum(other, x)) == peer.elsewhere
        assert peer.device(at.where(np.array([True, False]), x, other)) == peer.elsewhere
