"""One helper, written once, on a real graph: attention in Zachary's karate club, on each framework installed.

In 1972 a quarrel between the instructor (member 1) and the administrator (member 34) split a karate club
of 34. Here each member listens to friends, most to those with many friends; after a few rounds of listening,
which leader is each member closer to? Needs NumPy alone; prints a table, writes karate.svg.
"""

import importlib.util
import math
import os
import shutil
import sys
import timeit
from pathlib import Path

import numpy as np
from karate_picture import write_picture

import anytensor as at

MEMBERS = 34
LEADERS = (0, 33)
SIDE_OF_INSTRUCTOR = {
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    11,
    12,
    13,
    14,
    17,
    18,
    20,
    22,
}  # after the split; Zachary 1977
TOLERANCE = 1e-5


def neighbor_attention(x, sender_score, receiver_score, senders, receivers, num_nodes):
    """Each node's mean of its neighbours' rows of x, weighted by graph attention (Velickovic et al. 2018)."""
    logits = at.take(sender_score, senders) + at.take(receiver_score, receivers)
    logits = at.maximum(logits, 0.2 * logits)  # leaky ReLU
    weights = at.segment_softmax(logits, receivers, num_nodes)
    return at.segment_sum(at.take(x, senders) * weights[:, None], receivers, num_nodes)


def oracle(x, sender_score, receiver_score, senders, receivers, num_nodes):
    """The same by plain loops over Python numbers."""
    logits = [sender_score[s] + receiver_score[r] for s, r in zip(senders, receivers, strict=True)]
    powers = [math.exp(max(z, 0.2 * z)) for z in logits]
    total = [0.0] * num_nodes
    for r, p in zip(receivers, powers, strict=True):
        total[r] += p
    out = [[0.0] * len(x[0]) for _ in range(num_nodes)]
    for s, r, p in zip(senders, receivers, powers, strict=True):
        for column, value in enumerate(x[s]):
            out[r][column] += value * p / total[r]
    return out


def karate_club():
    """Arguments of the helper. An edge goes each way along a friendship; each member hears itself too."""
    pairs = np.loadtxt(
        Path(__file__).parent / "data" / "karate.csv", delimiter=",", skiprows=5, dtype=np.int64
    )
    self_edges = np.stack([np.arange(MEMBERS)] * 2)
    senders, receivers = np.concatenate([pairs.T - 1, pairs.T[::-1] - 1, self_edges], axis=1)
    friends = np.bincount(receivers, minlength=MEMBERS) - 1
    opinion = np.zeros((MEMBERS, 2), np.float32)  # how much of each leader's word has arrived
    opinion[LEADERS, (0, 1)] = 1
    sender_score = np.log(friends).astype(np.float32)
    receiver_score = -np.log(friends.mean() * np.ones(MEMBERS)).astype(np.float32)
    return opinion, sender_score, receiver_score, senders, receivers, MEMBERS


# ---- one entry per framework: NumPy array -> its own, and its compilers by name
def torch_kit():
    import torch

    # Inductor, torch's default, builds C++; without a C++ compiler the graph is still captured and run.
    backend = "inductor" if shutil.which("g++") or shutil.which("clang++") else "aot_eager"
    return torch.as_tensor, {"compiled": lambda f: torch.compile(f, fullgraph=True, backend=backend)}


def jax_kit():
    import jax

    def compiled(f):
        jitted = jax.jit(f, static_argnums=5)
        return lambda *args: jitted(*args).block_until_ready()

    return jax.numpy.asarray, {"compiled": compiled}


def tensorflow_kit():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # its start-up chatter
    import tensorflow

    compilers = {
        "compiled": tensorflow.function,
        "XLA": lambda f: tensorflow.function(f, jit_compile=True),
    }
    return tensorflow.convert_to_tensor, compilers


KITS = {
    "numpy": lambda: (np.asarray, {}),
    "torch": torch_kit,
    "jax": jax_kit,
    "tensorflow": tensorflow_kit,
}


def measure(function, arguments, expected):
    """(type of the result, largest difference, seconds per call)"""
    result = function(*arguments)
    difference = float(np.abs(np.asarray(result, np.float64) - expected).max())
    timer = timeit.Timer(lambda: function(*arguments))
    repeat = max(1, int(0.05 / max(timer.timeit(3) / 3, 1e-7)))
    kind = type(result)
    name = f"{kind.__module__.split('.')[0]}.{kind.__name__}"
    return name, difference, min(timer.repeat(3, repeat)) / repeat


def rows(name, club, expected):
    """Table rows (mode, result type, difference, time)."""
    convert, compilers = KITS[name]()
    arguments = [convert(a) if isinstance(a, np.ndarray) else a for a in club]
    yield "eager", *measure(neighbor_attention, arguments, expected)
    for mode, compiler in compilers.items():
        yield mode, *measure(compiler(neighbor_attention), arguments, expected)


def print_table(club):
    """True if every framework found agrees with the oracle."""
    expected = np.array(oracle(*[a.tolist() if isinstance(a, np.ndarray) else a for a in club]))
    found = [name for name in KITS if importlib.util.find_spec(name)]
    good = True
    print(f"{'framework':<12}{'mode':<10}{'result':<26}{'off the loops by':>17}{'time per call':>15}")
    for name in found:
        for mode, kind, difference, seconds in rows(name, club, expected):
            wrong = not difference <= TOLERANCE  # a NaN is not
            good = good and not wrong
            line = f"{name:<12}{mode:<10}{kind:<26}{difference:>17.1e}{seconds * 1e6:>12.1f} us"
            print(line + "  WRONG" * wrong, flush=True)
    missing = [name for name in KITS if name not in found]
    if missing:
        print(f"Not installed here: {', '.join(missing)}. Add them with: make demo BACKENDS=all")
    return good


def opinions(club, rounds=3):
    """Repeats the helper; the leaders do not listen."""
    x, *rest = club
    for _ in range(rounds):
        x = neighbor_attention(x, *rest)
        x[LEADERS, :] = club[0][LEADERS, :]
    return x


def main():
    club = karate_club()
    _, _, _, senders, receivers, n = club
    friendships = (len(senders) - n) // 2
    print(
        f"Zachary's karate club: {n} members, {friendships} friendships; one helper, {len(senders)} edges\n"
    )
    good = print_table(club)

    instructor = np.array([member + 1 in SIDE_OF_INSTRUCTOR for member in range(n)])
    x = opinions(club)
    right = int(((x[:, 0] > x[:, 1]) == instructor).sum())
    print(f"\nAfter three rounds of listening {right} of {n} members lean to the side that they really took.")

    logits = club[1][senders] + club[2][receivers]
    weights = at.segment_softmax(at.maximum(logits, 0.2 * logits), receivers, n)
    path = write_picture("karate.svg", n, senders, receivers, weights, instructor)
    print(f"Picture: {path}\n  open it in a browser: xdg-open {path} (Linux), open {path} (macOS)")
    if not good:
        print(f"FAIL: a result is more than {TOLERANCE} off the plain loops")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
