"""What tests of the kernels inside torch share: rows, ids, the formula beside the kernel, a count of operators."""

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import anytensor as at
from anytensor import _core

inf, nan = float("inf"), float("nan")
OPS = ("segment_sum", "segment_min", "segment_max", "segment_softmax")
EACH_OP = pytest.mark.parametrize("op", OPS)
IDS = torch.tensor([0, 2, -1, 0, 2, 2, 4, 0, 2**40])


def need_kernels():
    """From torch 2.10 on they have to be there."""
    at.exp(torch.ones(1))  # wakes the adapter
    if _core._torch_kernels() is None:
        if tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 10):
            pytest.fail("this torch has the shim, and no kernel is registered")
        pytest.skip("this torch is older than the door for kernels")


class Idle(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def formula(call, *args):
    before = _core._torch_kernels()
    with Idle():
        y = call(*args)
    assert _core._torch_kernels() == before
    return y


def runs(call):
    """The result, and how many operators it took."""
    before = _core._torch_kernels()
    return call(), _core._torch_kernels() - before


def rows(dtype=torch.float32, grad=False):
    x = torch.rand(9, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).to(dtype)
    return x.requires_grad_(grad)


def ours(op, *args):
    return getattr(at, op)(*args)


def close(got, want, **kwargs):
    torch.testing.assert_close(got, want, equal_nan=True, **kwargs)


class Watch(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def finite(y):
    return torch.where(torch.isfinite(y), y, 0.0)
