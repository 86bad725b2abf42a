"""Function transforms, forward derivatives, grad modes, autocast, subclasses and active modes, per call."""

import warnings

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch_calls import CALLS, COMPILES, arguments, check, eager, program, tensor_names

import anytensor as at

FAMILIES = pytest.mark.parametrize("family", CALLS)
MADE_BY_ARANGE = {f"construct-{k}" for k in range(15, 22)}  # no tensor is an argument of torch.arange


def shifted(calls, count=3):
    """The tensors of the calls, count times, rows moved around; runs stay sorted."""
    names, (_, _, tensors) = tensor_names(calls), arguments(calls)
    return [
        [x.roll(k, 0) if x.ndim > 0 and name != "runs" else x for name, x in zip(names, tensors, strict=True)]
        for k in range(count)
    ]


def stacked(each):
    return [torch.stack(results) for results in zip(*each, strict=True)]


@FAMILIES
def test_vmap_over_everything(family):
    """Data, ids, counts, indices: all have a batch axis."""
    calls = CALLS[family]
    run, (n, total, _) = program(calls), arguments(calls)
    each = shifted(calls)
    got = torch.func.vmap(lambda *tensors: tuple(run(n, total, *tensors)))(*stacked(each))
    check(calls, got, stacked(run(n, total, *tensors) for tensors in each))


@FAMILIES
def test_vmap_over_floats_beside_shared_ids(family):
    calls = CALLS[family]
    run, (n, total, first) = program(calls), arguments(calls)
    batched = [x.is_floating_point() for x in first]
    each = [[x if b else y for x, y, b in zip(xs, first, batched, strict=True)] for xs in shifted(calls)]
    given = [x if b else y for x, y, b in zip(stacked(each), first, batched, strict=True)]
    mapped = torch.func.vmap(
        lambda *tensors: tuple(run(n, total, *tensors)), in_dims=tuple(0 if b else None for b in batched)
    )
    check(calls, mapped(*given), stacked(run(n, total, *tensors) for tensors in each))


@FAMILIES
def test_functionalize(family):
    calls = CALLS[family]
    run, (n, total, tensors) = program(calls), arguments(calls)
    check(calls, torch.func.functionalize(lambda *t: tuple(run(n, total, *t)))(*tensors), eager(calls))


@FAMILIES
def test_dual_numbers(family):
    """Forward derivatives of float64 tensors against differences, and the values beside them."""
    calls = tuple(call for call in CALLS[family] if call.name != "layout-21")  # casts down to float32
    run, (n, total, tensors) = program(calls), arguments(calls)
    tensors = [x.double() if x.is_floating_point() else x for x in tensors]
    generator = torch.Generator().manual_seed(1)
    moves = [
        torch.rand(x.shape, dtype=x.dtype, generator=generator) if x.is_floating_point() else None
        for x in tensors
    ]
    with forward_ad.dual_level():
        duals = [x if d is None else forward_ad.make_dual(x, d) for x, d in zip(tensors, moves, strict=True)]
        got = [forward_ad.unpack_dual(y) for y in run(n, total, *duals)]
    check(calls, [y.primal for y in got], run(n, total, *tensors))
    step = 1e-6
    ends = [
        run(n, total, *[x if d is None else x + sign * step * d for x, d in zip(tensors, moves, strict=True)])
        for sign in (1, -1)
    ]
    for call, y, high, low in zip(calls, got, *ends, strict=True):
        if not y.primal.is_floating_point():
            continue
        want = (high - low) / (2 * step)
        tangent = torch.zeros_like(want) if y.tangent is None else y.tangent
        some = torch.isfinite(y.primal)
        torch.testing.assert_close(
            tangent[some],
            want[some],
            rtol=1e-5,
            atol=1e-5,
            msg=lambda text, call=call: f"{call.name}: {text}",
        )


@FAMILIES
def test_jvp_and_vjp_agree(family):
    """<c, J d> both ways."""
    calls = CALLS[family]
    run, (n, total, tensors) = program(calls), arguments(calls)
    floats = [k for k, x in enumerate(tensors) if x.is_floating_point()]
    generator = torch.Generator().manual_seed(2)

    def values(*some):
        given = list(tensors)
        for k, x in zip(floats, some, strict=True):
            given[k] = x
        results = [y.double() for y in run(n, total, *given) if y.is_floating_point()]
        return tuple(torch.where(torch.isfinite(y), y, 0.0) for y in results)

    if not values(*[tensors[k] for k in floats]):
        pytest.skip("rows and truth have no derivative")
    points = tuple(tensors[k].double() for k in floats)
    points = tuple(torch.where(torch.isfinite(x), x, 0.25) for x in points)
    moves = tuple(torch.rand(x.shape, dtype=x.dtype, generator=generator) for x in points)
    ys, forward = torch.func.jvp(values, points, moves)
    cotangents = tuple(torch.rand(y.shape, dtype=y.dtype, generator=generator) for y in ys)
    back = torch.func.vjp(values, *points)[1](cotangents)
    left = sum((c * t).sum() for c, t in zip(cotangents, forward, strict=True))
    right = sum((g * d).sum() for g, d in zip(back, moves, strict=True))
    torch.testing.assert_close(left, right, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["segment_softmax", "segment_variance", "segment_max", "segment_mean"])
def test_jacobians_agree_in_all_ways(name):
    ids = torch.tensor([0, 1, -1, 0, 1, 9])
    x = torch.tensor([0.3, 1.2, 0.7, -0.4, 0.1, 2.0], dtype=torch.float64)

    def fn(x):
        return torch.nan_to_num(getattr(at, name)(x, ids, 3))

    want = torch.autograd.functional.jacobian(fn, x)
    for jacobian in (torch.func.jacrev(fn), torch.func.jacfwd(fn)):
        torch.testing.assert_close(jacobian(x), want, rtol=1e-12, atol=1e-12)
    per_sample = torch.func.vmap(torch.func.grad(lambda x: fn(x).square().sum()))(torch.stack([x, x * 2]))
    for row, point in zip(per_sample, (x, x * 2), strict=True):
        torch.testing.assert_close(row, torch.func.grad(lambda x: fn(x).square().sum())(point))


@FAMILIES
def test_inference_mode_and_no_grad(family):
    calls = CALLS[family]
    run, (n, total, tensors) = program(calls), arguments(calls)
    want = eager(calls)
    with torch.inference_mode():
        check(calls, run(n, total, *tensors), want)
        check(calls, run(n, total, *[x.clone() for x in tensors]), want)
        assert all(y.is_inference() for y in run(n, total, *[x.clone() for x in tensors]))
    with torch.no_grad():
        got = run(n, total, *[x.clone().requires_grad_(x.is_floating_point()) for x in tensors])
    check(calls, got, want)
    kept = [
        call.name
        for call, y in zip(calls, got, strict=True)
        if y.requires_grad and not y._is_view() and not y.is_leaf
    ]
    assert kept == []


@FAMILIES
def test_parameters(family):
    calls = CALLS[family]
    run, (n, total, tensors) = program(calls), arguments(calls)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = run(n, total, *[torch.nn.Parameter(x, requires_grad=x.is_floating_point()) for x in tensors])
    check(calls, [y.detach() for y in got], eager(calls))


class Tagged(torch.Tensor):
    seen = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Tagged.seen += 1
        return super().__torch_function__(func, types, args, kwargs or {})


@FAMILIES
def test_a_subclass_stays_itself(family):
    calls = CALLS[family]
    run, (n, total, tensors) = program(calls), arguments(calls)
    Tagged.seen = 0
    got = run(n, total, *[x.as_subclass(Tagged) for x in tensors])
    assert Tagged.seen > 0
    lost = [call.name for call, y in zip(calls, got, strict=True) if type(y) is not Tagged]
    assert not set(lost) - MADE_BY_ARANGE
    check(calls, [y.as_subclass(torch.Tensor) for y in got], eager(calls))


class SeesFunctions(TorchFunctionMode):
    seen = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen += 1
        return func(*args, **(kwargs or {}))


class SeesOperators(TorchDispatchMode):
    seen = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", [SeesFunctions, SeesOperators])
@FAMILIES
def test_active_modes_see_the_calls(family, mode):
    calls = CALLS[family]
    run, (n, total, tensors) = program(calls), arguments(calls)
    with mode() as active:
        got = run(n, total, *tensors)
    assert active.seen > len(calls) / 2
    check(calls, got, eager(calls))


def test_values_are_not_read_under_a_mode():
    """A total that disagrees with its counts is refused where they can be read, and padding elsewhere."""
    counts = torch.tensor([1, 2])
    with pytest.raises(ValueError, match="partition_ids"):
        at.partition_ids(counts, 4)
    with SeesOperators():
        assert at.partition_ids(counts, 4).tolist() == [0, 1, 1, 2]
    assert torch.func.vmap(lambda c: at.partition_ids(c, 4))(counts[None]).tolist() == [[0, 1, 1, 2]]


@FAMILIES
def test_autocast_changes_nothing_but_products(family):
    calls = tuple(call for call in CALLS[family] if "matmul" not in call.fn.__code__.co_names)
    n, total, tensors = arguments(calls)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = program(calls)(n, total, *tensors)
    check(calls, got, eager(calls))


def test_autocast_chooses_the_dtype_of_a_product():
    x = torch.ones(2, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert at.matmul(x, x).dtype == torch.matmul(x, x).dtype == torch.bfloat16


@FAMILIES
def test_deterministic_algorithms(family):
    calls = CALLS[family]
    n, total, tensors = arguments(calls)
    want = eager(calls)
    torch.use_deterministic_algorithms(True)
    try:
        got = [program(calls)(n, total, *tensors) for _ in range(2)]
    finally:
        torch.use_deterministic_algorithms(False)
    check(calls, got[0], want)
    for first, second in zip(*got, strict=True):
        assert torch.equal(first.nan_to_num(), second.nan_to_num())


def test_conjugate_and_negative_views():
    """A lazily negated view is read as what it stands for."""
    x = torch.view_as_complex(torch.arange(8.0).reshape(4, 2)).conj().imag
    assert x.is_neg()
    assert at.segment_sum(x, torch.tensor([0, 0, 1, 1]), 2).tolist() == [-4.0, -12.0]
    assert at.maximum(x, -2.0).tolist() == [-1.0, -2.0, -2.0, -2.0]


def test_a_default_dtype_is_followed():
    whole = torch.tensor([1, 2, 3])
    try:
        torch.set_default_dtype(torch.float64)
        assert at.mean(whole).dtype == torch.float64
        assert at.segment_count(whole, 4).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@COMPILES
def test_a_default_dtype_is_followed_when_compiled():
    try:
        torch.set_default_dtype(torch.float64)
        compiled = torch.compile(lambda x: at.mean(x), fullgraph=True, backend="eager")
        assert compiled(torch.tensor([1, 2, 3])).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
