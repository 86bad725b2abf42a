"""One process, one framework: times calls on large arrays for large.py and prints them as one line of JSON.

    python bench/large_calls.py FRAMEWORK figures ROUNDS
    python bench/large_calls.py FRAMEWORK sizes

figures: {"alignment": of the data, "figures": {figure: {"ours": [ms, ...], other: [ms, ...]}}}, one time per round;
calls take turns. sizes: {"points": [{rows, width, order, ours, raw, name}]}, ms, the best of a few calls.
"""

import json
import sys
import time

import numpy as np

import anytensor as at

ROWS, WIDTH, SEGMENTS = 1_000_000, 32, 100_000
LOGITS, GROUPS = 4_000_000, 200_000
LARGEST = 200_000_000  # elements of x that a plot goes to
LONGEST = 3.0  # seconds of a call after which larger sizes are left out
ORDERS = ("random", "sorted", "reversed", "giant")


class Framework:
    """How a framework takes arrays, waits for a result, and what it calls a segment sum itself."""

    def __init__(self, name):
        self.name = name
        self.convert, self.wait = np.asarray, lambda y: y
        getattr(self, name)()

    def numpy(self):
        def added(x, ids, n):
            out = np.zeros((n, *x.shape[1:]), x.dtype)
            np.add.at(out, ids, x)
            return out

        def greatest(x, ids, n):
            out = np.full((n, *x.shape[1:]), -np.inf, x.dtype)
            np.maximum.at(out, ids, x)
            return out

        self.sum, self.max = ("np.add.at", added), ("np.maximum.at", greatest)
        self.read = ("x.sum()", lambda x, ids, n: x.sum())
        self.softmax = None

    def torch(self):
        import torch

        self.module, self.convert = torch, torch.from_numpy
        self.sum = ("index_add_", lambda x, ids, n: x.new_zeros((n, *x.shape[1:])).index_add_(0, ids, x))

        def greatest(x, ids, n):
            index = ids.reshape(-1, *(1,) * (x.ndim - 1)).expand_as(x)
            return x.new_full((n, *x.shape[1:]), -np.inf).scatter_reduce_(0, index, x, "amax")

        self.max, self.read = ("scatter_reduce_ amax", greatest), None
        try:
            from torch_geometric.utils import softmax
        except ImportError:
            self.softmax = None
        else:
            self.softmax = ("PyG's softmax", lambda x, ids, n: softmax(x, ids, num_nodes=n))

    def tensorflow(self):
        import tensorflow as tf

        self.convert, self.read = tf.constant, None
        segment_sum, segment_max = tf.math.unsorted_segment_sum, tf.math.unsorted_segment_max
        self.sum = ("tf.math.unsorted_segment_sum", segment_sum)
        self.max = ("tf.math.unsorted_segment_max", segment_max)

        def composed(x, ids, n):
            e = tf.exp(x - tf.gather(segment_max(x, ids, n), ids))
            return e / tf.gather(segment_sum(e, ids, n), ids)

        self.softmax = ("its own composition", composed)

    def jax(self):
        import jax

        self.convert, self.wait, self.read = jax.numpy.asarray, lambda y: y.block_until_ready(), None
        self.sum = ("jax.ops.segment_sum", jax.ops.segment_sum)
        self.max = ("jax.ops.segment_max", jax.ops.segment_max)
        self.softmax = None


def ids_of(order, rows, segments):
    ids = np.random.default_rng(0).integers(0, segments, rows)
    if order == "giant":
        return np.zeros_like(ids)
    return {"random": ids, "sorted": np.sort(ids), "reversed": np.sort(ids)[::-1].copy()}[order]


def once(fw, call, *args):
    start = time.perf_counter()
    y = fw.wait(call(*args))
    del y  # giving memory back is part of a call
    return 1e3 * (time.perf_counter() - start)


def turns(fw, calls, args, rounds, repeat=1):
    """{name: [ms per round]}; the first round is not counted."""
    times = {name: [] for name, _ in calls}
    for turn in range(rounds + 1):
        for name, call in calls if turn % 2 else calls[::-1]:
            found = [once(fw, call, *args) for _ in range(repeat)]
            if turn:
                times[name].append(sum(found) / repeat)
    return times


def with_gradient(fw, call):
    def run(x, ids, n):
        x = x.detach().requires_grad_()
        call(x, ids, n).backward(fw.direction)
        return x.grad

    return run


def figures(fw, rounds):
    rng = np.random.default_rng(0)
    host = rng.standard_normal((ROWS, WIDTH), np.float32)
    x, ids = fw.convert(host), fw.convert(ids_of("random", ROWS, SEGMENTS))
    more = [fw.read] if fw.read else []
    found = {
        "segment_sum": turns(fw, [("ours", at.segment_sum), fw.sum, *more], (x, ids, SEGMENTS), rounds),
        "segment_max": turns(fw, [("ours", at.segment_max), fw.max, *more], (x, ids, SEGMENTS), rounds),
    }
    few = (fw.convert(host[:16]), fw.convert(np.arange(16) % 4), 4)
    found["segment_sum of 16 rows"] = turns(fw, [("ours", at.segment_sum), fw.sum], few, rounds, repeat=300)
    logits, groups = rng.standard_normal(LOGITS, np.float32), fw.convert(ids_of("random", LOGITS, GROUPS))
    args = (fw.convert(logits), groups, GROUPS)
    theirs = [fw.softmax] if fw.softmax else []
    found["segment_softmax"] = turns(fw, [("ours", at.segment_softmax), *theirs], args, rounds)
    if fw.name == "torch":
        fw.direction = fw.convert(rng.standard_normal(LOGITS, np.float32))
        both = [(name, with_gradient(fw, call)) for name, call in [("ours", at.segment_softmax), *theirs]]
        found["segment_softmax, forward and backward"] = turns(fw, both, args, rounds)
    address = host.ctypes.data
    return {"figures": found, "alignment": f"{min(address & -address, 4096)} (of the NumPy array)"}


def sizes(fw):
    points, slow = [], set()
    for width in (1, 8, 32, 128):
        for order in ORDERS:
            for rows in (10**k for k in range(2, 8)):
                if rows * width <= LARGEST:
                    points.append(point(fw, rows, width, order, slow))
    return {"points": points}


def point(fw, rows, width, order, slow):
    shape = (rows, width) if width > 1 else (rows,)
    x = fw.convert(np.random.default_rng(1).standard_normal(shape, np.float32))
    segments = max(rows // 10, 1)
    ids = fw.convert(ids_of(order, rows, segments))
    found = {"rows": rows, "width": width, "order": order, "name": fw.sum[0]}
    for key, call in (("ours", at.segment_sum), ("raw", fw.sum[1])):
        if (key, width, order) in slow:
            continue
        best = min(once(fw, call, x, ids, segments) for _ in range(3 if rows > 10**5 else 20))
        found[key] = best
        if best > 1e3 * LONGEST / 10:
            slow.add((key, width, order))
    return found


def main(framework, what, rounds=9):
    fw = Framework(framework)
    print(json.dumps(figures(fw, int(rounds)) if what == "figures" else sizes(fw)))


if __name__ == "__main__":
    main(*sys.argv[1:])
