"""No function moves data off its device or reads a value: operators are watched, and tensors without memory suffice.

Shapes and dtypes of meta tensors are those of eager tensors: test_torch_tracing.py.
"""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch_calls import CALLS, arguments, check, eager, program, tensor_names

import anytensor as at

FAMILIES = pytest.mark.parametrize("family", CALLS)
READS = ("_local_scalar_dense", "item", "is_nonzero", "equal", "nonzero", "resolve_neg")


class Watch(TorchDispatchMode):
    """Refuses what reads a value, and what copies to another device."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        assert name not in READS, name
        got = func(*args, **(kwargs or {}))
        if name in ("_to_copy", "copy_", "to"):
            assert got.device == args[0].device, f"{name} to {got.device}"
        return got


def on_meta(calls):
    """The calls that stay where their operands are: one asks for the CPU."""
    return tuple(call for call in calls if call.name != "construct-21")


def test_every_public_function_is_called():
    used = {name for calls in CALLS.values() for call in on_meta(calls) for name in call.fn.__code__.co_names}
    assert set(at._core.ops) <= used


@FAMILIES
def test_no_operator_reads_a_value_or_copies_to_another_device(family):
    calls = CALLS[family]
    n, total, tensors = arguments(calls)
    with Watch():
        got = program(calls)(n, total, *tensors)
    check(calls, got, eager(calls))


def test_the_watch_sees_a_read():
    with Watch(), pytest.raises(AssertionError, match="scalar"):
        torch.ones(()).item()
    with Watch(), pytest.raises(AssertionError, match="meta"):
        torch.ones(()).to("meta")


@FAMILIES
def test_numpy_beside_meta_tensors_joins_their_device(family):
    """Of each call in turn every operand but one is NumPy's; a result that is a tensor has no memory."""
    calls = [
        call for call in on_meta(CALLS[family]) if not {"half"} & set(call.takes)
    ]  # NumPy has no bfloat16
    n, total, tensors = arguments(calls)
    given = dict(zip(tensor_names(calls), tensors, strict=True)) | {"n": n, "total": total}
    joined = 0
    for call, want in zip(calls, eager(calls), strict=True):
        arrays = [name for name in call.takes if name not in ("n", "total", "nodes")]
        for one in arrays if len(arrays) > 1 else ():
            operands = [
                x
                if not isinstance(x, torch.Tensor)
                else x.to("meta")
                if name in (one, "nodes")
                else x.numpy()
                for name, x in ((name, given[name]) for name in call.takes)
            ]
            got = call.fn(*operands)
            if isinstance(got, torch.Tensor):
                joined += 1
                assert (got.is_meta, got.shape, got.dtype) == (True, want.shape, want.dtype), (call.name, one)
    assert joined or family in ("reduction", "segment_count")  # of one array each
