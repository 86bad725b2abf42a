"""Derivatives of the segment kernels inside torch: imported by the adapter when a torch with a door for kernels wakes.

``bare`` holds the dispatcher's operators (src/python/backends/torch_ops.c): plain tensors in host memory, no
derivative. ``derived`` holds the same calls as autograd functions. Each derivative is written twice: fused, when
nobody will differentiate it again, and as a formula of functions that have derivatives themselves.
"""

from types import SimpleNamespace

import torch

from . import _core

_FORMULA, _OPERATOR, _DERIVATIVE = range(3)  # what _core._torch_way answers


def _operator(name):
    """The operator's own builtin, where it has one: one Python call less."""
    overload = getattr(torch.ops.anytensor, name).default
    return getattr(overload, "_op", overload)


bare = SimpleNamespace(
    **{
        name: _operator(name)
        for name in (
            "segment_sum",
            "segment_min",
            "segment_max",
            "segment_softmax",
            "segment_spread",
            "segment_softmax_backward",
            "segment_extreme_backward",
        )
    }
)


# ---- what a call would give, for fake tensors
def _like_segments(x, segment_ids, num_segments):
    return x.new_empty((num_segments, *x.shape[1:]))


def _like_rows(x, *others):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _like_spread(x, segment_ids):
    return x.new_empty((segment_ids.shape[0], *x.shape[1:]))


for _name in ("segment_sum", "segment_min", "segment_max"):
    torch.library.register_fake(f"anytensor::{_name}", _like_segments)
for _name in ("segment_softmax", "segment_softmax_backward", "segment_extreme_backward"):
    torch.library.register_fake(f"anytensor::{_name}", _like_rows)
torch.library.register_fake("anytensor::segment_spread", _like_spread)


# ---- parts of derivatives
def _way(x, ids):
    """How to treat rows and ids here; a compiler that traces a derivative sees torch's own functions."""
    return _FORMULA if torch.compiler.is_compiling() else _core._torch_way(x, ids)


def _is_last(g, ids):
    """Whether a fused derivative may be taken: of plain tensors, and nobody differentiates it again."""
    return not torch.is_grad_enabled() and _way(g, ids) == _OPERATOR


def _kept(ids, n, like):
    """Which ids are in range, seen against rows of like."""
    ids = ids.to(torch.int64)  # a uint64 beyond turns negative
    return ((ids >= 0) & (ids < n)).reshape((-1,) + (1,) * (like.ndim - 1))


def _spread(x, ids):
    """The row of x that each id names; zero for an id out of range."""
    way = _way(x, ids)
    if way == _OPERATOR:
        return bare.segment_spread(x, ids)
    if way == _DERIVATIVE:
        return _Spread.apply(x, ids)
    slots = torch.where(_kept(ids, x.shape[0], ids), ids.to(torch.int64), x.shape[0])
    rows = torch.cat((x, x.new_zeros((1, *x.shape[1:]))))
    index = slots.reshape((-1,) + (1,) * (x.ndim - 1)).expand((-1, *x.shape[1:]))
    return torch.gather(rows, 0, index)


def _storable(ids):
    """Ids as autograd keeps them: it refuses tensors of inference mode."""
    return ids.clone() if ids.is_inference() else ids


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, ids):
        ctx.save_for_backward(ids)
        ctx.n = x.shape[0]
        return bare.segment_spread(x, ids)

    @staticmethod
    def backward(ctx, g):
        (ids,) = ctx.saved_tensors
        return _core.segment_sum(g, ids, ctx.n), None


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, ids, n):
        ctx.save_for_backward(_storable(ids))
        return bare.segment_sum(x, ids, n)

    @staticmethod
    def backward(ctx, g):
        (ids,) = ctx.saved_tensors
        return _spread(g, ids), None, None


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, ids, n):
        y = bare.segment_softmax(x, ids, n)
        ctx.save_for_backward(y, _storable(ids))
        ctx.n = n
        return y

    @staticmethod
    def backward(ctx, g):
        y, ids = ctx.saved_tensors
        if _is_last(g, ids):
            return bare.segment_softmax_backward(y, g, ids, ctx.n), None, None
        kept = _kept(ids, ctx.n, g)
        g = torch.where(kept, g, 0.0)  # what a dropped row gets may be an infinity
        mean = _core.segment_sum(g * y, ids, ctx.n)
        return y * (g - _spread(mean, ids)), None, None


class _Extreme(torch.autograd.Function):
    """Rows that reach the extreme share its derivative equally; NaN reaches nothing."""

    @staticmethod
    def forward(ctx, x, ids, n):
        peak = ctx.op(x, ids, n)
        ctx.save_for_backward(x, peak, _storable(ids))
        return peak

    @staticmethod
    def backward(ctx, g):
        x, peak, ids = ctx.saved_tensors
        if _is_last(g, ids):
            return bare.segment_extreme_backward(x, peak, g, ids), None, None
        x, peak = x.detach(), peak.detach()
        wide = torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype
        tie = (x == _spread(peak, ids)) & _kept(ids, peak.shape[0], x)
        ties = _core.segment_sum(tie.to(wide), ids, peak.shape[0])
        share = (g.to(wide) / torch.clamp(ties, min=1)).to(g.dtype)
        return torch.where(tie, _spread(share, ids), 0.0), None, None


class _Min(_Extreme):
    @staticmethod
    def forward(ctx, x, ids, n):
        ctx.op = bare.segment_min
        return _Extreme.forward(ctx, x, ids, n)


class _Max(_Extreme):
    @staticmethod
    def forward(ctx, x, ids, n):
        ctx.op = bare.segment_max
        return _Extreme.forward(ctx, x, ids, n)


def _applied(function):
    """apply() without the questions that the adapter has asked: whether functorch is active."""
    return super(torch.autograd.Function, function).apply


derived = SimpleNamespace(
    segment_sum=_applied(_Sum),
    segment_min=_applied(_Min),
    segment_max=_applied(_Max),
    segment_softmax=_applied(_Softmax),
)
