"""Constructors and casts (SEMANTICS 14, 15); accuses src/ops/construct.c and src/ops/checks.c."""

import cases
import numpy as np
import pytest

import anytensor as at


@pytest.mark.parametrize("case", cases.CONSTRUCT, ids=str)
def test_construct(fw, case):
    cases.check(fw, case)


def test_astype_to_the_same_dtype_is_the_operand_itself(fw):
    for dtype in sorted({"bool", "int8", "int64", "float16", "float32"} - set(fw.lacks)):
        x, dtype = fw.array([0, 1], dtype), fw.held(dtype)
        assert at.astype(x, dtype) is x
        assert at.astype(x, fw.own_dtype(dtype)) is x
        assert at.astype(x, np.dtype(dtype)) is x


def test_astype_of_a_foreign_byte_order_is_native():
    got = at.astype(np.array([1.0, 2.0], ">f4"), "float32")
    assert got.dtype.isnative and got.tolist() == [1.0, 2.0]


def test_constructors_keep_the_device_of_like(fw):
    if fw.elsewhere is None:
        pytest.skip("one device")
    x = fw.empty_elsewhere((2, 3), "int8")
    for got in (
        at.zeros((2,), like=x),
        at.ones(2, like=x),
        at.full(2, 7, like=x),
        at.full(2, np.float32(7), like=x),
        at.zeros_like(x),
        at.ones_like(x),
        at.full_like(x, 3),
        at.zeros_like(x, "int8"),
    ):
        assert fw.device(got) == fw.elsewhere and fw.dtype(got) == "int8"
    assert fw.device(at.arange(3, like=x)) == fw.elsewhere
    here = fw.array([1.0], "float32")
    home, there = fw.device_object(fw.device(here)), fw.device_object(fw.elsewhere)
    assert fw.device(at.arange(3, like=x, device=home)) == fw.device(here)
    assert fw.device(at.arange(3, like=here, device=there)) == fw.elsewhere


def test_without_like_a_constructor_is_numpys_even_beside_an_own_dtype(fw):
    for got in (
        at.zeros(2),
        at.ones(2),
        at.full(2, 1),
        at.arange(2),
        at.zeros(2, dtype="int8"),
        at.full(2, 1, dtype=np.float32),
    ):
        assert type(got) is np.ndarray
    assert at.zeros(2, dtype=fw.own_dtype("float32")).dtype == np.float32


def test_new_arrays_share_no_memory(fw):
    one = at.zeros(3, like=fw.array([1.0], "float32"))
    other = at.zeros_like(one)
    filled = at.full((2, 3), fw.array([1.0, 2.0, 3.0], "float32"))
    if not fw.mutable:
        pytest.skip("no element can be assigned")
    filled[0, 0] = 9.0
    one[0] = 5.0
    assert fw.numpy(other).tolist() == [0.0, 0.0, 0.0]
    assert fw.numpy(filled)[1, 0] == 1.0


def test_like_may_be_a_parameter_that_asks_for_gradients(torch):
    p = torch.nn.Parameter(torch.ones(2))
    for got in (at.zeros(2, like=p), at.ones_like(p), at.full(2, 3.0, like=p), at.arange(3, like=p)):
        assert type(got) is torch.Tensor and not got.requires_grad


def test_a_scalar_as_like_beside_an_array_is_no_crash(fw):
    assert fw.numpy(at.full((2,), fw.array(1.0, "float32"), like=2.0)).tolist() == [1.0, 1.0]
    assert fw.numpy(at.arange(fw.array(3, "int64"), like=2)).tolist() == [0, 1, 2]
    assert at.zeros(2, like=2.0).tolist() == [0.0, 0.0]


def test_a_number_takes_its_fill_and_its_framework_from_an_array(fw):
    """The model is no array: what a framework does at once for its own is left to the formula."""
    for value in (2.5, 1.0, 0.0):
        got = at.full_like(1, fw.array(value, "float32"))
        assert fw.is_array(got) and fw.dtype(got) == fw.default("i")
        assert fw.numpy(got).tolist() == int(value)
