"""One list of calls for every mode of JAX: a function of named inputs each, and the inputs by size.

A call names its inputs by its parameters. n and total are sizes, given as numbers or read off an input by
at.shape. Inputs are NumPy's; a mode hands them on as it likes.
"""

import inspect
from typing import NamedTuple

import ml_dtypes
import numpy as np

import anytensor as at

inf, nan = float("inf"), float("nan")
STEEP = np.float32(1.25)


def inputs(rows=6, nodes=4):
    """Arrays by name. Ids also point outside, one segment stays empty; counts add up to rows; x is positive."""
    assert rows >= nodes >= 3
    place = np.arange(rows)
    x = (0.125 + ((np.arange(rows * 2) * 29) % 53) / 16).astype(np.float32).reshape(rows, 2)
    gaps = x.copy()
    gaps[0, 0], gaps[1, 1], gaps[-1, 0] = nan, inf, -inf
    ids = (place % (nodes - 1)).astype(np.int32)
    ids[1], ids[2], ids[-1] = -1, nodes, 2**31 - 1
    counts = np.zeros(nodes, np.int32)
    counts[0], counts[-1] = 2, rows - 2
    return {
        "x": x,
        "v": np.ascontiguousarray(x[:, 1]),
        "half": x.astype(np.float16),
        "brain": x[:, :1].astype(ml_dtypes.bfloat16),
        "gaps": gaps,
        "whole": ((place * 5) % 9 - 3).astype(np.int32),
        "small": ((place * 3) % 7).astype(np.uint8),
        "flags": place % 3 != 1,
        "nodes": np.arange(nodes * 2, dtype=np.float32).reshape(nodes, 2) / 4,
        "ids": ids,
        "runs": (place * nodes // rows).astype(np.uint8),
        "counts": counts,
        "index": np.where(place % 2 == 0, place, place - rows).astype(np.int16),
        "square": np.array([[1, -1], [0, -2]], np.int32),
        "last": np.array(-1, np.int8),
        "scale": np.array(1.75, np.float32),
    }


class Call(NamedTuple):
    name: str
    fn: object
    takes: tuple


def _family(family, *fns):
    return tuple(
        Call(f"{family}-{k}", fn, tuple(inspect.signature(fn).parameters)) for k, fn in enumerate(fns)
    )


SEGMENT_CALLS = {
    "sum": _family(
        "sum",
        lambda x, ids, n: at.segment_sum(x, ids, n),
        lambda v, runs, n: at.segment_sum(v, segment_ids=runs, num_segments=n, sorted=True),
        lambda gaps, ids, nodes: at.segment_sum(gaps, ids, at.shape(nodes)[0]),
        lambda small, ids, n: at.segment_sum(small, ids, n),
        lambda flags, ids, n: at.segment_sum(flags, ids, n),
        lambda half, ids, n: at.segment_sum(half, ids, n),
        lambda x, ids, n: at.segment_sum(at.reshape(x, (at.shape(x)[0], 1, 2)), ids, n + 1),
        lambda ids, n: at.segment_count(ids, n),
        lambda runs, nodes: at.segment_count(runs, at.shape(nodes)[0], sorted=True),
    ),
    "extremes": _family(
        "extremes",
        lambda x, ids, n: at.segment_max(x, ids, n),
        lambda gaps, ids, n: at.segment_max(gaps, ids, num_segments=n),
        lambda whole, runs, n: at.segment_max(whole, runs, n, True),
        lambda flags, ids, n: at.segment_max(flags, ids, n),
        lambda x, ids, n: at.segment_min(x, ids, n),
        lambda gaps, runs, n: at.segment_min(gaps, runs, n),
        lambda small, ids, n: at.segment_min(small, ids, n),
        lambda brain, ids, n: at.segment_min(brain, ids, n),
        lambda x, ids, n: at.segment_max_or_constant(x, ids, n),
        lambda gaps, ids, n: at.segment_max_or_constant(gaps, ids, n, constant=-2.5),
        lambda whole, ids, n: at.segment_min_or_constant(whole, ids, n, 9),
        lambda v, ids, n, scale: at.segment_min_or_constant(v, ids, n, constant=scale),
    ),
    "means": _family(
        "means",
        lambda x, ids, n: at.segment_mean(x, ids, n),
        lambda gaps, ids, n: at.segment_mean(gaps, ids, n),
        lambda whole, runs, n: at.segment_mean(whole, runs, n),
        lambda half, ids, n: at.segment_mean(half, ids, n),
        lambda x, ids, n: at.segment_variance(x, ids, n),
        lambda brain, runs, n: at.segment_variance(brain, runs, n),
        lambda small, ids, n: at.segment_variance(small, ids, n),
        lambda x, ids, n: at.segment_normalize(x, ids, n),
        lambda whole, ids, n: at.segment_normalize(whole, ids, n),
        lambda x, ids, n: at.segment_softmax(x, ids, n),
        lambda gaps, ids, n: at.segment_softmax(logits=gaps, segment_ids=ids, num_segments=n),
        lambda half, runs, nodes: at.segment_softmax(half, runs, at.shape(nodes)[0]),
    ),
    "more": _family(
        "more",
        lambda x, ids, n: at.segment_prod(x, ids, n),
        lambda gaps, ids, n: at.segment_prod(gaps, ids, n),
        lambda small, ids, nodes: at.segment_prod(small, ids, at.shape(nodes)[0]),
        lambda flags, ids, n: at.segment_prod(flags, ids, n),
        lambda brain, ids, n: at.segment_prod(brain, ids, n),
        lambda gaps, ids, n: at.segment_any(gaps, ids, n),
        lambda whole, ids, n: at.segment_all(whole, ids, n),
        lambda x, ids, n: at.segment_std(x, ids, n),
        lambda half, runs, n: at.segment_std(half, runs, n),
        lambda gaps, ids, n: at.segment_argmax(gaps, ids, n),
        lambda whole, ids, nodes: at.segment_argmin(whole, ids, at.shape(nodes)[0]),
        lambda flags, ids, n: at.segment_argmax(flags, ids, n),
        lambda x, ids, n: at.segment_logsumexp(x, ids, n),
        lambda gaps, ids, n: at.segment_logsumexp(logits=gaps, segment_ids=ids, num_segments=n),
        lambda v, x, ids, n: at.segment_attention(v, x, ids, n),
        lambda x, half, ids, n: at.segment_attention(x, half, ids, n),
        lambda x, ids, nodes: at.segment_attention(
            x, at.reshape(x, (at.shape(x)[0], 2, 1)), ids, at.shape(nodes)[0]
        ),
    ),
    "partition": _family(
        "partition",
        lambda counts, total: at.partition_ids(counts, total),
        lambda counts, x: at.partition_ids(counts, at.shape(x)[0] + 2),
        lambda x, counts, total: at.partition_sum(x, counts, total),
        lambda v, counts: at.partition_min(v, counts, at.shape(v)[0]),
        lambda whole, counts, total: at.partition_max(whole, partitions=counts, total_length=total),
        lambda gaps, counts, total: at.partition_max(gaps, counts, total),
        lambda x, counts, total: at.partition_softmax(x, counts, total),
        lambda counts, total: at.repeat(counts, counts, total_repeat_length=total),
        lambda x, n: at.repeat(x, 2, total_repeat_length=n + 7),
        lambda nodes, counts, total: at.take(nodes, at.partition_ids(counts, total)),
    ),
}

PLAIN_CALLS = {
    "elementwise": _family(
        "elementwise",
        lambda x: at.exp(x),
        lambda small: at.exp(small),
        lambda x: at.log(x),
        lambda x: at.sqrt(x),
        lambda flags: at.rsqrt(flags),
        lambda half: at.rsqrt(half),
        lambda x, v: at.maximum(x, at.reshape(v, (-1, 1))),
        lambda gaps: at.maximum(gaps, 1.0),
        lambda whole: at.minimum(0.5, whole),
        lambda x, whole: at.minimum(x, at.reshape(whole, (-1, 1))),
        lambda x, n: at.maximum(x, n),
        lambda v: at.maximum(v, STEEP),
        lambda gaps: at.fill_nan(gaps),
        lambda gaps, scale: at.fill_nan(gaps, value=scale),
        lambda whole: at.fill_nan(whole, 3),
        lambda gaps: at.is_nan(gaps),
        lambda small: at.is_inf(small),
        lambda half: at.is_finite(half),
        lambda gaps, x: at.equal_nan(gaps, x),
        lambda gaps: at.equal_nan(nan, gaps),
        lambda gaps, scale: at.fill_nan_mask(gaps, scale)[0],
        lambda gaps: at.fill_nan_mask(gaps)[1],
        lambda gaps: at.nan_to_num(gaps),
        lambda half, scale: at.nan_to_num(half, nan=scale, posinf=1, neginf=-1.5),
        lambda whole: at.nan_to_num(whole),
        lambda flags, v: at.where(flags, v, -inf),
        lambda flags, x, whole: at.where(at.reshape(flags, (-1, 1)), x, at.reshape(whole, (-1, 1))),
        lambda x: at.clip(x, 0.5, 2.0),
        lambda x, scale: at.clip(x, max=scale),
        lambda whole: at.clip(whole, 0, 2.5),
        lambda x: at.clip(x),
    ),
    "reductions": _family(
        "reductions",
        lambda x: at.sum(x),
        lambda gaps: at.sum(gaps, axes=-1),
        lambda x: at.sum(x, axes=(0, 1), keepdims=True),
        lambda small: at.sum(small, [0]),
        lambda flags: at.sum(flags),
        lambda x: at.mean(x, axes=0, keepdims=True),
        lambda whole: at.mean(whole),
        lambda half: at.mean(half, 1),
        lambda gaps: at.min(gaps, axes=(0,)),
        lambda x: at.max(x, axes=-1, keepdims=True),
        lambda whole: at.max(whole),
        lambda flags: at.max(flags),
        lambda x: at.prod(x, axes=1),
        lambda small: at.prod(small),
        lambda x: at.cumsum(x),
        lambda small: at.cumsum(small, axis=-1),
        lambda v: at.cumsum(v, axis=None),
    ),
    "layout": _family(
        "layout",
        lambda x, index: at.take(x, index),
        lambda x, square: at.take(x, square, axis=-1),
        lambda x, last: at.take(x, last, axis=1),
        lambda whole, index: at.take(whole, indices=index, axis=None),
        lambda nodes, runs: at.take(nodes, runs),
        lambda x: at.repeat(x, 2),
        lambda x: at.repeat(x, 3, axis=1),
        lambda x: at.reshape(x, -1),
        lambda x: at.reshape(x, [2, at.shape(x)[0]]),
        lambda x, total: at.reshape(x, (total, 1, -1)),
        lambda x, whole: at.concatenate([x, at.reshape(whole, (-1, 1))], axis=1),
        lambda x, nodes: at.concatenate((x, nodes, x)),
        lambda x, small: at.concatenate([x, small], axis=None),
        lambda x: at.astype(x, "int8"),
        lambda small: at.astype(small, np.float16),
        lambda x: at.astype(x, "float32"),
        lambda whole: at.astype(whole, "bool"),
        lambda x, v: at.align_arrays(x, v)[1],
        lambda x: at.align_arrays(x, None, 2)[2],
        lambda x: at.stack([x, x], axis=-1),
        lambda v, whole: at.stack((v, whole)),
        lambda x: at.transpose(x),
        lambda x: at.transpose(at.reshape(x, (-1, 2, 1)), (-1, 0, 1)),
        lambda x: at.split(x, 2, axis=1)[1],
        lambda x: at.split(x, [1, -2])[1],
        lambda x: at.split(x, [2, 1, 99])[2],
        lambda x, nodes: at.split(x, [at.shape(nodes)[0] - 1])[0],
        lambda x: at.split(at.reshape(x, (-1,)), 2)[1],
        lambda x: at.matmul(x, at.transpose(x)),
        lambda x, v: at.matmul(v, x),
        lambda v: at.matmul(v, v),
        lambda small: at.matmul(small, small),
        lambda flags: at.matmul(flags, flags),
        lambda whole: at.cast(whole, "float16"),
    ),
    "construct": _family(
        "construct",
        lambda x: at.zeros((at.shape(x)[0], 2), like=x),
        lambda x, n: at.zeros(n, dtype="int8", like=x),
        lambda whole: at.ones(at.shape(whole), like=whole),
        lambda x, n: at.full((n, 2), 1.5, like=x),
        lambda whole, n: at.full(n, 3, like=whole),
        lambda x, n, scale: at.full((2, n), scale, like=x),
        lambda x: at.zeros_like(x),
        lambda whole: at.ones_like(whole, dtype="float32"),
        lambda flags: at.ones_like(flags),
        lambda x: at.full_like(x, -inf),
        lambda x, scale: at.full_like(x, scale, "int32"),
        lambda x: at.arange(at.shape(x)[0], like=x),
        lambda x, n: at.arange(1, n, like=x),
        lambda x, n: at.arange(np.int8(1), np.int64(5), np.float32(0.5), like=x),
        lambda x, n: at.arange(n, 0, -1, like=x),
        lambda x, n: at.arange(0, n, 0.5, dtype="float32", like=x),
    ),
}

CALLS = {**SEGMENT_CALLS, **PLAIN_CALLS}

# Longer than its counts: NumPy, which reads them, refuses it; JAX fills the tail (SEMANTICS 9).
REFUSED_BY_NUMPY = {"partition-1"}
# A range of an exported length with a fractional step: JAX's own arange refuses it.
REFUSED_BY_EXPORT = {"construct-15"}


def covered():
    """Names of the public functions that the calls use."""
    return {name for calls in CALLS.values() for call in calls for name in call.fn.__code__.co_names}


def one_each(calls):
    """One call of each function, and those that use several."""
    seen, chosen = set(), []
    for call in calls:
        if set(call.fn.__code__.co_names) - seen:
            seen.update(call.fn.__code__.co_names)
            chosen.append(call)
    return tuple(chosen)


def few(calls, every=3):
    return calls[::every]


def names_of(calls):
    """The arrays that some calls need; nodes and x are always among them, since sizes can be read off these."""
    wanted = {"x", "nodes"}.union(*(call.takes for call in calls))
    return tuple(name for name in inputs() if name in wanted)


def program(calls, n=None, total=None):
    """f(*arrays) -> results of all calls; a size that is not given is read off the arrays."""
    names = names_of(calls)

    def run(*arrays):
        given = dict(zip(names, arrays, strict=True))
        given["n"] = at.shape(given["nodes"])[0] if n is None else n
        given["total"] = at.shape(given["x"])[0] if total is None else total
        return [call.fn(*[given[name] for name in call.takes]) for call in calls]

    return run


def arrays_for(calls, rows=6, nodes=4):
    """NumPy arrays for program(calls)."""
    given = inputs(rows, nodes)
    return [given[name] for name in names_of(calls)]


_eager = {}


def eager(calls, rows=6, nodes=4):
    """The results of each call by itself on JAX arrays; computed once."""
    import jax.numpy as jnp

    key = tuple(call.name for call in calls), rows, nodes
    if key not in _eager:
        arrays = [jnp.asarray(x) for x in arrays_for(calls, rows, nodes)]
        _eager[key] = program(calls, nodes, rows)(*arrays)
    return _eager[key]


def on_host(calls, rows=6, nodes=4):
    """The same of NumPy, in the dtypes that JAX has at the moment: nothing to compile."""
    import jax

    with np.errstate(all="ignore"):
        results = [np.asarray(y) for y in program(calls, nodes, rows)(*arrays_for(calls, rows, nodes))]
    return [y.astype(jax.dtypes.canonicalize_dtype(y.dtype)) for y in results]


def check(calls, got, want, where="", ulps=8):
    """Each result against its eager one: type, dtype, shape, values (NaN equals NaN)."""
    import jax

    assert len(got) == len(want) == len(calls)
    for call, g, w in zip(calls, got, want, strict=True):
        label = f"{call.name}{where}"
        assert isinstance(g, jax.Array), label
        assert (g.dtype, g.shape) == (w.dtype, w.shape), label
        exact = not jax.numpy.issubdtype(w.dtype, jax.numpy.floating)
        rtol = 0 if exact else ulps * float(jax.numpy.finfo(w.dtype).eps)
        np.testing.assert_allclose(
            np.asarray(g).astype(np.float64), np.asarray(w).astype(np.float64), rtol, rtol, err_msg=label
        )
