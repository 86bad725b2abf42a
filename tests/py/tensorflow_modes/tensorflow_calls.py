"""Calls for every way TensorFlow has to run them: functions of named inputs, and the inputs, as NumPy arrays, by size.

A call takes what its parameters name. `n` and `total` are sizes: numbers, or read off an input by at.shape.
"""

import inspect

import numpy as np

import anytensor as at

INF, NAN = np.inf, np.nan


def inputs(rows=7, nodes=4):
    """Arrays by name. Some ids point outside, the last segment is empty, and counts add up to rows."""
    x = (np.arange(rows * 3) * 29 % 83 * 0.04 + 0.07).astype(np.float32).reshape(rows, 3)
    gaps = x.copy()
    for k, value in enumerate((NAN, INF, -INF)):
        if rows > k + 2:
            gaps[k + 2, k] = value
    ids = np.arange(rows) % max(nodes - 1, 1)
    for place, value in ((1, -1), (4, nodes), (6, 2**40)):
        if rows > place:
            ids[place] = value
    counts = np.zeros(nodes, np.int64)
    counts[0], counts[-1] = rows // 3, rows - rows // 3
    index = np.arange(rows)
    return {
        "x": x,
        "v": x[:, 0].copy(),
        "half": x.astype(np.float16),
        "gaps": gaps,
        "whole": (np.arange(rows * 2).reshape(rows, 2) * 5 % 9 - 4).astype(np.int32),
        "wide": (np.arange(rows, dtype=np.uint64) * 2**61 + 3).astype(np.uint64),
        "flags": np.arange(rows) % 3 == 0,
        "nodes": np.arange(nodes * 2, dtype=np.float32).reshape(nodes, 2),
        "ids": ids,
        "runs": (np.arange(rows) * nodes // max(rows, 1)).astype(np.int32),
        "counts": counts,
        "index": np.where(index % 2 == 0, index, index - rows),
        "places": np.array([[2, -1], [0, -3]], np.int16),
        "one": np.array(-1),
        "scale": np.array(2.5),
    }


CALLS = {
    "sums": [
        lambda x, ids, n: at.segment_sum(x, ids, n),
        lambda v, ids, n: at.segment_sum(v, ids, n),
        lambda gaps, runs, n: at.segment_sum(gaps, runs, n, sorted=True),
        lambda whole, ids, n: at.segment_sum(whole, ids, n),
        lambda wide, ids, n: at.segment_sum(wide, ids, n),
        lambda flags, ids, n: at.segment_sum(flags, ids, n),
        lambda half, ids, n: at.segment_sum(half, ids, n),
        lambda x, ids, nodes: at.segment_sum(x, ids, at.shape(nodes)[0]),
        lambda x, ids: at.segment_sum(x, ids, at.shape(x)[0]),
        lambda ids, n: at.segment_count(ids, n),
        lambda runs, nodes: at.segment_count(runs, at.shape(nodes)[0]),
        lambda x, ids, n: at.segment_mean(x, ids, n),
        lambda gaps, ids, n: at.segment_mean(gaps, ids, n),
        lambda whole, ids, n: at.segment_mean(whole, ids, n),
        lambda half, ids, n: at.segment_mean(half, ids, n),
        lambda x, ids, n: at.segment_variance(x, ids, n),
        lambda half, runs, n: at.segment_variance(half, runs, n),
    ],
    "extremes": [
        lambda x, ids, n: at.segment_max(x, ids, n),
        lambda gaps, ids, n: at.segment_max(gaps, ids, n),
        lambda gaps, runs, n: at.segment_min(gaps, runs, n),
        lambda v, ids, n: at.segment_min(v, ids, n),
        lambda whole, ids, n: at.segment_max(whole, ids, n),
        lambda wide, ids, n: at.segment_min(wide, ids, n),
        lambda flags, ids, n: at.segment_min(flags, ids, n),
        lambda half, ids, n: at.segment_max(half, ids, n),
        lambda x, ids, nodes: at.segment_max(x, ids, at.shape(nodes)[0]),
        lambda x, ids, n: at.segment_max_or_constant(x, ids, n),
        lambda x, ids, n, scale: at.segment_min_or_constant(x, ids, n, constant=scale),
        lambda whole, ids, n: at.segment_min_or_constant(whole, ids, n, 7),
    ],
    "weights": [
        lambda x, ids, n: at.segment_softmax(x, ids, n),
        lambda gaps, ids, n: at.segment_softmax(gaps, ids, n),
        lambda half, ids, n: at.segment_softmax(half, ids, n),
        lambda v, ids, nodes: at.segment_softmax(v, ids, at.shape(nodes)[0]),
        lambda x, ids, n: at.segment_normalize(x, ids, n),
        lambda whole, runs, n: at.segment_normalize(whole, runs, n),
    ],
    "more": [
        lambda x, ids, n: at.segment_prod(x, ids, n),
        lambda gaps, ids, n: at.segment_prod(gaps, ids, n),
        lambda whole, ids, nodes: at.segment_prod(whole, ids, at.shape(nodes)[0]),
        lambda flags, ids, n: at.segment_prod(flags, ids, n),
        lambda half, ids, n: at.segment_prod(half, ids, n),
        lambda gaps, ids, n: at.segment_any(gaps, ids, n),
        lambda whole, runs, n: at.segment_all(whole, runs, n),
        lambda x, ids, n: at.segment_std(x, ids, n),
        lambda half, ids, n: at.segment_std(half, ids, n),
        lambda gaps, ids, n: at.segment_argmax(gaps, ids, n),
        lambda wide, ids, n: at.segment_argmin(wide, ids, n),
        lambda flags, ids, nodes: at.segment_argmax(flags, ids, at.shape(nodes)[0]),
        lambda x, ids, n: at.segment_logsumexp(x, ids, n),
        lambda gaps, ids, n: at.segment_logsumexp(gaps, ids, n),
        lambda v, x, ids, n: at.segment_attention(v, x, ids, n),
        lambda x, half, ids, n: at.segment_attention(x, half, ids, n),
        lambda v, gaps, ids, nodes: at.segment_attention(v, gaps, ids, at.shape(nodes)[0]),
    ],
    "partitions": [
        lambda counts, total: at.partition_ids(counts, total),
        lambda counts, x: at.partition_ids(counts, at.shape(x)[0]),
        lambda x, counts, total: at.partition_sum(x, counts, total),
        lambda gaps, counts, total: at.partition_max(gaps, counts, total),
        lambda whole, counts, total: at.partition_min(whole, counts, total),
        lambda v, counts: at.partition_softmax(v, counts, at.shape(v)[0]),
    ],
    "elementwise": [
        lambda x: at.exp(x),
        lambda whole: at.exp(whole),
        lambda x: at.log(x),
        lambda flags: at.sqrt(flags),
        lambda x: at.rsqrt(x),
        lambda gaps, x: at.maximum(gaps, x),
        lambda gaps, x: at.minimum(x, gaps),
        lambda gaps: at.maximum(gaps, 1.0),
        lambda half: at.minimum(half, 0.5),
        lambda whole: at.maximum(whole, 0.5),
        lambda wide: at.maximum(wide, 2**63),
        lambda flags: at.maximum(flags, False),
        lambda x, n: at.maximum(x, n),
        lambda gaps, scale: at.fill_nan(gaps, scale),
        lambda whole: at.fill_nan(whole),
        lambda gaps: at.is_nan(gaps),
        lambda whole: at.is_inf(whole),
        lambda half: at.is_finite(half),
        lambda gaps, x: at.equal_nan(gaps, x),
        lambda gaps: at.equal_nan(NAN, gaps),
        lambda gaps: at.fill_nan_mask(gaps, 2.0)[0],
        lambda gaps, scale: at.fill_nan_mask(gaps, scale)[1],
        lambda gaps: at.nan_to_num(gaps),
        lambda half, scale: at.nan_to_num(half, nan=scale, posinf=1, neginf=-1.5),
        lambda gaps, n: at.nan_to_num(gaps, nan=n),
        lambda whole: at.nan_to_num(whole),
        lambda flags, v: at.where(flags, v, 0.0),
        lambda flags, x: at.where(at.reshape(flags, (-1, 1)), x, -INF),
        lambda gaps: at.clip(gaps, 0.5, 1.5),
        lambda whole: at.clip(whole, 0, 2.5),
        lambda x: at.clip(x),
    ],
    "reductions": [
        lambda x: at.sum(x),
        lambda gaps: at.sum(gaps, axes=(0, -1), keepdims=True),
        lambda whole: at.sum(whole, 0),
        lambda wide: at.sum(wide),
        lambda flags: at.sum(flags),
        lambda x: at.mean(x, axes=1),
        lambda half: at.mean(half, axes=1),
        lambda x: at.prod(x, axes=(0, 1)),
        lambda gaps: at.max(gaps, axes=-1, keepdims=True),
        lambda gaps: at.min(gaps, axes=1),
        lambda half: at.max(half, axes=[1]),
        lambda whole: at.max(whole, 1),
        lambda x: at.cumsum(x),
        lambda half: at.cumsum(half, axis=-1),
        lambda wide: at.cumsum(wide),
        lambda flags: at.cumsum(flags),
    ],
    "layout": [
        lambda x, index: at.take(x, index),
        lambda x, places: at.take(x, places, axis=-1),
        lambda x, one: at.take(x, one, axis=-1),
        lambda x, index: at.take(x, index, axis=None),
        lambda nodes, runs: at.take(nodes, runs),
        lambda x: at.repeat(x, 2),
        lambda x: at.repeat(x, 2, axis=1),
        lambda v, n: at.repeat(v, 2, total_repeat_length=n + 5),
        lambda counts, total: at.repeat(counts, counts, total_repeat_length=total),
        lambda counts, x: at.repeat(counts, counts, total_repeat_length=at.shape(x)[0] + 2),
        lambda x: at.reshape(x, -1),
        lambda x: at.reshape(x, (at.shape(x)[1], at.shape(x)[0])),
        lambda x, total: at.reshape(x, [total, 1, 3]),
        lambda x, whole: at.concatenate([x, whole], axis=1),
        lambda x, nodes: at.concatenate([x, nodes], axis=None),
        lambda x: at.concatenate([x]),
        lambda x: at.stack([x, x], axis=-1),
        lambda v, wide: at.stack((v, wide)),
        lambda x: at.transpose(x),
        lambda x: at.transpose(at.reshape(x, (-1, 3, 1)), (-1, 0, 1)),
        lambda x: at.split(x, 3, axis=1)[1],
        lambda x: at.split(x, [1, -2])[1],
        lambda x: at.split(x, [2, 1, 99])[2],
        lambda x, nodes: at.split(x, [at.shape(nodes)[0] - 1])[0],
        lambda nodes: at.split(at.reshape(nodes, (-1,)), 2)[1],
        lambda x: at.matmul(x, at.transpose(x)),
        lambda x, v: at.matmul(v, x),
        lambda v: at.matmul(v, v),
        lambda whole: at.matmul(at.transpose(whole), whole),
        lambda wide: at.matmul(wide, wide),
        lambda flags, x: at.matmul(flags, at.cast(x, "bool")),
        lambda half: at.matmul(at.transpose(half), half),
        lambda whole: at.cast(whole, "float64"),
        lambda x: at.astype(x, "int32"),
        lambda whole: at.astype(whole, "bool"),
        lambda x: at.astype(x, "bfloat16"),
    ],
    "constructors": [
        lambda x: at.zeros((at.shape(x)[0], 2), like=x),
        lambda x: at.ones(at.shape(x), like=x),
        lambda x, n: at.full((n, 2), 1.5, like=x),
        lambda x, n: at.full((n,), n, dtype="float32", like=x),
        lambda x, n, scale: at.full((2, n), scale, like=x),
        lambda whole: at.zeros_like(whole, "float32"),
        lambda half: at.ones_like(half),
        lambda x: at.full_like(x, -INF),
        lambda x, n: at.arange(n, like=x),
        lambda x: at.arange(at.shape(x)[0], like=x),
        lambda x, n: at.arange(n, 0, -1, like=x),
        lambda x, n: at.arange(0, n, 0.5, like=x),
        lambda x, n: at.arange(5, n, like=x, dtype="uint8"),
        lambda x, v: at.align_arrays(x, v)[1] + 0,  # what is aligned already stays itself: a variable, too
        lambda x: at.align_arrays(x, None, 2)[2],
    ],
}


def takes(call):
    return tuple(inspect.signature(call).parameters)


def array_names(family):
    """What the calls of a family need: nodes and x always, to read sizes off them."""
    wanted = {"x", "nodes"}.union(*map(takes, CALLS[family]))
    return [name for name in inputs() if name in wanted]


def program(family, n=None, total=None):
    """f(*arrays) -> the results of all calls; sizes that are not given are read off the arrays."""
    names = array_names(family)

    def run(*arrays):
        given = dict(zip(names, arrays, strict=True))
        given["n"] = at.shape(given["nodes"])[0] if n is None else n
        given["total"] = at.shape(given["x"])[0] if total is None else total
        return [call(*[given[name] for name in takes(call)]) for call in CALLS[family]]

    return run


def difference(got, want, tolerance=2e-6):
    """None if two results are the same, NaN and infinities in the same places, else a text."""
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype.name}{got.shape}, expected {want.dtype.name}{want.shape}"
    name = got.dtype.name
    got, want = got.numpy(), want.numpy()
    if got.dtype.kind in "biu":
        return None if np.array_equal(got, want) else f"{got}\nexpected {want}"
    tolerance = {"float16": 2e-3, "bfloat16": 1.6e-2}.get(name, tolerance)
    got, want = got.astype(np.float64), want.astype(np.float64)
    same = np.allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)
    return None if same else f"{got}\nexpected {want}"
