"""One list of calls for every mode of torch: a function of named inputs each, and the inputs by size.

A call names its inputs by its parameters. n and total are sizes: numbers, or read off an input by at.shape.
"""

import inspect
from typing import NamedTuple

import torch
from frameworks import COMPILES  # noqa: F401 (for the tests beside)

import anytensor as at

inf, nan = float("inf"), float("nan")


def inputs(edges=7, nodes=4):
    """Tensors by name. Ids point outside too; counts add up to edges; x and v are positive and distinct."""
    assert edges >= nodes > 2
    order = torch.arange(edges * 3)
    x = (((order * 37) % 101).float() * 0.03 + order * 1e-3 + 0.05).reshape(edges, 3)
    gaps = x.clone()
    gaps[1, 1], gaps[2, 0], gaps[edges - 1, 2] = nan, inf, -inf
    rows = torch.arange(edges)
    ids = rows % (nodes - 1)  # the last segment stays empty
    ids[0], ids[3], ids[edges - 2] = -1, nodes, 2**40
    counts = torch.zeros(nodes, dtype=torch.int64)
    counts[0], counts[2], counts[-1] = 1, edges - nodes, nodes - 1
    return {
        "x": x,
        "v": x[:, 0].contiguous(),
        "half": x.bfloat16(),
        "gaps": gaps,
        "whole": ((rows * 7) % 11 - 4).reshape(edges, 1).repeat(1, 2).to(torch.int32),
        "flags": rows % 3 == 0,
        "nodes": torch.arange(nodes * 2).reshape(nodes, 2) * 0.5,
        "ids": ids,
        "runs": (rows * nodes // edges).to(torch.int32),
        "counts": counts,
        "index": torch.where(rows % 2 == 0, rows, rows - edges),
        "places": torch.tensor([[2, -1], [0, -3]], dtype=torch.int16),
        "one": torch.tensor(-1),
        "scale": torch.tensor(2.5, dtype=torch.float64),
    }


class Call(NamedTuple):
    name: str
    fn: object
    takes: tuple


def _calls(**families):
    return {
        family: tuple(
            Call(f"{family}-{i}", fn, tuple(inspect.signature(fn).parameters)) for i, fn in enumerate(fns)
        )
        for family, fns in families.items()
    }


SEGMENT_CALLS = _calls(
    segment_sum=(
        lambda x, ids, n: at.segment_sum(x, ids, n),
        lambda v, ids, n: at.segment_sum(v, segment_ids=ids, num_segments=n),
        lambda gaps, runs, n: at.segment_sum(gaps, runs, n, sorted=True),
        lambda whole, ids, n: at.segment_sum(whole, ids, n),
        lambda flags, runs, n: at.segment_sum(flags, runs, n),
        lambda half, ids, n: at.segment_sum(half, ids, n),
        lambda nodes, x, ids: at.segment_sum(x, ids, at.shape(nodes)[0]),
        lambda x, ids, n: at.segment_sum(at.reshape(x, (at.shape(x)[0], 3, 1)), ids, n + 1),
    ),
    segment_max=(
        lambda x, ids, n: at.segment_max(x, ids, n),
        lambda v, runs, n: at.segment_max(v, runs, n, True),
        lambda gaps, ids, n: at.segment_max(gaps, ids, n),
        lambda whole, ids, n: at.segment_max(whole, ids, n),
        lambda flags, ids, n: at.segment_max(flags, ids, n),
        lambda half, ids, n: at.segment_max(half, ids, n),
    ),
    segment_min=(
        lambda x, ids, n: at.segment_min(x, ids, n),
        lambda v, runs, n: at.segment_min(v, runs, n, True),
        lambda gaps, ids, n: at.segment_min(gaps, ids, n),
        lambda whole, ids, n: at.segment_min(whole, ids, n),
        lambda flags, ids, n: at.segment_min(flags, ids, n),
    ),
    segment_mean=(
        lambda x, ids, n: at.segment_mean(x, ids, n),
        lambda v, runs, n: at.segment_mean(v, runs, n),
        lambda gaps, ids, n: at.segment_mean(gaps, ids, n),
        lambda whole, ids, n: at.segment_mean(whole, ids, n),
        lambda half, ids, n: at.segment_mean(half, ids, n),
    ),
    segment_variance=(
        lambda x, ids, n: at.segment_variance(x, ids, n),
        lambda v, runs, n: at.segment_variance(v, runs, n),
        lambda half, ids, n: at.segment_variance(half, ids, n),
    ),
    segment_normalize=(
        lambda x, ids, n: at.segment_normalize(x, ids, n),
        lambda v, runs, n: at.segment_normalize(v, runs, n),
        lambda whole, ids, n: at.segment_normalize(whole, ids, n),
    ),
    segment_softmax=(
        lambda x, ids, n: at.segment_softmax(x, ids, n),
        lambda v, runs, n: at.segment_softmax(logits=v, segment_ids=runs, num_segments=n),
        lambda gaps, ids, n: at.segment_softmax(gaps, ids, n),
        lambda half, ids, n: at.segment_softmax(half, ids, n),
    ),
    segment_prod=(
        lambda x, ids, n: at.segment_prod(x, ids, n),
        lambda v, runs, n: at.segment_prod(v, runs, n),
        lambda gaps, ids, n: at.segment_prod(gaps, ids, n),
        lambda whole, ids, nodes: at.segment_prod(whole, ids, at.shape(nodes)[0]),
        lambda flags, ids, n: at.segment_prod(flags, ids, n),
        lambda half, ids, n: at.segment_prod(half, ids, n),
    ),
    segment_truth=(
        lambda gaps, ids, n: at.segment_any(gaps, ids, n),
        lambda whole, ids, n: at.segment_all(whole, ids, n),
        lambda flags, runs, n: at.segment_any(flags, runs, n),
        lambda flags, ids, n: at.segment_all(flags, ids, n),
    ),
    segment_std=(
        lambda x, ids, n: at.segment_std(x, ids, n),
        lambda whole, runs, n: at.segment_std(whole, runs, n),
        lambda half, ids, n: at.segment_std(half, ids, n),
    ),
    segment_rows=(
        lambda gaps, ids, n: at.segment_argmax(gaps, ids, n),
        lambda whole, ids, n: at.segment_argmin(whole, ids, n),
        lambda flags, runs, n: at.segment_argmax(flags, runs, n),
        lambda half, ids, nodes: at.segment_argmin(half, ids, at.shape(nodes)[0]),
        lambda v, ids, n: at.segment_argmax(v, ids, n),
    ),
    segment_logsumexp=(
        lambda x, ids, n: at.segment_logsumexp(x, ids, n),
        lambda gaps, ids, n: at.segment_logsumexp(gaps, ids, n),
        lambda half, runs, n: at.segment_logsumexp(logits=half, segment_ids=runs, num_segments=n),
    ),
    segment_attention=(
        lambda v, x, ids, n: at.segment_attention(v, x, ids, n),
        lambda x, ids, n: at.segment_attention(x, x, ids, n),
        lambda v, gaps, ids, n: at.segment_attention(v, values=gaps, segment_ids=ids, num_segments=n),
        lambda v, half, runs, nodes: at.segment_attention(v, half, runs, at.shape(nodes)[0]),
        lambda x, ids, n: at.segment_attention(x, at.reshape(x, (at.shape(x)[0], 3, 1)), ids, n),
    ),
    segment_count=(
        lambda ids, n: at.segment_count(ids, n),
        lambda runs, nodes: at.segment_count(runs, at.shape(nodes)[0], sorted=True),
    ),
    segment_or_constant=(
        lambda x, ids, n: at.segment_max_or_constant(x, ids, n),
        lambda x, ids, n: at.segment_min_or_constant(x, ids, n, constant=-1.5),
        lambda v, ids, n: at.segment_max_or_constant(v, ids, n, inf),
        lambda whole, ids, n: at.segment_min_or_constant(whole, ids, n, 7),
        lambda x, ids, n, scale: at.segment_max_or_constant(x, ids, n, constant=scale),
    ),
    partition=(
        lambda counts, total: at.partition_ids(counts, total),
        lambda counts, x: at.partition_ids(counts, at.shape(x)[0]),
        lambda x, counts, total: at.partition_sum(x, counts, total),
        lambda v, counts, total: at.partition_min(v, counts, total),
        lambda x, counts, total: at.partition_max(x, counts, total),
        lambda whole, counts, total: at.partition_max(whole, counts, total),
        lambda x, counts, total: at.partition_softmax(x, counts, total),
        lambda v, counts: at.partition_softmax(v, counts, at.shape(v)[0]),
    ),
)

PLAIN_CALLS = _calls(
    elementwise=(
        lambda x: at.exp(x),
        lambda whole: at.exp(whole),
        lambda x: at.log(x),
        lambda x: at.sqrt(x),
        lambda x: at.rsqrt(x),
        lambda flags: at.sqrt(flags),
        lambda x, v: at.maximum(x, at.reshape(v, (-1, 1))),
        lambda x: at.maximum(x, 1.0),
        lambda x: at.minimum(0.5, x),
        lambda whole: at.minimum(whole, 2),
        lambda whole: at.maximum(whole, 0.5),
        lambda x, scale: at.minimum(x, scale),
        lambda x, n: at.maximum(x, n),
        lambda gaps: at.fill_nan(gaps),
        lambda gaps: at.fill_nan(gaps, -1.0),
        lambda gaps, scale: at.fill_nan(gaps, scale),
        lambda whole: at.fill_nan(whole),
        lambda gaps: at.is_nan(gaps),
        lambda whole: at.is_inf(whole),
        lambda half: at.is_finite(half),
        lambda gaps, x: at.equal_nan(gaps, x),
        lambda gaps: at.equal_nan(nan, gaps),
        lambda gaps: at.fill_nan_mask(gaps, 2.0)[0],
        lambda gaps, scale: at.fill_nan_mask(gaps, scale)[1],
        lambda gaps: at.nan_to_num(gaps),
        lambda half, scale: at.nan_to_num(half, nan=scale, posinf=1, neginf=-1.5),
        lambda gaps, n: at.nan_to_num(gaps, nan=n),
        lambda whole: at.nan_to_num(whole),
        lambda flags, v: at.where(flags, v, 0.0),
        lambda flags, v: at.where(flags, at.exp(v), v),
        lambda flags, x: at.where(at.reshape(flags, (-1, 1)), x, -inf),
        lambda x: at.clip(x, 0.5, 1.5),
        lambda x: at.clip(x, min=0.5),
        lambda x: at.clip(x, max=0.5),
        lambda x, v: at.clip(x, at.reshape(v, (-1, 1)), None),
        lambda whole: at.clip(whole, 0, 2.5),
        lambda x: at.clip(x),
    ),
    reduction=(
        lambda x: at.sum(x),
        lambda x: at.sum(x, axes=-1),
        lambda x: at.sum(x, axes=(0, 1), keepdims=True),
        lambda x: at.sum(x, [0]),
        lambda whole: at.sum(whole, 0),
        lambda flags: at.sum(flags),
        lambda x: at.mean(x, axes=0, keepdims=True),
        lambda whole: at.mean(whole),
        lambda gaps: at.mean(gaps, axes=1),
        lambda x: at.min(x, axes=(0,)),
        lambda x: at.max(x, axes=-1, keepdims=True),
        lambda whole: at.max(whole),
        lambda x: at.prod(x),
        lambda x: at.prod(x, axes=(0, 1)),
        lambda whole: at.prod(whole, axes=1, keepdims=True),
        lambda x: at.cumsum(x),
        lambda x: at.cumsum(x, axis=-1),
        lambda v: at.cumsum(v, axis=None),
    ),
    layout=(
        lambda x, index: at.take(x, index),
        lambda x, places: at.take(x, places, axis=-1),
        lambda x, places: at.take(x, places, axis=1),
        lambda x, one: at.take(x, one),
        lambda x, one: at.take(x, one, axis=-1),
        lambda x, index: at.take(x, index, axis=None),
        lambda nodes, runs: at.take(nodes, runs),
        lambda x: at.repeat(x, 2),
        lambda x: at.repeat(x, 2, axis=1),
        lambda nodes: at.repeat(nodes, 3, axis=0),
        lambda v, n: at.repeat(v, 2, total_repeat_length=n + 5),
        lambda counts, total: at.repeat(counts, counts, total_repeat_length=total),
        lambda counts, x: at.repeat(counts, counts, total_repeat_length=at.shape(x)[0] + 2),
        lambda x: at.reshape(x, -1),
        lambda x: at.reshape(x, (at.shape(x)[1], at.shape(x)[0])),
        lambda x, total: at.reshape(x, [total, 1, -1]),
        lambda x, whole: at.concatenate([x, whole], axis=1),
        lambda x: at.concatenate((x, x, x)),
        lambda x, nodes: at.concatenate([x, nodes], axis=None),
        lambda x: at.astype(x, "float64"),
        lambda x: at.astype(x, torch.int32),
        lambda x: at.astype(x, "float32"),
        lambda flags: at.astype(flags, "int8"),
        lambda whole: at.astype(whole, "bool"),
        lambda x: at.stack([x, x + 1], axis=-1),
        lambda x, whole: at.stack((x[:, :2], whole)),
        lambda x: at.transpose(x),
        lambda x: at.transpose(at.reshape(x, (-1, 3, 1)), (-1, 0, 1)),
        lambda x: at.split(x, 3, axis=1)[1],
        lambda x: at.split(x, [1, -2])[1],
        lambda x: at.split(x, [2, 1])[2],
        lambda x: at.split(x, at.shape(x)[1:], axis=0)[1],
        lambda x: at.split(x, [at.shape(x)[0] - 2])[0],
        lambda nodes: at.split(at.reshape(nodes, (-1, 1)), 2)[1],
        lambda x: at.matmul(x, at.transpose(x)),
        lambda x: at.matmul(at.reshape(x, (-1, 1, 3)), x[0]),
        lambda v: at.matmul(v, v),
        lambda whole: at.matmul(at.transpose(whole), whole),
        lambda flags, whole: at.matmul(flags, at.cast(whole, "bool")),
        lambda half: at.matmul(half, half[0]),
        lambda whole: at.cast(whole, "float64"),
    ),
    construct=(
        lambda x: at.zeros((at.shape(x)[0], 2), like=x),
        lambda x, n: at.zeros(n, dtype="int32", like=x),
        lambda x: at.ones(at.shape(x), like=x),
        lambda whole, n: at.ones((n, n), dtype="float64", like=whole),
        lambda x, n: at.full((n, 2), 1.5, like=x),
        lambda whole, n: at.full(n, 3, like=whole),
        lambda x, n: at.full((n,), n, dtype="float32", like=x),
        lambda x, n, scale: at.full((2, n), scale, like=x),
        lambda x: at.zeros_like(x),
        lambda whole: at.zeros_like(whole, "float32"),
        lambda x: at.ones_like(x, dtype=torch.int64),
        lambda flags: at.ones_like(flags),
        lambda x: at.full_like(x, -inf),
        lambda x: at.full_like(x, 2, "int16"),
        lambda x, scale: at.full_like(x, scale),
        lambda x, n: at.arange(n, like=x),
        lambda x: at.arange(at.shape(x)[0], like=x),
        lambda x, n: at.arange(1, n, like=x),
        lambda x, n: at.arange(n, 0, -1, like=x),
        lambda x, n: at.arange(0, n, 0.5, like=x),
        lambda x, n: at.arange(n, dtype="float32", like=x),
        lambda x, n: at.arange(n, like=x, device="cpu"),
        lambda x, v: at.align_arrays(x, v)[1],
        lambda x: at.align_arrays(x, None, 2)[2],
    ),
)

CALLS = {**SEGMENT_CALLS, **PLAIN_CALLS}

# A third of the calls: all dtypes, ranks, kinds of size.
FEW = {name: tuple(call for k, call in enumerate(calls) if k % 3 == 0) for name, calls in CALLS.items()}

# For Inductor, which takes seconds per kernel: one call of each segment family (ids that drop, NaN, half precision).
_PICK = {"segment_sum": 5, "segment_max": 2, "segment_softmax": 2, "partition": 6}
FEWER = {
    name: (SEGMENT_CALLS[name][_PICK.get(name, 0)],) if name in SEGMENT_CALLS else calls
    for name, calls in FEW.items()
}


def tensor_names(calls):
    """The tensors that some calls need, nodes among them (n can be read off it), and x for total."""
    wanted = {"x", "nodes"}.union(*(call.takes for call in calls)) - {"n", "total"}
    return tuple(name for name in inputs() if name in wanted)


def program(calls):
    """f(n, total, *tensors) -> the results of all calls; without sizes they are read off the tensors."""
    names = tensor_names(calls)

    def run(n, total, *tensors):
        given = dict(zip(names, tensors, strict=True))
        given["n"] = at.shape(given["nodes"])[0] if n is None else n
        given["total"] = at.shape(given["x"])[0] if total is None else total
        return [call.fn(*[given[name] for name in call.takes]) for call in calls]

    return run


def arguments(calls, edges=7, nodes=4):
    """(n, total, tensors) for program(calls)."""
    given = inputs(edges, nodes)
    return nodes, edges, [given[name] for name in tensor_names(calls)]


def eager(calls, edges=7, nodes=4):
    n, total, tensors = arguments(calls, edges, nodes)
    return program(calls)(n, total, *tensors)


def check(calls, got, want, rtol=1e-6, where="", values=True):
    """Each result against its eager one: type of elements, shape, device, values."""
    assert len(got) == len(want) == len(calls)
    for call, g, w in zip(calls, got, want, strict=True):
        label = f"{call.name}{where}"
        assert isinstance(g, torch.Tensor), label
        assert (g.dtype, tuple(g.shape)) == (w.dtype, tuple(w.shape)), label
        if values:
            assert g.device == w.device, label
            loose = max(rtol, 1e-2) if g.dtype == torch.bfloat16 else rtol
            torch.testing.assert_close(
                g, w, rtol=loose, atol=loose, equal_nan=True, msg=lambda text, label=label: f"{label}: {text}"
            )
