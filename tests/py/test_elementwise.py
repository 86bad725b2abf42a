"""Elementwise functions, selection, NaN tools (SEMANTICS 12, 16, 19); accuses src/ops/elementwise.c."""

import cases
import numpy as np
import pytest

import anytensor as at


@pytest.mark.parametrize("case", [*cases.ELEMENTWISE, *cases.NAN_TOOLS], ids=str)
def test_elementwise(fw, case):
    cases.check(fw, case)


def test_clip_without_bounds_is_the_operand_itself(fw):
    x = fw.array([1.0, 2.0], "float32")
    assert at.clip(x) is x
    assert at.clip(x, None, None) is x


def test_operands_are_not_changed_in_place(fw):
    x, y = fw.array([1.0, float("nan")], "float32"), fw.array([2.0, 0.0], "float32")
    for op in ("exp", "log", "sqrt", "rsqrt", "fill_nan", "fill_nan_mask", "nan_to_num", "is_nan", "is_inf"):
        getattr(at, op)(x)
    for op in ("maximum", "minimum", "fill_nan"):
        getattr(at, op)(x, y)
    at.clip(x, 0, 1)
    at.where(x, x, y)
    assert fw.numpy(x)[0] == 1.0 and np.isnan(fw.numpy(x)[1])
    assert fw.numpy(y).tolist() == [2.0, 0.0]


def test_scalars_alone_run_on_numpy(fw):
    for got in (
        at.exp(1.0),
        at.maximum(1, 2),
        at.where(True, 1, 2),
        at.clip(5, 0, 2),
        at.fill_nan(float("nan")),
        at.nan_to_num(float("inf")),
        at.equal_nan(1, 2.0),
        *at.fill_nan_mask(1.0),
    ):
        assert type(got) is np.ndarray and got.shape == ()


@pytest.mark.parametrize("kind", ["strided", "reversed", "swapped", "Fortran", "read-only"])
@pytest.mark.parametrize("op", ["exp", "sqrt", "maximum", "where", "clip", "fill_nan"])
def test_numpy_memory_of_every_kind(op, kind):
    x = np.arange(12.0, dtype="float32").reshape(3, 4)
    odd = {
        "strided": np.repeat(x, 2, 1)[:, ::2],
        "reversed": x[::-1].copy()[::-1],
        "swapped": x.astype(">f4"),
        "Fortran": np.asfortranarray(x),
        "read-only": np.broadcast_to(x, (3, 4)),
    }[kind]
    more = {"maximum": (x.T.copy().T,), "where": (x, -x), "clip": (2, 5)}.get(op, ())
    got, want = getattr(at, op)(odd, *more), getattr(at, op)(x, *more)
    assert np.array_equal(got, want) and got.dtype.name == "float32"


def test_results_stay_on_the_device(fw):
    if fw.elsewhere is None:
        pytest.skip("one device")
    x = fw.empty_elsewhere((3,), "float32")
    for got in (
        at.exp(x),
        at.rsqrt(x),
        at.maximum(x, 1),
        at.where(x, x, 0.0),
        at.clip(x, 0, 1),
        at.fill_nan(x),
        at.sum(x),
        at.mean(x, 0),
        at.cumsum(x),
        at.take(x, 1),
        at.take(x, np.array([0, 1])),
        at.reshape(x, (3, 1)),
        at.repeat(x, 2),
        at.concatenate([x, np.ones(2, np.float32)]),
        at.astype(x, "int8"),
        at.cast(x, "int8"),
        at.transpose(x),
        at.stack([x, np.ones(3, np.float32)]),
        *at.split(x, [1]),
        *at.fill_nan_mask(x),
        at.nan_to_num(x),
        at.equal_nan(x, float("nan")),
        at.is_inf(x),
        at.matmul(x, x),
        at.matmul(x, np.ones((3, 2), np.float32)),
    ):
        assert fw.device(got) == fw.elsewhere
