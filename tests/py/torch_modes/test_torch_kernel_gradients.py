"""Derivatives of the kernels inside torch, to second order, in every way torch has to take them: the formula's.

Accuses python/anytensor/_torch_kernels.py, src/python/backends/torch_ops.c.
"""

import warnings

import pytest
import torch
from kernel_ways import (
    EACH_OP,
    IDS,
    Watch,
    close,
    finite,
    formula,
    inf,
    nan,
    need_kernels,
    ours,
    rows,
)

import anytensor as at


@pytest.fixture(autouse=True)
def _needs_kernels():
    need_kernels()


# ---- derivatives
def grads(op, x, ids=IDS, n=4, use=ours):
    """The first derivative of a cubic of the result, and the derivative of its square."""
    y = finite(use(op, x, ids, n))
    weight = torch.arange(1.0, y.numel() + 1).reshape(y.shape).to(y.dtype)
    (first,) = torch.autograd.grad((weight * y**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((first**2).sum(), x)
    (fused,) = torch.autograd.grad((weight * finite(use(op, x, ids, n)) ** 3).sum(), x)
    return fused, first.detach(), second


def by_formula(op, *args):
    return formula(ours, op, *args)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@EACH_OP
def test_derivatives_are_those_of_the_formula(op, dtype):
    x = rows(dtype, grad=True)
    loose = {"rtol": 5e-2, "atol": 5e-2} if dtype == torch.bfloat16 else {"rtol": 1e-4, "atol": 1e-5}
    for got, want in zip(grads(op, x), grads(op, x, use=by_formula), strict=True):
        close(got, want, **loose)


@EACH_OP
def test_the_fused_derivative_is_the_differentiable_one(op):
    fused, first, _ = grads(op, rows(torch.float64, grad=True))
    close(fused, first)


@pytest.mark.parametrize("op", ["segment_min", "segment_max"])
def test_ties_share_equally(op):
    x = torch.tensor([1.0, 1.0, 2.0, 2.0, 1.0], requires_grad=True)
    ids = torch.tensor([0, 0, 1, 1, 0])
    (ours(op, x, ids, 2) * torch.tensor([6.0, 4.0])).sum().backward()
    close(x.grad, torch.tensor([2.0, 2.0, 2.0, 2.0, 2.0]))
    for special in (-inf, inf):
        y = torch.full((3,), special, requires_grad=True)
        (got,) = torch.autograd.grad(ours(op, y, torch.tensor([0, 0, 1]), 3)[:2].sum(), y)
        close(got, torch.tensor([0.5, 0.5, 1.0]))


@pytest.mark.parametrize("special", [inf, -inf, nan])
@EACH_OP
def test_dropped_rows_have_no_derivative(op, special):
    x = rows(torch.float64)
    x[2], x[6], x[8] = special, special, special
    x.requires_grad_()
    for got in grads(op, x):
        assert (got[[2, 6, 8]] == 0).all() and torch.isfinite(got).all()
    y = ours(op, x, IDS, 4)
    (got,) = torch.autograd.grad(y, x, torch.full_like(y, inf))
    assert (got[[2, 6, 8]] == 0).all()


@EACH_OP
def test_a_nan_spoils_the_derivative_of_its_own_segment_only(op):
    x = rows(torch.float64)
    x[4, 1] = nan
    x.requires_grad_()
    got, want = (torch.autograd.grad(use(op, x, IDS, 3)[:3].sum(), x)[0] for use in (ours, by_formula))
    clean = IDS != 2
    close(got[clean], want[clean])
    close(got, want)


@EACH_OP
def test_finite_differences(op):
    x = rows(torch.float64, grad=True)

    def f(v):
        return finite(ours(op, v, IDS, 4))

    assert torch.autograd.gradcheck(f, x, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(f, x, check_batched_grad=True)


@EACH_OP
def test_every_way_to_a_second_derivative(op):
    x = rows(torch.float64)[:, 0].contiguous()

    def f(v):
        return (finite(ours(op, v, IDS, 4)) ** 3).sum()

    want = torch.func.hessian(f)(x)
    ways = {
        "reverse": lambda: torch.autograd.functional.hessian(f, x),
        "batched": lambda: torch.autograd.functional.hessian(f, x, vectorize=True),
        "forward over reverse": lambda: torch.autograd.functional.hessian(
            f, x, vectorize=True, outer_jacobian_strategy="forward-mode"
        ),
        "jacrev of jacrev": lambda: torch.func.jacrev(torch.func.jacrev(f))(x),
        "jacfwd of jacfwd": lambda: torch.func.jacfwd(torch.func.jacfwd(f))(x),
    }
    for name, way in ways.items():
        close(way(), want, msg=lambda text, name=name: f"{name}: {text}")


@EACH_OP
def test_a_derivative_taken_under_a_mode_sees_the_formula(op):
    x = rows(torch.float64, grad=True)
    (want,) = torch.autograd.grad(finite(ours(op, x, IDS, 4)).sum(), x)
    y = finite(ours(op, x, IDS, 4)).sum()
    with Watch() as watch:
        (got,) = torch.autograd.grad(y, x)
    close(got, want)
    assert watch.seen and not [name for name in watch.seen if "anytensor" in name]


@EACH_OP
def test_compiled_autograd(op):
    x = rows(torch.float64, grad=True)
    (want,) = torch.autograd.grad(finite(ours(op, x, IDS, 4)).sum(), x)
    from torch._dynamo import compiled_autograd

    with compiled_autograd._enable(torch.compile(backend="aot_eager")):
        finite(ours(op, x, IDS, 4)).sum().backward()
    close(x.grad, want)


@EACH_OP
def test_checkpoints_hooks_and_anomaly_mode(op):
    from torch.utils.checkpoint import checkpoint

    def f(v):
        return finite(ours(op, v, IDS, 4)) ** 2

    x = rows(torch.float64, grad=True)
    (want,) = torch.autograd.grad(f(x).sum(), x)
    for reentrant in (False, True):
        x.grad = None
        checkpoint(f, x, use_reentrant=reentrant).sum().backward()
        close(x.grad, want)
    with torch.autograd.graph.save_on_cpu():
        y = f(x)
    close(torch.autograd.grad(y.sum(), x)[0], want)
    with warnings.catch_warnings(), torch.autograd.detect_anomaly():
        warnings.simplefilter("ignore")
        close(torch.autograd.grad(f(x).sum(), x)[0], want)


def test_changing_what_a_derivative_needs_is_noticed():
    x, ids = rows(grad=True), IDS.clone()
    y = at.segment_sum(x, ids, 4)
    ids += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@EACH_OP
def test_a_derivative_flows_through_what_comes_before_and_after(op):
    w = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    x = rows(torch.float64)
    got, want = (
        torch.autograd.grad(torch.tanh(finite(use(op, torch.sin(x * w), IDS, 4))).sum(), w)[0]
        for use in (ours, by_formula)
    )
    close(got, want)


def test_threads_at_once():
    from concurrent.futures import ThreadPoolExecutor

    x, ids = torch.randn(20000, 4), torch.arange(20000) % 50

    def job(k):
        v = (x + k).requires_grad_()
        at.segment_softmax(v, ids, 50)[:, 0].sum().backward()
        return v.grad, at.segment_sum(x + k, ids, 50)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(job, range(8)))
    for k, (grad, total) in enumerate(found):
        close(total, job(k)[1])
        close(grad, job(k)[0])


@EACH_OP
def test_calls_and_failures_keep_nothing(op):
    import resource

    x, ids = torch.rand(10**5, 8, requires_grad=True), torch.zeros(10**5, dtype=torch.int64)
    for k in range(60):  # 3 MB each, and as much for the derivative
        ours(op, x, ids, 1).sum().backward()
        x.grad = None
        with pytest.raises(RuntimeError):
            torch.ops.anytensor.segment_sum(x.detach() + k, ids[1:], 1)
        if k == 10:
            start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start
    assert grown < 60_000, f"{grown} KB more"
