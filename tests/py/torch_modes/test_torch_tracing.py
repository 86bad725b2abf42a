"""Tracers and stand-ins: torch.jit.trace, make_fx, fake tensors, meta tensors."""

import warnings

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch_calls import CALLS, FEW, arguments, check, eager, program

import anytensor as at

FAMILIES = pytest.mark.parametrize("family", CALLS)


@FAMILIES
def test_jit_trace_keeps_sizes_open(family):
    """Sizes are traced, not frozen, and no value is read behind the tracer's back (it would warn)."""
    calls = CALLS[family]
    run = program(calls)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("error", torch.jit.TracerWarning)
        traced = torch.jit.trace(
            lambda *tensors: tuple(run(None, None, *tensors)), tuple(arguments(calls)[2]), check_trace=False
        )
    for size in ((7, 4), (11, 6), (29, 9)):
        check(calls, traced(*arguments(calls, *size)[2]), eager(calls, *size), where=f" of {size[0]} rows")


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
@FAMILIES
def test_make_fx(family, mode):
    calls = FEW[family] if mode == "fake" else CALLS[family]
    run = program(calls)
    graph = make_fx(lambda *tensors: run(None, None, *tensors), tracing_mode=mode)(*arguments(calls)[2])
    sizes = ((7, 4), (11, 6)) if mode == "symbolic" else ((7, 4),)
    for size in sizes:
        check(calls, graph(*arguments(calls, *size)[2]), eager(calls, *size), where=f" of {size[0]} rows")
    given = arguments(calls)[2]
    changed = [torch.where(x > 1, x * 0.5, x) if x.dtype == torch.float32 else x for x in given]
    n, total, _ = arguments(calls)
    check(calls, graph(*changed), run(n, total, *changed), where=" for other values")


@FAMILIES
def test_fake_tensors(family):
    calls = CALLS[family]
    n, total, tensors = arguments(calls)
    with FakeTensorMode() as mode:
        got = program(calls)(n, total, *[mode.from_tensor(x) for x in tensors])
    check(calls, got, eager(calls), values=False)
    assert all(g.fake_mode is mode and g.device.type == "cpu" for g in got)


def test_compiled_code_may_break_its_graph_at_our_calls():
    """With fullgraph from torch 2.6 on; every version compiles what stands around the calls."""
    ids = torch.tensor([0, 1, 0])
    job = torch.compile(lambda x: at.segment_sum(torch.exp(x), ids, 2) * 2, backend="eager")
    x = torch.tensor([1.0, 2.0, 3.0])
    torch.testing.assert_close(job(x), at.segment_sum(torch.exp(x), ids, 2) * 2)


@FAMILIES
def test_meta_tensors(family):
    """Dtype and shape are right, and every result lies on the device of its operands."""
    calls = tuple(call for call in CALLS[family] if call.name != "construct-21")  # asks for the CPU
    n, total, tensors = arguments(calls)
    got = program(calls)(n, total, *[x.to("meta") for x in tensors])
    check(calls, got, eager(calls), values=False)
    assert all(g.is_meta for g in got)


def test_a_default_device_does_not_move_results():
    """torch.set_default_device is a function mode; results stay where their operands are."""
    with torch.device("meta"):
        x = torch.tensor([1.0, 2.0], device="cpu")
        ids = torch.tensor([0, 0], device="cpu")
        assert at.segment_softmax(x, ids, 2).device.type == "cpu"
        assert at.zeros_like(x).device.type == "cpu"
        assert at.arange(3, like=x).device.type == "cpu"
        assert at.maximum(x, 1.5).tolist() == [1.5, 2.0]
