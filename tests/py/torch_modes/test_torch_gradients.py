"""Derivatives of first and second order against finite differences, in float64, in every way torch has to take them.

Nine rows meet four segments of which two stay empty; ids point below, at and far beyond the segments. Cotangents
differ from element to element.
"""

import inspect

import pytest
import torch
from torch_calls import COMPILES

import anytensor as at

inf, nan = float("inf"), float("nan")
IDS = torch.tensor([0, 2, -1, 0, 2, 2, 4, 0, 2**40])
DROPPED = [2, 6, 8]
COUNTS = torch.tensor([3, 0, 4, 2])
FEW = torch.tensor([3, 0, 2, 1])  # of nine rows only six belong to a run
MASK = torch.tensor([True, False, True, True, False, False, True, False, True])
PLACES = torch.tensor([3, -1, 3, 0, 0])


def f64(*shape, seed=0):
    return torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def rows():
    """(9, 2), positive, no two values closer than 0.05: finite differences stay on one side of a maximum."""
    order = torch.randperm(18, generator=torch.Generator().manual_seed(3))
    return (0.3 + 0.1 * order.double() + 0.02 * f64(18)).reshape(9, 2)


def other():
    return rows().flip(0) + 0.037


def finite(y):
    """Without the infinities of empty segments, of which no difference can be taken."""
    return torch.where(torch.isfinite(y), y, 0.0)


def attend(x, ids, n):
    """Of one operand: its first column weighs its rows."""
    return at.segment_attention(x[:, 0], x, ids, n)


def named(op):
    """A function of rows, ids and a size."""
    return attend if op == "segment_attention" else getattr(at, op)


SEGMENT = {
    "segment_sum": lambda x: at.segment_sum(x, IDS, 4),
    "segment_max": lambda x: finite(at.segment_max(x, IDS, 4)),
    "segment_min": lambda x: finite(at.segment_min(x, IDS, 4)),
    "segment_mean": lambda x: at.segment_mean(x, IDS, 4),
    "segment_variance": lambda x: at.segment_variance(x, IDS, 4),
    "segment_normalize": lambda x: at.segment_normalize(x, IDS, 4),
    "segment_softmax": lambda x: at.segment_softmax(x, IDS, 4),
    "segment_prod": lambda x: at.segment_prod(x, IDS, 4),
    "segment_std": lambda x: at.segment_std(x, IDS, 4),
    "segment_logsumexp": lambda x: finite(at.segment_logsumexp(x, IDS, 4)),
    "segment_attention": lambda x: attend(x, IDS, 4),
    "segment_max_or_constant": lambda x: at.segment_max_or_constant(x, IDS, 4, -3.0),
    "segment_min_or_constant": lambda x: at.segment_min_or_constant(x, IDS, 4, constant=2.0),
}
PARTITION = {
    "partition_sum": lambda x: at.partition_sum(x, COUNTS, 9),
    "partition_max": lambda x: finite(at.partition_max(x, COUNTS, 9)),
    "partition_min": lambda x: finite(at.partition_min(x, COUNTS, 9)),
    "partition_softmax": lambda x: at.partition_softmax(x, COUNTS, 9),
}
SHORT = {  # the tail belongs to no run
    "partition_sum_tail": lambda x: at.partition_sum(x, FEW, 9),
    "partition_max_tail": lambda x: finite(at.partition_max(x, FEW, 9)),
    "partition_min_tail": lambda x: finite(at.partition_min(x, FEW, 9)),
    "partition_softmax_tail": lambda x: at.partition_softmax(x, FEW, 9),
}
PLAIN = {
    "exp": at.exp,
    "log": at.log,
    "sqrt": at.sqrt,
    "rsqrt": at.rsqrt,
    "maximum": lambda x, y: at.maximum(x, y),
    "minimum": lambda x, y: at.minimum(x, y),
    "maximum_scalar": lambda x: at.maximum(x, 1.2345),
    "fill_nan": at.fill_nan,
    "fill_nan_by_array": lambda x, y: at.fill_nan(at.where(MASK[:, None], x, nan), y),
    "fill_nan_mask": lambda x, y: at.fill_nan_mask(at.where(MASK[:, None], x, nan), y)[0],
    "nan_to_num": lambda x: at.nan_to_num(at.where(MASK[:, None], x, float("inf")), nan=x[0, 0], posinf=0.5),
    "where": lambda x, y: at.where(MASK[:, None], x, at.exp(y)),
    "clip": lambda x: at.clip(x, 0.7234, 1.5432),
    "clip_by_arrays": lambda x, y: at.clip(x, min=y),
    "sum": lambda x: at.sum(x, axes=(0, -1)),
    "sum_keepdims": lambda x: at.sum(x, axes=0, keepdims=True),
    "mean": lambda x: at.mean(x, axes=[1]),
    "min": lambda x: at.min(x, axes=0),
    "max": lambda x: at.max(x),
    "prod": lambda x: at.prod(x, axes=(0, 1)),
    "cumsum": lambda x: at.cumsum(x, axis=-2),
    "take": lambda x: at.take(x, PLACES),
    "take_axis": lambda x: at.take(x, torch.tensor([[1, 0], [-1, 1]]), axis=-1),
    "take_one": lambda x: at.take(x, torch.tensor(-2)),
    "repeat": lambda x: at.repeat(x, 2, axis=1),
    "repeat_total": lambda x: at.repeat(x, 2, total_repeat_length=41),
    "reshape": lambda x: at.reshape(x, (2, -1)),
    "concatenate": lambda x, y: at.concatenate([x, y, x], axis=1),
    "stack": lambda x, y: at.stack([x, y, x], axis=-1),
    "transpose": lambda x: at.transpose(at.reshape(x, (-1, 2, 1)), (-1, 0, 1)),
    "split_sections": lambda x: at.split(x * x, 3)[1],
    "split_cuts": lambda x, y: at.split(x, [3, 5])[1] * at.split(y, [-2])[1],
    "matmul": lambda x, y: at.matmul(x, at.transpose(y)),
    "matmul_vectors": lambda x, y: at.matmul(x[:, 0], y[:, 1]),
    "matmul_batch": lambda x, y: at.matmul(at.reshape(x, (-1, 1, 2)), y[0]),
    "cast": lambda x: at.cast(x, "float64"),
    "astype": lambda x: at.astype(x, "float64"),
    "full": lambda x: at.full((2, 3), at.take(at.reshape(x, -1), torch.tensor(4)), like=x),
    "full_like": lambda x: at.full_like(x, at.sum(x)),
}
ALL = {**SEGMENT, **PARTITION, **PLAIN}
FLAT = {"segment_max", "segment_softmax", "segment_variance", "partition_max", "partition_softmax"}


def arity(fn):
    return 1 if not inspect.isfunction(fn) else len(inspect.signature(fn).parameters)


def operands(fn):
    return (rows(), other())[: arity(fn)]


def cotangent(fn, *xs, seed=11):
    return f64(*fn(*xs).shape, seed=seed) * 2 - 0.7


def differences(scalar, xs, which, step=1e-5):
    """Central differences of a scalar function, element by element."""
    out = torch.zeros_like(xs[which])
    for k in range(out.numel()):
        ends = []
        for sign in (1, -1):
            moved = [x.detach().clone() for x in xs]
            moved[which].view(-1)[k] += sign * step
            ends.append(float(scalar(*moved)))
        out.view(-1)[k] = (ends[0] - ends[1]) / (2 * step)
    return out


def slope(fn, xs, c, create_graph=False):
    xs = [x.detach().clone().requires_grad_() for x in xs]
    return xs, torch.autograd.grad((fn(*xs) * c).sum(), xs, create_graph=create_graph)


def slope_of(fn, *xs, c=None):
    """The gradients of sum(c * fn(*xs)); one tensor for one operand."""
    grads = slope(fn, xs, cotangent(fn, *xs) if c is None else c)[1]
    return grads[0] if len(grads) == 1 else grads


def close(got, want, tolerance=1e-7):
    torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)


# ---- finite differences
@pytest.mark.parametrize("name", ALL)
def test_gradient_agrees_with_finite_differences(name):
    fn = ALL[name]
    xs = operands(fn)
    c = cotangent(fn, *xs)
    for k, grad in enumerate(slope(fn, xs, c)[1]):
        close(grad, differences(lambda *ys: (fn(*ys) * c).sum(), xs, k))


@pytest.mark.parametrize("name", sorted(FLAT))
def test_gradient_of_vectors_agrees_with_finite_differences(name):
    fn, x = ALL[name], rows()[:, 0].contiguous()
    c = cotangent(fn, x)
    close(slope_of(fn, x, c=c), differences(lambda y: (fn(y) * c).sum(), (x,), 0))


@pytest.mark.parametrize("name", ALL)
def test_second_derivative_agrees_with_finite_differences(name):
    fn = ALL[name]
    xs = operands(fn)
    c = cotangent(fn, *xs)
    d = [f64(9, 2, seed=20 + k) - 0.4 for k in range(len(xs))]

    def along(*ys):  # a directional derivative, as a function of the point
        return sum((g * e).sum() for g, e in zip(slope(fn, ys, c)[1], d, strict=True))

    ys, grads = slope(fn, xs, c, create_graph=True)
    total = sum((g * e).sum() for g, e in zip(grads, d, strict=True))
    if not total.requires_grad:  # a linear function: there is no second derivative to take
        second = [torch.zeros(9, 2, dtype=torch.float64)] * len(xs)
    else:
        second = torch.autograd.grad(total, ys, allow_unused=True, materialize_grads=True)
    for k, h in enumerate(second):
        close(h, differences(along, xs, k), 1e-5)


@pytest.mark.parametrize("name", ALL)
def test_gradcheck(name):
    fn = ALL[name]
    xs = [x.requires_grad_() for x in operands(fn)]
    assert torch.autograd.gradcheck(
        fn, xs, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True
    )
    assert torch.autograd.gradgradcheck(fn, xs, check_batched_grad=True)


# ---- ties
@pytest.mark.parametrize("value", [1.5, 0.0, -2.0, inf, -inf, 1.7976931348623157e308, 5e-324])
@pytest.mark.parametrize("k", [1, 2, 3, 7])
@pytest.mark.parametrize(
    "op", [at.segment_max, at.segment_min, at.segment_max_or_constant, at.segment_min_or_constant]
)
def test_ties_share_a_gradient_equally(op, k, value):
    """All k rows of segment 1 reach the extreme; the value that an empty segment starts from is no row."""
    ids = torch.tensor([1] * k + [0, -1, 5])
    x = torch.tensor([[value]] * k + [[0.25], [value], [value]], dtype=torch.float64)
    c = torch.tensor([[3.0], [5.0], [7.0]], dtype=torch.float64)
    grad = slope_of(lambda x: at.where(c == 7, 0.0, op(x, ids, 3)), x, c=c)
    want = torch.tensor([[5.0 / k]] * k + [[3.0], [0.0], [0.0]], dtype=torch.float64)
    close(grad, want, 1e-14)
    assert torch.equal(op(x.requires_grad_(), ids, 3)[1], x[0])  # the value is exact beside its derivative


@pytest.mark.parametrize("op", ["segment_max", "segment_min", "partition_max", "partition_min"])
def test_partial_ties_share_by_column(op):
    sign = 1.0 if op.endswith("max") else -1.0
    x = sign * torch.tensor([[3.0, 1.0], [3.0, 2.0], [1.0, 2.0], [-inf, 2.0]], dtype=torch.float64)
    c = torch.tensor([[6.0, 12.0]], dtype=torch.float64)
    if op.startswith("segment"):
        grad = slope_of(lambda x: getattr(at, op)(x, torch.zeros(4, dtype=torch.int64), 1), x, c=c)
    else:
        grad = slope_of(lambda x: getattr(at, op)(x, torch.tensor([4]), 4), x, c=c)
    assert grad.tolist() == [[3.0, 0.0], [3.0, 4.0], [0.0, 4.0], [0.0, 4.0]]


@pytest.mark.parametrize("op", [at.max, at.min])
def test_ties_of_reductions_share(op):
    x = torch.tensor([[2.0, 2.0, 5.0], [2.0, 2.0, 5.0]], dtype=torch.float64)
    c = torch.tensor([4.0, 8.0, 10.0], dtype=torch.float64)
    assert slope_of(lambda x: op(x, axes=0), x, c=c).tolist() == [[2.0, 4.0, 5.0]] * 2


@pytest.mark.parametrize("op", [at.maximum, at.minimum])
def test_ties_of_two_arrays_share(op):
    x = torch.full((3,), 1.5, dtype=torch.float64)
    c = torch.tensor([2.0, 4.0, 6.0], dtype=torch.float64)
    for grad in slope_of(op, x, x.clone(), c=c):
        assert grad.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("k", [2, 3])
def test_ties_have_no_second_derivative(k):
    x = torch.full((k, 2), 1.5, dtype=torch.float64)
    hessian = torch.autograd.functional.hessian(
        lambda x: at.segment_max(x, torch.zeros(k, dtype=torch.int64), 1).square().sum(), x
    )
    same_column = torch.eye(2, dtype=torch.float64).reshape(1, 2, 1, 2).expand(k, 2, k, 2)
    close(hessian, same_column * 2 / k**2)  # of the square alone


# ---- dropped rows
def poisoned(dropped=DROPPED):
    x = rows()
    x[dropped[0]], x[dropped[1]], x[dropped[2]] = inf, nan, -inf
    return x


def kept(dropped=DROPPED):
    return torch.tensor([k not in dropped for k in range(9)])


@pytest.mark.parametrize("name", SEGMENT)
def test_dropped_rows_with_inf_and_nan_get_exactly_zero(name):
    fn = SEGMENT[name]
    x, clean = poisoned(), rows()
    c = cotangent(fn, clean)
    values, grad = fn(x), slope_of(fn, x, c=c)
    torch.testing.assert_close(values, fn(clean), rtol=0, atol=0)
    assert (grad[DROPPED] == 0).all()
    close(grad, slope_of(fn, clean, c=c), 1e-14)


@pytest.mark.parametrize("name", SEGMENT)
def test_dropped_rows_stay_out_of_second_derivatives(name):
    fn = SEGMENT[name]
    c, d = cotangent(fn, rows()), f64(9, 2, seed=5)

    def second(x):
        (x,), (grad,) = slope(fn, (x,), c, create_graph=True)
        if not grad.requires_grad:
            return torch.zeros_like(x)
        return torch.autograd.grad((grad * d).sum(), x, allow_unused=True, materialize_grads=True)[0]

    got = second(poisoned())
    assert (got[DROPPED] == 0).all()
    close(got, second(rows()), 1e-13)


@pytest.mark.parametrize("name", SEGMENT)
def test_dropped_rows_stay_out_of_forward_derivatives(name):
    fn = SEGMENT[name]
    tangent = f64(9, 2, seed=6)
    _, got = torch.func.jvp(fn, (poisoned(),), (tangent,))
    _, want = torch.func.jvp(fn, (rows(),), (tangent,))
    close(got, want, 1e-14)


@pytest.mark.parametrize("name", SHORT)
def test_rows_behind_the_last_run_get_exactly_zero(name):
    """Under a transform the counts are not read, so a longer total is the caller's padding."""
    fn = SHORT[name]
    x, tail = poisoned([6, 7, 8]), [6, 7, 8]
    c = f64(*((4, 2) if "softmax" not in name else (9, 2)), seed=8)
    grad = torch.func.grad(lambda x: (fn(x) * c).sum())
    got, want = grad(x), grad(rows())
    assert (got[tail] == 0).all()
    close(got, want, 1e-14)


@COMPILES
@pytest.mark.parametrize("name", SHORT)
def test_rows_behind_the_last_run_get_zero_when_compiled(name):
    fn, c = SHORT[name], f64(*((4, 2) if "softmax" not in name else (9, 2)), seed=8)
    grad = torch.func.grad(lambda x: (fn(x) * c).sum())
    compiled = torch.compile(grad, fullgraph=True, backend="aot_eager")
    close(compiled(poisoned([6, 7, 8])), grad(rows()), 1e-12)


@pytest.mark.parametrize("name", SEGMENT)
def test_all_rows_dropped(name):
    grad = slope_of(lambda x: finite(named(name)(x, torch.full((9,), -1), 4)), poisoned(), c=1.0)
    assert torch.equal(grad, torch.zeros(9, 2, dtype=torch.float64))


@pytest.mark.parametrize("name", SEGMENT)
def test_no_rows_at_all(name):
    x = torch.zeros(0, 2, dtype=torch.float64, requires_grad=True)
    y = named(name)(x, torch.zeros(0, dtype=torch.int64), 3)
    (grad,) = torch.autograd.grad(y.sum(), x)
    assert grad.shape == (0, 2)


# ---- empty segments, sums of zero, infinities
@pytest.mark.parametrize("name", SEGMENT)
def test_empty_segments_give_no_nan(name):
    """Also where the cotangent of an empty segment is large; -inf and inf are constants there."""
    fn = SEGMENT[name]
    c = torch.full_like(fn(rows()), 1e30) if name not in ("segment_normalize", "segment_softmax") else None
    assert torch.isfinite(slope_of(fn, rows(), c=c)).all()


@pytest.mark.parametrize("name", ["segment_std", "segment_variance"])
def test_spread_of_single_and_of_equal_rows_is_flat_to_second_order(name):
    ids = torch.tensor([3, 0, 1, -1, 7, 4, 4, 4, 9])
    x = rows()
    x[5:8] = 0.75
    (y,), (grad,) = slope(lambda x: getattr(at, name)(x, ids, 5), (x,), 1.0, create_graph=True)
    assert torch.equal(grad, torch.zeros(9, 2).double())
    (h,) = torch.autograd.grad(grad.sum(), y)
    assert torch.isfinite(h).all()


# Of 0, 1, 2 and 3 zeros in a segment, and one in a dropped row.
ZEROS = torch.tensor([2.0, -3.0, 0.5, 0.0, 4.0, -0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0], dtype=torch.float64)
ZERO_IDS = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 9])


def plain_prod(x):
    return torch.stack([x[ZERO_IDS == s].prod(0) for s in range(5)])


def zero_rows():
    return torch.stack([ZEROS, ZEROS.flip(0) + 1.5], 1)


@pytest.mark.parametrize("way", ["eager", "func", pytest.param("compiled", marks=COMPILES)])
def test_products_with_zeros_have_both_derivatives(way):
    c, d = f64(5, 2, seed=31) + 0.5, f64(12, 2, seed=32) + 0.5

    def both(fn):
        first = torch.func.grad(lambda x: (fn(x) * c).sum())
        return lambda x: (fn(x), first(x), torch.func.grad(lambda x: (first(x) * d).sum())(x))

    def taped(x):
        fn = lambda x: at.segment_prod(x, ZERO_IDS, 5)  # noqa: E731
        (y,), (grad,) = slope(fn, (x,), c, create_graph=True)
        return fn(x), grad, torch.autograd.grad((grad * d).sum(), y)[0]

    run = taped if way == "eager" else both(lambda x: at.segment_prod(x, ZERO_IDS, 5))
    if way == "compiled":
        run = torch.compile(run, fullgraph=True, backend="aot_eager")
    for got, want in zip(run(zero_rows()), both(plain_prod)(zero_rows()), strict=True):
        close(got, want, 1e-12)


def test_a_product_with_inf_or_nan_leaves_other_segments_alone():
    ids = torch.tensor([0, 0, 1, 1, 2, 2])
    x = torch.tensor([2.0, 3.0, inf, 2.0, nan, 5.0], dtype=torch.float64)
    grad = slope_of(lambda x: at.segment_prod(x, ids, 3), x, c=torch.ones(3).double())
    assert grad[:2].tolist() == [3.0, 2.0] and grad[2].item() == 0.0 and grad[3].item() == inf
    assert grad[4].item() == 0.0 and grad[5].isnan()
    assert at.segment_prod(x.requires_grad_(), ids, 3).detach().tolist()[:2] == [6.0, inf]


def test_logsumexp_has_the_softmax_as_gradient_and_none_where_nothing_is_above_minus_inf():
    ids = torch.tensor([0, 0, 0, 1, 1, 3, -1])
    x = torch.tensor([1.0, -inf, 2.0, -inf, -inf, 700.0, nan], dtype=torch.float64)
    (y,), (grad,) = slope(lambda x: at.segment_logsumexp(x, ids, 4), (x,), torch.ones(4), create_graph=True)
    close(grad[:3], torch.softmax(x[:3], 0), 1e-14)
    assert grad[3:].tolist() == [0.0, 0.0, 1.0, 0.0]
    (h,) = torch.autograd.grad((grad * torch.arange(7)).sum(), y)
    assert torch.isfinite(h).all()


def test_gradients_of_attention_reach_logits_and_values():
    ids, logits = torch.tensor([0, 1, 0, 7, 1, -1]), rows()[:6]
    values = torch.stack([rows()[:6], other()[:6], rows()[3:] * 2], 2)
    fn = lambda a, v: at.segment_attention(a, v, ids, 3)  # noqa: E731
    c = cotangent(fn, logits, values)
    grads = slope(fn, (logits, values), c)[1]
    for k, grad in enumerate(grads):
        close(grad, differences(lambda *ys: (fn(*ys) * c).sum(), (logits, values), k))
        assert (grad[[3, 5]] == 0).all()
    dirty = [logits.clone(), values.clone()]
    for x in dirty:
        x[3], x[5] = nan, inf
    for got, want in zip(slope(fn, dirty, c)[1], grads, strict=True):
        close(got, want, 1e-14)


def test_rows_and_truth_have_no_derivative():
    x = rows().requires_grad_()
    for op in (at.segment_argmax, at.segment_argmin, at.segment_any, at.segment_all):
        assert not op(x, IDS, 4).requires_grad


def test_variance_of_single_rows_is_flat():
    ids = torch.tensor([3, 0, 1, -1, 7, 9, 9, 9, 9])
    assert torch.equal(slope_of(lambda x: at.segment_variance(x, ids, 5), rows()), torch.zeros(9, 2).double())


@pytest.mark.parametrize("second", [False, True])
def test_normalize_of_a_zero_sum_is_zero_and_flat(second):
    ids = torch.tensor([0, 0, 1, 1])
    x = torch.tensor([1.0, -1.0, 2.0, 6.0], dtype=torch.float64)
    c = torch.tensor([1.0, 2.0, 3.0, 5.0], dtype=torch.float64)
    fn = lambda x: at.segment_normalize(x, ids, 3)  # noqa: E731
    assert fn(x).tolist() == [0.0, 0.0, 0.25, 0.75]
    (y,), (grad,) = slope(fn, (x,), c, create_graph=True)
    close(grad[:2], torch.zeros(2).double())
    close(grad[2:], differences(lambda x: (fn(x) * c).sum(), (x,), 0)[2:])
    if second:
        (h,) = torch.autograd.grad((grad * c).sum(), y)
        assert torch.equal(h[:2], torch.zeros(2).double()) and torch.isfinite(h).all()


def test_softmax_with_masked_logits_has_a_finite_gradient():
    ids = torch.tensor([0, 0, 0, 1, 1])
    x = torch.tensor([1.0, -inf, 2.0, -inf, 0.5], dtype=torch.float64)
    c = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], dtype=torch.float64)
    grad = slope_of(lambda x: at.segment_softmax(x, ids, 2), x, c=c)
    p = torch.softmax(torch.tensor([1.0, 2.0], dtype=torch.float64), 0)
    share = (p * torch.tensor([1.0, 3.0], dtype=torch.float64)).sum()
    close(grad[[0, 2]], p * (torch.tensor([1.0, 3.0], dtype=torch.float64) - share))
    assert grad[[1, 3, 4]].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "name", ["segment_max", "segment_min", "segment_sum", "segment_mean", "segment_softmax"]
)
def test_nan_in_one_segment_leaves_the_gradient_of_others_finite(name):
    x = rows()
    x[1, 0] = nan
    fn = SEGMENT[name]
    got, want = slope_of(fn, x, c=cotangent(fn, rows())), slope_of(fn, rows())
    elsewhere = kept([1, 4, 5])
    close(got[elsewhere], want[elsewhere], 1e-14)
    close(got[:, 1], want[:, 1], 1e-14)


def test_gradient_reaches_a_constant_given_as_an_array():
    x, constant = rows(), torch.tensor(2.0, dtype=torch.float64)
    grads = slope_of(lambda x, k: at.segment_max_or_constant(x, IDS, 4, k), x, constant, c=torch.ones(4, 2))
    assert grads[1] == 4  # two empty segments of two columns


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", SEGMENT)
def test_gradients_keep_the_dtype(name, dtype):
    fn, x = SEGMENT[name], rows()
    c = cotangent(fn, x)
    got = slope_of(fn, x.to(dtype), c=c.to(dtype))
    assert got.dtype == dtype
    close(
        got.double(),
        slope_of(fn, x.to(dtype).double(), c=c.to(dtype).double()),
        3e-2 if dtype != torch.float32 else 1e-5,
    )


# ---- the same gradients, taken otherwise
GROUPS = {"segment": SEGMENT, "partition": PARTITION, "plain": PLAIN}


@COMPILES
@pytest.mark.parametrize("group", GROUPS)
def test_compiled_gradients(group):
    """One graph for the whole group; each function has operands of its own."""
    fns = list(GROUPS[group].values())
    xs = [[x.requires_grad_() for x in operands(fn)] for fn in fns]
    if group == "segment":
        xs = [[poisoned().requires_grad_()] for _ in fns]
    flat = [x for each in xs for x in each]

    def run(xs):
        return [fn(*each) for fn, each in zip(fns, xs, strict=True)]

    cs = [cotangent(fn, *each).detach() for fn, each in zip(fns, xs, strict=True)]
    want = torch.autograd.grad(run(xs), flat, cs)
    got = torch.autograd.grad(torch.compile(run, fullgraph=True, backend="aot_eager")(xs), flat, cs)
    for g, w in zip(got, want, strict=True):
        close(g, w, 1e-12)


@pytest.mark.parametrize("group", GROUPS)
def test_functional_gradients(group):
    for fn in GROUPS[group].values():
        xs = operands(fn) if group != "segment" else (poisoned(),)
        c = cotangent(fn, *xs).detach()
        got = torch.func.grad(lambda *xs: (fn(*xs) * c).sum(), tuple(range(len(xs))))(*xs)  # noqa: B023
        for g, w in zip(got, slope(fn, xs, c)[1], strict=True):
            close(g, w, 1e-12)


@COMPILES
def test_compiled_functional_gradients_of_both_orders():
    fns = [ALL[name] for name in ("segment_max", "segment_softmax", "segment_variance", "partition_softmax")]
    x = rows()
    cs = [cotangent(fn, x) for fn in fns]
    d = f64(9, 2, seed=5)

    def first(fn, c):
        return torch.func.grad(lambda x: (fn(x) * c).sum())

    def second(fn, c):
        return torch.func.grad(lambda x: (first(fn, c)(x) * d).sum())

    def run(x):
        grads = [first(fn, c)(x) for fn, c in zip(fns, cs, strict=True)]
        twice = [second(fn, c)(x) for fn, c in zip(fns, cs, strict=True)]
        return grads, twice

    want = run(x)
    got = torch.compile(run, fullgraph=True, backend="aot_eager")(x)
    for gs, ws in zip(got, want, strict=True):
        for g, w in zip(gs, ws, strict=True):
            close(g, w, 1e-12)


@pytest.mark.parametrize("name", ["segment_softmax", "segment_variance", "segment_normalize", "segment_max"])
def test_hessian(name):
    fn, x = SEGMENT[name], rows()
    c = cotangent(fn, x)
    scalar = lambda x: (fn(x) * c).sum()  # noqa: E731
    want = torch.autograd.functional.hessian(scalar, x)
    close(torch.func.hessian(scalar)(x), want, 1e-12)
    close(torch.func.jacrev(torch.func.jacrev(scalar))(x), want, 1e-12)
    close(torch.func.jacfwd(torch.func.jacfwd(scalar))(x), want, 1e-12)
    if name == "segment_max":
        assert not want.any()
