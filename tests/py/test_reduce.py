"""Reductions over axes and running sums (SEMANTICS 16, 17); accuses the adapters' reductions."""

import warnings

import cases
import numpy as np
import pytest

import anytensor as at


@pytest.mark.parametrize("case", cases.REDUCE, ids=str)
def test_reduce(fw, case):
    cases.check(fw, case)


def test_reductions_of_numpy_memory_of_every_kind():
    x = np.arange(24.0, dtype="float32").reshape(4, 6)
    for odd in (x[::-1].copy()[::-1], np.asfortranarray(x), x.astype(">f4"), np.repeat(x, 2, 0)[::2]):
        for op in ("sum", "mean", "min", "max", "prod"):
            f = getattr(at, op)
            for axes in (None, 0, 1):
                assert np.allclose(f(odd, axes), f(x, axes)) and f(odd, axes).dtype == np.float32
        assert np.array_equal(at.cumsum(odd, 1), np.cumsum(x, 1))


def test_reductions_on_numpy_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        at.mean(np.zeros(0))
        at.mean(np.zeros((0, 2)), 0)
        at.max(np.array([np.nan, 1.0]))


def test_axes_do_not_change_the_operand(fw):
    x = fw.array([[1.0, 2.0]], "float32")
    got = at.sum(x, ())
    assert fw.numpy(got).tolist() == [[1.0, 2.0]]
    assert fw.numpy(x).tolist() == [[1.0, 2.0]]
