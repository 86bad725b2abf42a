"""Inputs made to break the extension: each was found by a reader, and each crashed, lied or lost an exception once."""

import numpy as np
import pytest
from frameworks import needs

import anytensor as at

X = np.arange(5.0)
IDS = np.array([0, 0, 1, 1, 2])


@needs("numpy", "2.0", "arrays of more than 32 axes")
@pytest.mark.parametrize("rank", [33, 40, 64])
def test_more_axes_than_a_view_holds_do_not_overflow_it(rank):
    x = np.ones((1,) * rank)
    assert at.maximum(x, 2.0).shape == x.shape
    assert at.clip(x, 0.0, 1.0).shape == x.shape
    with pytest.raises(ValueError, match="rank"):
        at.segment_sum(x, np.array([0]), 1)


def test_a_huge_index_is_out_of_range_and_does_not_count_from_the_end():
    for index in (2**63, 2**64 - 1, 2**70, -(2**70)):
        with pytest.raises(IndexError, match="take.*'indices'"):
            at.take(X, index)


def test_the_constant_of_a_call_cannot_be_changed_by_a_ufunc_override():
    class Meddler(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            inputs[1][...] = 99

    with pytest.raises(ValueError, match="read-only"):
        at.maximum(X.view(Meddler), 2.0)
    assert at.maximum(np.zeros(2, ">f8"), 2.0).tolist() == [2.0, 2.0]


def test_an_exception_of_an_override_is_raised_once():
    class Stop(np.ndarray):
        calls = 0

        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            Stop.calls += 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        at.exp(X.view(Stop))
    assert Stop.calls == 1


def test_a_size_of_the_least_integer_is_not_taken_for_a_missing_one():
    least = np.array(-(2**63))
    with pytest.raises(ValueError, match="total_repeat_length"):
        at.repeat(X, 2, total_repeat_length=least)
    with pytest.raises(ValueError, match="num_segments"):
        at.segment_sum(X, IDS, least)


def test_a_constant_must_broadcast_to_the_result_and_fit_it():
    rows = np.ones((5, 2))
    assert at.segment_max_or_constant(rows, IDS, 4, np.array([7.0, 8.0]))[3].tolist() == [7.0, 8.0]
    for constant in (np.ones((2, 1, 1)), np.ones((3, 2)), np.ones(3)):
        with pytest.raises(ValueError, match="'constant'.*broadcasts to"):
            at.segment_max_or_constant(rows, IDS, 4, constant)
    with pytest.raises(ValueError, match="NaN"):
        at.segment_max_or_constant(IDS, IDS, 4, float("nan"))


@pytest.mark.parametrize("value", [300.5, -129.0, float("inf"), -float("inf")])
def test_a_float_beyond_an_integer_dtype_is_an_overflow_error(value, torch):
    for like in (np.zeros(1), torch.zeros(1)):
        with pytest.raises(OverflowError, match="full.*'fill_value'.*int8"):
            at.full((2,), value, dtype="int8", like=like)
        assert at.full((1,), -128.9, dtype="int8", like=like).tolist() == [-128]


def test_text_behind_a_nul_is_part_of_a_dtype_name():
    with pytest.raises(TypeError, match="dtype"):
        at.astype(X, "float32\0x")


def test_an_exception_of_an_argument_gets_a_note():
    class Bad:
        def __index__(self):
            raise ZeroDivisionError

        def __bool__(self):
            raise ZeroDivisionError

    for call in (lambda: at.sum(X, Bad()), lambda: at.sum(X, keepdims=Bad())):
        with pytest.raises(ZeroDivisionError) as error:
            call()
        assert "anytensor.sum" in error.value.__notes__[0]


def test_a_symbolic_size_beside_numpy_arrays_is_refused(torch):
    from torch.fx.experimental.proxy_tensor import make_fx

    for name, call in {
        "segment_sum": lambda v: at.segment_sum(X, IDS, v.shape[0]),
        "segment_count": lambda v: at.segment_count(IDS, v.shape[0]),
        "partition_ids": lambda v: at.partition_ids(np.array([2, 3]), v.shape[0]),
        "repeat": lambda v: at.repeat(X, 2, total_repeat_length=v.shape[0]),
        "reshape": lambda v: at.reshape(X, (v.shape[0],)),
    }.items():
        with pytest.raises(TypeError, match=f"{name}.*symbolic"):
            make_fx(call, tracing_mode="symbolic")(torch.arange(5.0))


def test_attributes_of_a_tensor_subclass_may_be_nonsense(torch):
    t, ids = torch.arange(5.0), torch.tensor(IDS)
    for attribute, error in (("shape", TypeError), ("dtype", KeyError), ("ndim", TypeError)):

        def value(self, error=error):
            if error is KeyError:
                raise KeyError
            return ["nonsense"]

        odd = t.as_subclass(type("Odd", (torch.Tensor,), {attribute: property(value)}))
        calls = {
            "shape": lambda odd=odd: at.segment_sum(odd, ids, 3),
            "dtype": lambda odd=odd: at.exp(odd),
            "ndim": lambda odd=odd: at.take(odd, 0),
        }
        with pytest.raises(error):
            calls[attribute]()


def test_products_over_more_axes_than_a_frame_has_places(torch):
    x = torch.full((1,) * 25, 3.0)
    assert at.prod(x, keepdims=True).shape == x.shape
    assert at.prod(x, tuple(range(23))).shape == (1, 1)


def test_a_float_beyond_the_dtype_of_a_tensor_is_infinite(torch):
    t = torch.arange(2.0)
    assert at.where(t > 0, t, 1e300).tolist() == [float("inf"), 1.0]
    assert at.fill_nan(torch.tensor([float("nan")]), -1e300).tolist() == [-float("inf")]
    assert at.full((1,), 1e6, dtype="float16", like=t).tolist() == [float("inf")]


def test_dtypes_that_are_not_the_librarys_are_named_in_an_error(torch):
    t, ids = torch.ones(5, dtype=torch.complex64), torch.tensor(IDS)
    for op in ("segment_sum", "segment_mean", "segment_max", "segment_softmax"):
        with pytest.raises(TypeError, match=op):
            getattr(at, op)(t, ids, 3)
        with pytest.raises(TypeError, match=op):
            getattr(at, op)(t.numpy(), IDS, 3)
