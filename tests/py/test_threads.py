"""Threads: calls at the same time give right values, kernels let other threads run, first calls race with imports.

Accuses src/python/registry.c (waking adapters, the cache of types), calls.c, and the adapters' shared state.
Nothing here is measured by the clock, so a loaded machine changes nothing.
"""

import os
import pathlib
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from frameworks import FOUND, ROWS

import anytensor as at

THREADS = 8


def together(work, count=THREADS):
    """Runs work(k) in threads that start at the same moment; the first exception is raised here."""
    barrier, errors = threading.Barrier(count), []

    def run(k):
        try:
            barrier.wait(120)
            work(k)
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]


def calls_of_size(fw, size):
    """Calls of one size with all kinds of functions: (name, call)."""
    rng = np.random.default_rng(size)
    x, y = rng.normal(size=(size, 3)), rng.normal(size=3)
    ids, counts = rng.integers(-1, 5, size), np.array([size - size // 2, 0, size // 2])
    X, Y, I, C = (  # noqa: E741
        fw.array(x, "float32"),
        fw.array(y, "float32"),
        fw.array(ids, "int32"),
        fw.array(counts, "int32"),
    )
    host = np.ascontiguousarray(x, np.float32)
    return [
        ("maximum", lambda: at.maximum(X, Y)),
        ("where", lambda: at.where(at.maximum(X, 0.0), host, X)),
        ("sum", lambda: at.sum(X, (0, 1), keepdims=True)),
        ("take", lambda: at.take(X, -1)),
        ("concatenate", lambda: at.concatenate([X, host])),
        ("full", lambda: at.full((size,), 2.5, like=X)),
        ("segment_sum", lambda: at.segment_sum(X, I, 4)),
        ("segment_softmax", lambda: at.segment_softmax(X, I, 4)),
        ("segment_variance", lambda: at.segment_variance(X, I, 4)),
        ("segment_max_or_constant", lambda: at.segment_max_or_constant(X, I, 6, -1.0)),
        ("segment_mean of NumPy", lambda: at.segment_mean(host, I, 4)),
        ("partition_ids", lambda: at.partition_ids(C, size)),
        ("partition_softmax", lambda: at.partition_softmax(X, C, size)),
    ]


def test_calls_at_the_same_time_give_right_values(fw):
    """Each thread makes the calls of three sizes, in an order of its own, some that fail among them."""
    made = [(size, name, call) for size in (2, 7, 40) for name, call in calls_of_size(fw, size)]
    want = {(size, name): fw.numpy(call()) for size, name, call in made}
    ids, x = fw.array([0, 1], "int32"), fw.array([1.0, 2.0, 3.0], "float32")
    rounds = 5 if fw.compiles else 10

    def work(k):
        order = np.random.default_rng(k)
        for _ in range(rounds):
            for at_place in order.permutation(len(made)):
                size, name, call = made[at_place]
                got = fw.numpy(call())
                assert got.dtype == want[size, name].dtype and np.array_equal(
                    got, want[size, name], equal_nan=True
                ), f"{name} of {size} rows in thread {k}"
            with pytest.raises(ValueError, match=r"segment_sum.*\(3,\)"):
                at.segment_sum(x, ids, 2)

    together(work)


def test_threads_that_make_the_same_first_call_of_a_size_agree(fw):
    """On frameworks that compile, eight threads compile the same function at the same moment."""
    for size in (11, 12) if fw.compiles else (11, 12, 13, 14, 15, 16):
        results = {}

        def work(k, size=size, results=results):
            results[k] = [fw.numpy(call()) for _, call in calls_of_size(fw, size)]

        together(work)
        for k in range(1, THREADS):
            assert all(
                np.array_equal(a, b, equal_nan=True) for a, b in zip(results[0], results[k], strict=True)
            )


# --- kernels and the GIL ----------------------------------------------------------------------------------


def progress_during(call):
    """How often another thread gets a turn while `call` runs. The interpreter alone would give it none: a switch
    is asked for after an hour."""
    turns, stop, started = 0, threading.Event(), threading.Event()

    def count():
        nonlocal turns
        started.set()
        while not stop.is_set():
            turns += 1
            time.sleep(0)  # gives the GIL back at once, and asks for it anew

    thread = threading.Thread(target=count)
    before = sys.getswitchinterval()
    sys.setswitchinterval(3600)
    try:
        thread.start()
        started.wait(60)
        first = turns
        call()
        last = turns
    finally:
        stop.set()
        thread.join(60)
        sys.setswitchinterval(before)
    return last - first


@pytest.mark.slow
@pytest.mark.parametrize(
    "op", ["segment_sum", "segment_max", "segment_softmax", "exp", "take", "cumsum", "maximum"]
)
def test_long_kernels_on_numpy_let_other_threads_run(op):
    n = 2**22
    x = np.random.default_rng(0).normal(size=n)
    ids = np.arange(n) % 1000
    calls = {
        "maximum": lambda: at.maximum(x, 2.0),
        "exp": lambda: at.exp(x),
        "cumsum": lambda: at.cumsum(x),
        "take": lambda: at.take(x, ids),
    }
    call = calls.get(op, lambda: getattr(at, op)(x, ids, 1000))
    call()
    seen = max(progress_during(call) for _ in range(5))
    assert seen > 10, f"another thread had {seen} turns while {op} ran"


# --- the first call ---------------------------------------------------------------------------------------

MAKE = {
    "numpy": "import numpy as np\nx, ids = np.ones((4, 2), 'float32'), np.array([0, 1, 1, 9])",
    "native": "import numpy as np\nfrom anytensor import native\nx = native.from_dlpack(np.ones((4, 2), 'float32'))"
    "\nids = native.from_dlpack(np.array([0, 1, 1, 9]))",
    "torch": "import torch\nx, ids = torch.ones(4, 2), torch.tensor([0, 1, 1, 9])",
    "jax": "import jax.numpy as jnp\nx, ids = jnp.ones((4, 2)), jnp.array([0, 1, 1, 9])",
    "tensorflow": "import tensorflow as tf\nx, ids = tf.ones((4, 2)), tf.constant([0, 1, 1, 9])",
    "array_api_strict": "import array_api_strict as xp\nx, ids = xp.ones((4, 2)), xp.asarray([0, 1, 1, 9])",
}
RACE = """
import faulthandler, importlib, sys, threading
faulthandler.dump_traceback_later(240, exit=True)
sys.setswitchinterval(1e-5)
{make}
import anytensor as at
second = {second!r}
barrier, wrong = threading.Barrier(9), []

def work(k):
    barrier.wait()
    try:
        got = [at.segment_sum, at.segment_softmax, at.segment_max, at.segment_mean][k % 4](x, ids, 3)
        rows = 4 if k % 4 == 1 else 3
        assert tuple(at.shape(got)) == (rows, 2), at.shape(got)
        assert type(got) is type(x), type(got)
        assert float(at.sum(got)) == {{0: 6.0, 1: 4.0, 3: 4.0}}.get(k % 4, float(at.sum(got)))
    except BaseException as error:
        wrong.append(repr(error))

def load():
    barrier.wait()
    try:
        if second:
            importlib.import_module(second)
    except BaseException as error:
        wrong.append(repr(error))

threads = [threading.Thread(target=work, args=(k,)) for k in range(8)] + [threading.Thread(target=load)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not wrong, wrong
if second:  # the one that came in the middle works too
{other}
    got = at.segment_sum(x, ids, 3)
    assert type(got) is type(x) and float(at.sum(got)) == 6.0
print("done")
"""
SECOND = {"numpy": "torch", "torch": "array_api_strict", "jax": "torch", "array_api_strict": "torch"}


def second_of(name):
    """The framework that is imported meanwhile; none where there is no other."""
    choice = SECOND.get(name, "array_api_strict")
    return choice if choice in FOUND else None


def python(program):
    package = str(pathlib.Path(at.__file__).resolve().parent.parent)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program],
        capture_output=True,
        text=True,
        env=env,
        timeout=300,
    )
    assert done.returncode == 0 and done.stdout.endswith("done\n"), (
        f"{done.returncode}\n{done.stderr[-3000:]}"
    )


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(3))
@pytest.mark.parametrize("name", [name for name in FOUND if name != "jax32"])
def test_eight_threads_make_the_first_call_while_another_framework_is_imported(name, turn):
    second = second_of(name)
    other = textwrap.indent(MAKE.get(second, ""), "    ")
    python(RACE.format(make=MAKE[name], second=second, other=other or "    pass"))


TYPES = """
import faulthandler, gc, sys, threading
faulthandler.dump_traceback_later(240, exit=True)
sys.setswitchinterval(1e-5)
import numpy as np
{make}
import anytensor as at
stop, wrong = threading.Event(), []

def types(base):
    for k in range(400):
        made = type(f"T{{k}}", (base,), {{}})
        value = np.zeros(2).view(made) if base is np.ndarray else made()
        try:
            got = at.maximum(value, 1.0)
            if base is object:
                wrong.append("an object is no array")
            elif got.tolist() not in ([1.0, 1.0], 1.0):
                wrong.append(repr(got))
        except TypeError:
            if base is not object:
                raise
        del made, value
        got = None
        if k % 20 == 0:
            gc.collect()

def calls():
    want = None
    while not stop.is_set():
        got = at.segment_sum(x, ids, 3)
        if type(got) is not type(x) or float(at.sum(got)) != 6.0:
            wrong.append(repr(got))
            return

def guarded(work, *args):
    try:
        work(*args)
    except BaseException as error:
        wrong.append(repr(error))

makers = [threading.Thread(target=guarded, args=(types, base)) for base in (np.ndarray, float, object, np.ndarray)]
callers = [threading.Thread(target=guarded, args=(calls,)) for _ in range(4)]
for thread in makers + callers: thread.start()
for thread in makers: thread.join()
stop.set()
for thread in callers: thread.join()
assert not wrong, wrong[:3]
print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FOUND if name != "jax32"])
def test_types_that_come_and_go_in_threads_never_get_a_wrong_backend(name):
    python(TYPES.format(make=MAKE[name]))


def test_every_framework_races():
    assert {row.name for row in ROWS.values()} == set(MAKE)
