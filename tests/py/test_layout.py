"""take, repeat, reshape, concatenate, shape (SEMANTICS 9, 18); accuses the adapters, src/ops/partition.c (repeat)."""

import cases
import numpy as np
import pytest

import anytensor as at


@pytest.mark.parametrize("case", cases.LAYOUT, ids=str)
def test_layout(fw, case):
    cases.check(fw, case)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 4)])
def test_shape_is_a_tuple_of_ints(fw, shape):
    got = at.shape(fw.array(np.zeros(shape), "float32"))
    assert type(got) is tuple and got == shape
    assert all(type(size) is int for size in got)


def test_shape_of_a_scalar_is_empty():
    for scalar in (1, 2.0, True, np.float32(1)):
        assert at.shape(scalar) == ()


def test_a_result_of_one_element_is_an_array_and_no_scalar(fw):
    x = fw.array([1.0, 2.0], "float32")
    for got in (at.sum(x), at.take(x, 0), at.max(x), at.reshape(at.take(x, [0][0]), ()), at.mean(x, (0,))):
        assert fw.is_array(got) and tuple(got.shape) == ()


def test_reshape_of_contiguous_numpy_memory_is_a_view():
    x = np.arange(6.0)
    assert np.shares_memory(at.reshape(x, (2, 3)), x)


@pytest.mark.filterwarnings("ignore:a NumPy array cannot be shared")
def test_layout_of_strided_numpy_memory(fw):
    x = np.arange(24.0, dtype="float32").reshape(4, 6)[::-1, ::2]
    for got, want in (
        (at.take(x, fw.array([-1, 0], "int64"), 1), x[:, [-1, 0]]),
        (at.repeat(x, fw.array(2, "int64"), axis=1), np.repeat(x, 2, 1)),
        (at.reshape(x, (2, 6)), x.reshape(2, 6)),
        (at.concatenate([x, x.astype(">f4")]), np.concatenate([x, x])),
        (at.cumsum(x, 1), np.cumsum(x, 1)),
    ):
        assert np.array_equal(fw.numpy(got) if fw.is_array(got) else got, want)
