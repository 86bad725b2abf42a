"""take, repeat, reshape, transpose, split, concatenate, stack, cast, shape (SEMANTICS 9, 18); accuses the adapters,
src/ops/layout.c, src/ops/partition.c (repeat).
"""

import cases
import numpy as np
import pytest

import anytensor as at


@pytest.mark.parametrize("case", [*cases.LAYOUT, *cases.PARTS], ids=str)
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


def test_parts_and_transposes_of_numpy_memory_are_views():
    x = np.arange(6.0).reshape(2, 3)
    assert np.shares_memory(at.transpose(x), x)
    for part in (*at.split(x, 2), *at.split(x, [1], axis=1), *at.split(x, [])):
        assert np.shares_memory(part, x)
        assert part.base is not None and part.flags.writeable
    x.flags.writeable = False
    assert not at.split(x, 2)[1].flags.writeable


def test_a_part_keeps_what_it_was_cut_from():
    parts = at.split(np.arange(4.0), 2)
    filler = [np.full(4, -1.0) for _ in range(50)]
    assert parts[1].tolist() == [2.0, 3.0] and len(filler) == 50


def test_split_gives_a_list_of_as_many_parts(fw):
    x = fw.array(np.arange(4096.0), "float32")
    parts = at.split(x, 64 if fw.compiles else 4096)
    assert type(parts) is list and len(parts) in (64, 4096)
    assert float(fw.numpy(parts[-1])[-1]) == 4095.0


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
        (at.transpose(x), x.T),
        (at.split(x, [1], axis=1)[1], x[:, 1:]),
        (at.stack([x, x.astype(">f4")], 1), np.stack([x, x], 1)),
        (at.matmul(x, x.T), x @ x.T),
        (at.concatenate([x, x.astype(">f4")]), np.concatenate([x, x])),
        (at.cumsum(x, 1), np.cumsum(x, 1)),
    ):
        assert np.array_equal(fw.numpy(got) if fw.is_array(got) else got, want)
