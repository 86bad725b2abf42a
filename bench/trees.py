"""anytensor.tree beside jax.tree and optree: nests of 200 branches, all three in one run, one after the other in each
round. Prints the time of the fastest round and the ratio to the faster of the other two; below 1 is faster.

    python bench/trees.py
"""

import time
from collections import namedtuple

import jax
import numpy as np
import optree

from anytensor import tree

Layer = namedtuple("Layer", "w b")
ROUNDS, CALLS = 60, 20


def nests():
    array = np.zeros(2)
    return {
        "dicts": {f"layer{i}": {"weight": array, "bias": array} for i in range(200)},
        "lists": [[array, array] for _ in range(200)],
        "tuples": tuple((i, 2.0) for i in range(200)),
        "namedtuples": {f"layer{i}": Layer(array, array) for i in range(200)},
        "mixed": {f"layer{i}": {"w": i, "b": (i, [i, None])} for i in range(200)},
        "unsorted": {f"layer{i}": {"w": i, "b": i} for i in reversed(range(200))},
        "chain": deep(200),
    }


def deep(levels):
    nest = 1.0
    for _ in range(levels):
        nest = [nest, 2.0]
    return nest


def same(x):
    return x


def calls(nest):
    """By function: one call per library."""
    ours, theirs, others = (
        tree.structure(nest),
        jax.tree.structure(nest),
        optree.tree_structure(nest),
    )
    leaves = tree.leaves(nest)
    return {
        "flatten": (
            lambda: tree.flatten(nest),
            lambda: jax.tree.flatten(nest),
            lambda: optree.tree_flatten(nest),
        ),
        "leaves": (
            lambda: tree.leaves(nest),
            lambda: jax.tree.leaves(nest),
            lambda: optree.tree_leaves(nest),
        ),
        "unflatten": (
            lambda: tree.unflatten(ours, leaves),
            lambda: jax.tree.unflatten(theirs, leaves),
            lambda: optree.tree_unflatten(others, leaves),
        ),
        "map": (
            lambda: tree.map(same, nest),
            lambda: jax.tree.map(same, nest),
            lambda: optree.tree_map(same, nest),
        ),
        "map of two": (
            lambda: tree.map(second, nest, nest),
            lambda: jax.tree.map(second, nest, nest),
            lambda: optree.tree_map(second, nest, nest),
        ),
        "with path": (
            lambda: tree.leaves_with_path(nest),
            lambda: jax.tree.leaves_with_path(nest),
            lambda: optree.tree_flatten_with_path(nest),
        ),
    }


def second(x, y):
    return y


def fastest(functions):
    """Microseconds a call of each function, in the round that was fastest for it."""
    best = [float("inf")] * len(functions)
    for _ in range(ROUNDS):
        for k, function in enumerate(functions):
            start = time.perf_counter()
            for _ in range(CALLS):
                function()
            best[k] = min(best[k], (time.perf_counter() - start) / CALLS)
    return [1e6 * one for one in best]


def main():
    print(f"{'nest':12} {'call':10} {'us':>7} {'jax.tree':>9} {'optree':>7}  ratio")
    for name, nest in nests().items():
        for call, functions in calls(nest).items():
            ours, theirs, others = fastest(functions)
            ratio = ours / min(theirs, others)
            print(f"{name:12} {call:10} {ours:7.1f} {theirs:9.1f} {others:7.1f}  {ratio:5.2f}")


if __name__ == "__main__":
    main()
