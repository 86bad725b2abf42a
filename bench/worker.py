"""One process, one framework, one anytensor: measures what run.py asks for, line by line, as JSON.

Started by run.py, with the framework's name, under the Python that has the anytensor to measure. Reads keys of
FIGURES from stdin, answers {"loops": [[seconds per call, the same of the raw call], ...], "result": nested
lists} or {"error": text}.
"""

import importlib
import itertools
import json
import sys
import time
import timeit

import numpy as np
from figures import FIGURES

LOOP = 0.001  # seconds a timed loop lasts about: short, so that a pair of loops meets the same conditions
LOOPS, LEAST_LOOPS, LONGEST = 25, 5, 0.5  # loops of each timer in one turn, and seconds for all of them


def arrays(framework):
    """The names that calls may use: 16 edges or elements, 4 nodes."""
    rng = np.random.default_rng(0)
    host = {
        "x": rng.normal(size=16).astype(np.float32),
        "y": rng.uniform(0.5, 2.0, size=16).astype(np.float32),
        "xx": rng.normal(size=(16, 2)).astype(np.float32),
        "ids": np.array([0, 2, 1, 0, 3, 3, 2, 0, 1, 1, 0, 2, 3, 0, 2, 1]),
        "counts": np.array([5, 0, 8, 3]),
        "mask": rng.normal(size=16) > 0,
    }
    more = {"float64": np.dtype(np.float64), "inf": float("inf")}
    convert = np.asarray
    if framework == "torch":
        import torch

        convert, more["float64"] = torch.from_numpy, torch.float64
    if framework == "jax":
        import jax

        convert = jax.numpy.asarray
    if framework == "tensorflow":
        import tensorflow

        convert, more["float64"] = tensorflow.constant, tensorflow.float64
    # values that no call has seen before: an eager framework may remember those that it has
    many = [convert(rng.normal(size=16).astype(np.float32)) for _ in range(64)]
    return {name: convert(a) for name, a in host.items()} | more | {"fresh": itertools.cycle(many)}


def function(path):
    """The object at a dotted path: a module, then attributes."""
    module, *rest = path.split(".")
    found = importlib.import_module(module)
    for name in rest:
        found = getattr(found, name)
    return found


def timer(path, call, names):
    """A loop over the call with function and arrays in local variables."""
    locals_ = {"f": function(path)} | names
    setup = "; ".join(f"{name} = _names[{name!r}]" for name in locals_)
    return timeit.Timer(call, setup, globals={"_names": locals_})


def calls_per_loop(timer):
    timer.timeit(3)  # what the first call sets up is not counted
    number = 1
    while number < 20_000 and (elapsed := timer.timeit(number)) < LOOP / 2:
        number = min(20_000, max(2 * number, int(number * LOOP / elapsed)))
    return number


def loops(timers):
    """Seconds per call of each timer, loop by loop. They take turns, the first one changing, on equal terms."""
    numbers = [calls_per_loop(t) for t in timers]
    turns = list(zip(range(len(timers)), timers, numbers, strict=True))
    found, deadline = [], time.perf_counter() + LONGEST
    while len(found) < LEAST_LOOPS or (len(found) < LOOPS and time.perf_counter() < deadline):
        seconds = {i: t.timeit(n) / n for i, t, n in turns}
        found.append([seconds[i] for i in range(len(timers))])
        turns.reverse()
    return found


def measure(figure, names):
    ours = timer(figure.function, figure.call, names)
    result = eval(figure.call, {"f": function(figure.function)} | names)
    timers = [ours] + ([timer(figure.raw, figure.raw_call, names)] if figure.raw else [])
    return {"loops": loops(timers), "result": np.asarray(result).tolist()}


def main(framework):
    names = arrays(framework)
    for line in sys.stdin:
        try:
            answer = measure(FIGURES[line.strip()], names)
        except Exception as e:
            answer = {"error": f"{type(e).__name__}: {e}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
