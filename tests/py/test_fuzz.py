"""Bad input and properties, at random but from fixed seeds.

The calls run in a worker, a process of its own that runs one framework and is told by the test which calls to make:
fork would not do, since JAX and TensorFlow have threads. A worker that dies names the call it died in, and another
one goes on behind it. Each call has its own seed, so it can be repeated alone:

    python tests/py/test_fuzz.py torch 1 417

Accuses everything, src/python/args.c first.
"""

import collections
import json
import math
import os
import pathlib
import random
import resource
import select
import subprocess
import sys
import tempfile
import traceback
import warnings

import frameworks
import numpy as np

import anytensor as at
from anytensor import _core

CALLS = 3000  # of a seed; frameworks that compile anew for each shape make fewer
SEEDS = (1, 2)
BATCH = 100
PATIENCE = 300  # seconds for a batch
ROOM = {"numpy": 2**30, "torch": 2**30}  # bytes of addresses that the calls may take more than there are
OTHERS = ("numpy", "torch", "array_api_strict")  # what stands beside the framework now and then
ALLOWED = (TypeError, ValueError, IndexError, OverflowError, NotImplementedError, MemoryError)
OPS = _core.ops


class Odd:
    def __repr__(self):
        return "Odd()"


class Raising:
    """Whatever it is asked, it fails with an exception that a caller may see."""

    def __index__(self):
        raise ValueError("asked for an index")

    def __bool__(self):
        raise ValueError("asked for a truth value")

    def __getattr__(self, name):
        raise ValueError("asked for " + name)


class Fuzz:
    """Random arguments: mostly right for their role, sometimes anything at all."""

    def __init__(self, name, seed):
        self.fw = frameworks.framework(name)
        self.seed = seed
        self.others = [frameworks.framework(one) for one in OTHERS if one != name and one in frameworks.FOUND]
        self.dtypes = [t for t in frameworks.DTYPES if t not in ("bfloat16", *self.fw.lacks)]
        self.integers = [t for t in self.dtypes if t in frameworks.INTEGERS]
        self.sizes = (0, 1, 3) if self.fw.compiles else (0, 1, 2, 3, 5)

    def begin(self, k):
        """Random numbers and odd values of call k."""
        self.random = random.Random(f"{self.seed} {k}")
        self.fixed = self.fixed_values()
        self.bad = self.pick(0.0, 0.0, 0.0, 0.15, 0.5, 1.0)  # how likely an argument is anything

    def pick(self, *choices):
        return self.random.choice(choices)

    def values(self, dtype, shape):
        rng = np.random.default_rng(self.random.randrange(2**32))
        if dtype == "bool":
            return rng.integers(0, 2, shape).astype(bool)
        if dtype.startswith("float"):
            x = rng.normal(0, 3, shape)
            if self.random.random() < 0.2:
                x = np.where(
                    rng.random(shape) < 0.2, rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30], shape), x
                )
            return x
        info = np.iinfo(dtype)
        if self.random.random() < 0.1:
            return rng.choice(np.array([info.min, info.max, 0, 1], dtype), shape)
        return rng.integers(0 if info.min == 0 else -5, 6, shape)

    def array(self, dtype=None, shape=None, where=None):
        fw = where or (self.fw if self.random.random() < 0.85 else frameworks.framework("numpy"))
        dtype = dtype or self.pick(*(t for t in self.dtypes if t not in fw.lacks))
        shape = self.shape() if shape is None else shape
        with np.errstate(all="ignore"):
            x = np.asarray(self.values(dtype, shape)).astype(dtype)
        x = fw.array(x, dtype)
        if fw.name == "numpy" and self.random.random() < 0.2:
            x = self.pick(
                lambda: x[::-1] if x.ndim else x,
                lambda: x.T,
                lambda: x[..., ::2] if x.ndim else x,
                lambda: x.astype(x.dtype.newbyteorder("S")),
            )()
            x.flags.writeable = self.random.random() < 0.5
        return x

    def shape(self):
        return tuple(self.pick(*self.sizes) for _ in range(self.pick(0, 1, 1, 2, 2, 3)))

    def anything(self):
        if self.random.random() < 0.03:
            return [self.anything() for _ in range(self.random.randrange(3))]
        if self.random.random() < 0.1:
            return self.array(where=self.pick(self.fw, *self.others), shape=self.pick((), None))
        return self.pick(*self.fixed)

    def fixed_values(self):
        numbers = [
            0,
            1,
            -1,
            2,
            7,
            2**62,
            2**63,
            -(2**63),
            10**30,
            -(10**400),
            1.5,
            -0.0,
            1e300,
            math.nan,
            math.inf,
            1j,
        ]
        plain = [
            None,
            True,
            False,
            "",
            "float32",
            "int8",
            "x",
            b"x",
            Ellipsis,
            NotImplemented,
            object(),
            Odd(),
            Raising(),
        ]
        holders = [
            [],
            [1, 2],
            (),
            (1, 2),
            (2, -1),
            [None],
            {},
            {1},
            range(3),
            slice(2),
            iter([1]),
            memoryview(b"abc"),
        ]
        types = [
            len,
            int,
            float,
            np.float32,
            np.dtype("int16"),
            self.fw.own_dtype("float32"),
            self.fw.own_dtype("int64"),
        ]
        scalars = [
            np.float16(1.5),
            np.int8(-3),
            np.uint64(2**63),
            np.bool_(True),
            np.complex64(1j),
            np.longdouble(2),
        ]
        odd_scalars = [np.str_("a"), np.datetime64(1, "s"), np.timedelta64(2, "s"), np.void(b"ab")]
        arrays = [
            np.zeros((), "complex64"),
            np.zeros(2, "datetime64[s]"),
            np.array(["a", "b"]),
            np.array([None, 1], object),
        ]
        arrays += [
            np.zeros(2, [("a", "i4")]),
            np.ma.masked_array([1.0, 2.0], [True, False]),
            np.ones((1,) * 20),
        ]
        nested = [[np.ones(2)], (np.ones(2), [1]), np.zeros((0, 3))]
        return numbers + plain + holders + types + scalars + odd_scalars + arrays + nested

    def or_anything(self, value):
        return self.anything() if self.random.random() < self.bad else value

    def axis(self, x):
        rank = len(x.shape)
        return self.pick(0, -1, self.random.randrange(-rank, rank) if rank else 0)

    def ids(self, length, n):
        dtype = self.pick(*self.integers)
        x = np.random.default_rng(self.random.randrange(2**32)).integers(
            -2 if dtype[0] == "i" else 0, n + 3, length
        )
        return (self.fw if self.random.random() < 0.8 else frameworks.framework("numpy")).array(x, dtype)

    def size(self, n):
        return self.pick(n, n, n, np.int64(n), float(n), self.fw.array(n, "int64"), np.array(n, "int32"))

    def call(self, op):
        """(positional, keyword) arguments of a function; every one of them may be anything."""
        a, r = self.or_anything, self.random
        x = self.array(where=self.fw)
        if op in (
            "exp",
            "log",
            "sqrt",
            "rsqrt",
            "is_nan",
            "is_inf",
            "is_finite",
            "shape",
            "zeros_like",
            "ones_like",
        ):
            return [a(x)], {}
        if op in ("maximum", "minimum", "equal_nan"):
            y = self.pick(
                2.0,
                1,
                True,
                np.float32(2),
                self.array(shape=x.shape),
                self.array(shape=()),
                self.array(shape=x.shape[-1:]),
            )
            return [a(x), a(y)], {}
        if op == "nan_to_num":
            values = {name: a(self.pick(1, 2.5, None, self.array(shape=()))) for name in ("posinf", "neginf")}
            return [a(x)], {"nan": a(self.pick(0, 1.5, self.array(shape=()))), **values}
        if op == "transpose":
            rank = len(x.shape)
            return [a(x), a(self.pick(None, tuple(r.sample(range(-rank, 0), rank))))], {}
        if op == "split":
            return [a(x), a(self.pick(1, [1, 3], (-1,), [], self.fw.array([2, 1], "int64")))], {
                "axis": a(self.axis(x))
            }
        if op == "matmul":
            y = self.array(shape=(x.shape[-1:] or (1,)) + self.pick((), (2,)))
            return [a(x), a(y)], {}
        if op in ("fill_nan", "fill_nan_mask"):
            return [a(x), a(self.pick(0.0, 1, self.array(shape=())))], {}
        if op == "where":
            return [
                a(self.array(self.pick("bool", *self.dtypes), x.shape)),
                a(x),
                a(self.pick(2.0, self.array(shape=x.shape))),
            ], {}
        if op == "clip":
            low, high = self.pick(None, 0, -1.5, self.array(shape=())), self.pick(None, 1, 2.5)
            return [a(x), a(low)], {"max": a(high)}
        if op in ("sum", "prod", "mean", "min", "max"):
            rank = len(x.shape)
            axes = self.pick(
                None, self.axis(x), tuple(r.sample(range(rank), r.randrange(rank + 1))), list(range(rank))
            )
            return [a(x)], {"axes": a(axes), "keepdims": a(self.pick(True, False))}
        if op == "cumsum":
            return [a(x), a(self.axis(x))], {}
        if op == "take":
            x = self.array(where=self.fw, shape=self.pick((5,), (5, 5), (5, 5, 5)))
            low = self.pick(-5, 0)
            index = np.random.default_rng(r.randrange(2**32)).integers(low, 5, self.shape())
            return [
                a(x),
                a(self.fw.array(index, self.pick("int64", "int32", "int8"))),
                a(self.pick(0, -1, None)),
            ], {}
        if op == "repeat":
            n = math.prod(x.shape)
            counts = self.pick(2, 0, np.int64(3), self.fw.array(np.arange(n) % 3, "int64"), np.array(1))
            return [a(x), a(counts)], self.pick({}, {"total_repeat_length": a(self.pick(0, 3, 7))})
        if op == "reshape":
            n = math.prod(x.shape)
            return [a(x), a(self.pick(-1 if n else 0, (n,), [n, 1], (1, n, 1), (1, -1) if n else (0, 2)))], {}
        if op == "stack":
            return [
                a([a(x), *[self.array(shape=x.shape) for _ in range(r.randrange(3))]]),
                a(self.pick(0, -1)),
            ], {}
        if op == "concatenate":
            parts = [self.array(shape=x.shape) for _ in range(r.randrange(3))]
            return [a([a(x), *parts]), a(self.axis(x) if r.random() < 0.7 else None)], {}
        if op in ("astype", "cast"):
            return [a(x), a(self.dtype())], {}
        if op in ("full", "zeros", "ones"):
            fill = [a(self.pick(1, 2.5, True, self.array(shape=())))] if op == "full" else []
            return [a(self.shape()), *fill], {"dtype": a(self.pick(None, self.dtype())), "like": a(x)}
        if op == "full_like":
            return [a(x), a(self.pick(1, 2.5, True, self.array(shape=())))], {}
        if op == "arange":
            return [a(self.pick(0, 5, -2, 2.5)), a(self.pick(None, 7, 3.5))], {
                "step": a(self.pick(1, 2, -1, 0.5)),
                "like": a(x),
            }
        if op == "align_arrays":
            return [a(self.pick(None, 2.0, x, self.array())) for _ in range(r.randrange(4))], self.pick(
                {}, {"copy": a(True), "fallback": a(self.pick("copy", "error"))}
            )
        return self.segments(op, a)

    def dtype(self):
        name = self.pick(*self.dtypes)
        return self.pick(name, np.dtype(name), self.fw.own_dtype(name))

    def segments(self, op, a):
        length, n = self.pick(0, 1, 4, 9), self.pick(0, 1, 3, 5)
        x = self.array(
            shape=self.pick((length,), (length, 2), (length, 0), (length, 2, 2)),
            where=self.pick(self.fw, None),
        )
        if op.startswith("partition"):
            counts = np.diff([0, *sorted(self.random.randrange(length + 1) for _ in range(n)), length])
            parts = self.fw.array(counts, self.pick(*self.integers))
            return [*([] if op == "partition_ids" else [a(x)]), a(parts), a(self.size(length))], {}
        first = [] if op == "segment_count" else [a(x)]
        if op == "segment_attention":
            first = [a(self.array(shape=x.shape[: self.pick(1, 2)])), a(x)]
        more = [a(self.pick(0, 1.5, math.nan, np.float32(2)))] if op.endswith("constant") else []
        return [*first, a(self.ids(length, n)), a(self.size(n)), *more], {"sorted": a(False)}

    def snapshot(self, value):
        if isinstance(value, (list, tuple)):
            return [self.snapshot(one) for one in value]
        if type(value) is np.ndarray and value.dtype.kind in "biuf":
            return value.tobytes(), value.shape, value.strides, str(value.dtype)
        for fw in (self.fw, *self.others):
            if fw.is_array(value):
                return fw.numpy(value).tobytes(), tuple(value.shape), fw.dtype(value)
        return None

    def ours(self, args, kwargs):
        """Frameworks whose array may come back: those of the operands, NumPy where there are none."""
        found = set()

        def visit(value):
            if isinstance(value, (list, tuple)):
                for one in value:
                    visit(one)
            else:
                found.update(fw.name for fw in (self.fw, *self.others) if fw.is_array(value))

        visit([*args, *kwargs.values()])
        found.discard("numpy")
        return found


def is_result(fuzz, op, got, args, kwargs):
    if op == "shape":
        return type(got) is tuple and all(type(size) is int for size in got)
    if op in ("split", "fill_nan_mask"):
        container = list if op == "split" else tuple
        return type(got) is container and all(is_result(fuzz, "", one, args, kwargs) for one in got)
    if op == "align_arrays":
        return type(got) is tuple and all(
            one is None or is_result(fuzz, "", one, args, kwargs) for one in got
        )
    owners = fuzz.ours(args, kwargs)
    if not owners or isinstance(got, np.ndarray):
        return isinstance(got, np.ndarray)
    return any(frameworks.framework(name).is_array(got) for name in owners)


def brief(value):
    """A short text; printing whole tensors would take most of the time."""
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(map(brief, value))})"
    if isinstance(value, dict):
        return ", ".join(f"{name}={brief(one)}" for name, one in value.items())
    if hasattr(type(value), "shape") and hasattr(type(value), "dtype"):
        small = f" {value}" if tuple(value.shape) == () else ""
        return f"{type(value).__name__} {value.dtype}{tuple(value.shape)}{small}"
    return repr(value)[:60]


def little_memory(more):
    """A size of 2**31 is an error here, not 16 GB: so many bytes of addresses more, and no more."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def one_call(fuzz, k, errors):
    """Makes call k: what came of it, the function, and a complaint or None. Names itself on stderr first."""
    fuzz.begin(k)
    op = OPS[k % len(OPS)]
    args, kwargs = fuzz.call(op)
    if fuzz.random.random() < 0.05:
        name = fuzz.pick("x", "axis", "nonsense", "dtype")
        args, kwargs = [*args, fuzz.anything()], {**kwargs, name: fuzz.anything()}
    if fuzz.random.random() < 0.03:
        args = args[:-1]
    text = f"call {k}: {op}({brief(args)}, {brief(kwargs)})"
    print(text, file=sys.stderr, flush=True)
    before = fuzz.snapshot([args, list(kwargs.values())])
    complaint = None
    try:
        got = getattr(at, op)(*args, **kwargs)
    except Exception as error:
        outcome = type(error).__name__
        if type(error) is SystemError or not isinstance(error, errors):
            complaint = f"{text}\n{''.join(traceback.format_exception_only(error))}"
    else:
        outcome = "valid"
        if not is_result(fuzz, op, got, args, kwargs):
            complaint = f"{text} gave {type(got)}"
    if fuzz.snapshot([args, list(kwargs.values())]) != before:
        complaint = f"{text} changed an operand"
    return outcome, op, complaint


def ready(name, seed):
    """What a worker needs: the maker of calls, and the exceptions that a caller may see."""
    fuzz = Fuzz(name, seed)
    for one in (fuzz.fw, *fuzz.others):  # threads are started before memory is short
        x, ids = one.array(np.ones((5000, 40)), "float64"), one.array(np.zeros(5000), "int64")
        at.segment_softmax(x, ids, 2)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    return fuzz, (*ALLOWED, *(error for one in (fuzz.fw, *fuzz.others) for error in one.errors))


def work(name, seed):
    """Reads `first last` lines, makes those calls, answers a line of JSON: outcomes, functions, complaints."""
    fuzz, errors = ready(name, seed)
    little_memory(ROOM.get(name, 2**32))
    for line in sys.stdin:
        done = [one_call(fuzz, k, errors) for k in range(*map(int, line.split()))]
        print(json.dumps(done), flush=True)


def replay(name, seed, k):
    fuzz, errors = ready(name, seed)
    print(*one_call(fuzz, k, errors), sep="\n")


if __name__ == "__main__":
    if sys.argv[1] == "work":
        work(sys.argv[2], int(sys.argv[3]))
    else:
        replay(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    sys.exit()

import pytest  # noqa: E402

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402


class Worker:
    """A process that makes calls; `run` gives its answer, or None once it is dead or stuck."""

    def __init__(self, name, seed):
        package = str(pathlib.Path(at.__file__).resolve().parent.parent)
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])}
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", __file__, "work", name, str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=env,
        )

    def run(self, first, last):
        try:
            print(first, last, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            return None
        if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
            self.process.kill()
            return None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def close(self):
        """Its exit status, and the last that it said."""
        self.process.stdin.close()
        self.process.stdout.close()
        status = self.process.wait(timeout=60)
        self.log.seek(0)
        text = self.log.read()
        self.log.close()
        return status, text


def calls_of(name, seed, count):
    """Makes `count` calls, in one worker and in another whenever one dies: outcomes and complaints."""
    worker, first, done, wrong = Worker(name, seed), 0, [], []
    while first < count and len(wrong) < 20:
        answer = worker.run(first, min(first + BATCH, count))
        if answer is not None:
            done += answer
            wrong += [complaint for _, _, complaint in answer if complaint]
            first += BATCH
            continue
        status, text = worker.close()
        said = [line for line in text.splitlines() if line.startswith("call ")]
        wrong.append(f"the worker died (exit status {status})\n{text[-3000:]}")
        if not said:
            return done, wrong
        first, worker = int(said[-1].split()[1].rstrip(":")) + 1, Worker(name, seed)
    worker.close()
    return done, wrong


@pytest.mark.slow
@pytest.mark.parametrize("name", frameworks.FOUND)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_calls_give_a_result_or_a_documented_exception(name, seed, record_property):
    few = frameworks.ROWS[name].compiles
    if few and seed > 1:
        pytest.skip("one seed is enough of what compiles each call")
    count = 15 * len(OPS) if few else CALLS
    done, wrong = calls_of(name, seed, count)
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong)
    outcomes = collections.Counter(outcome for outcome, _, _ in done)
    print(f"{name}, seed {seed}: {len(done)} calls, {dict(outcomes)}")
    record_property("counts", dict(outcomes))
    assert len(done) == count
    assert outcomes["valid"] > count / 2
    assert "TypeError" in outcomes and "ValueError" in outcomes
    assert {op for outcome, op, _ in done if outcome == "valid"} == set(OPS)


# --- properties -------------------------------------------------------------------------------------------

PROPERTIES = []


def holds(*strategies):
    """A function of a framework and random values, to be tested on each framework."""

    def listed(body):
        PROPERTIES.append(pytest.param(body, strategies, id=body.__name__))
        return body

    return listed


REDUCTIONS = (
    *("segment_sum", "segment_min", "segment_max", "segment_mean", "segment_variance"),
    *("segment_prod", "segment_std", "segment_logsumexp", "segment_any", "segment_all"),
)
PER_ROW = ("segment_softmax", "segment_normalize")


@st.composite
def segmented(draw, dtype="float64", low=-2, high=2):
    """(values of some rank, ids with some out of range, number of segments)"""
    n = draw(st.integers(0, 6))
    ids = draw(st.lists(st.integers(-2, n + 2), max_size=30))
    tail = draw(st.sampled_from([(), (1,), (3,), (2, 2), (0,)]))
    seed = draw(st.integers(0, 2**32 - 1))
    return (
        np.random.default_rng(seed).normal(size=(len(ids), *tail)).astype(dtype),
        np.array(ids, np.int64),
        n,
    )


def arrays(fw, x, ids):
    return fw.array(x, x.dtype.name), fw.array(ids, "int64")


@holds(segmented())
def softmax_sums_to_one_over_each_occupied_segment(fw, case):
    x, ids, n = case
    soft = at.segment_softmax(*arrays(fw, x, ids), n)
    total = fw.numpy(at.segment_sum(soft, fw.array(ids, "int64"), n))
    occupied = np.array([bool((ids == s).any()) for s in range(n)], bool)
    assert np.allclose(total[occupied], 1.0)
    assert (total[~occupied] == 0.0).all()
    assert (fw.numpy(soft)[(ids < 0) | (ids >= n)] == 0.0).all()
    assert (fw.numpy(soft) >= 0.0).all()


@holds(segmented(), st.randoms(use_true_random=False))
def permuting_rows_together_with_ids_changes_nothing(fw, case, shuffle):
    x, ids, n = case
    order = list(range(len(ids)))
    shuffle.shuffle(order)
    for op in REDUCTIONS:
        f = getattr(at, op)
        one = fw.numpy(f(*arrays(fw, x, ids), n))
        other = fw.numpy(f(*arrays(fw, x[order], ids[order]), n))
        assert np.allclose(one, other, equal_nan=True), op
    for op in PER_ROW:
        f = getattr(at, op)
        one = fw.numpy(f(*arrays(fw, x, ids), n))[order]
        assert np.allclose(one, fw.numpy(f(*arrays(fw, x[order], ids[order]), n)), equal_nan=True), op
    count = fw.numpy(at.segment_count(fw.array(ids, "int64"), n))
    assert np.array_equal(count, fw.numpy(at.segment_count(fw.array(ids[order], "int64"), n)))


@holds(segmented())
def segment_sum_is_a_one_hot_matmul(fw, case):
    x, ids, n = case
    hot = (ids[None, :] == np.arange(n)[:, None]).astype(x.dtype)
    want = np.tensordot(hot, x, 1)
    assert np.allclose(fw.numpy(at.segment_sum(*arrays(fw, x, ids), n)), want)
    assert np.array_equal(fw.numpy(at.segment_count(fw.array(ids, "int64"), n)), hot.sum(1))


@holds(segmented())
def sorted_and_unsorted_agree(fw, case):
    x, ids, n = case
    ids = np.sort(ids)
    for op in (*REDUCTIONS, *PER_ROW):
        f = getattr(at, op)
        one, other = (fw.numpy(f(*arrays(fw, x, ids), n, flag)) for flag in (False, True))
        assert np.allclose(one, other, equal_nan=True), op
    for op in ("segment_min_or_constant", "segment_max_or_constant"):
        f = getattr(at, op)
        one, other = (fw.numpy(f(*arrays(fw, x, ids), n, -7.0, flag)) for flag in (False, True))
        assert np.array_equal(one, other), op


@holds(st.lists(st.integers(0, 5), max_size=8), st.sampled_from([(), (3,)]), st.integers(0, 2**32 - 1))
def partition_functions_are_segment_functions_on_expanded_ids(fw, counts, tail, seed):
    total = sum(counts)
    x = np.random.default_rng(seed).normal(size=(total, *tail)).astype("float32")
    parts = fw.array(np.array(counts, np.int32), "int32")
    ids = np.repeat(np.arange(len(counts)), counts)
    got = at.partition_ids(parts, total)
    assert fw.numpy(got).tolist() == ids.tolist()
    for op in ("sum", "min", "max", "softmax"):
        one = getattr(at, f"partition_{op}")(fw.array(x, "float32"), parts, total)
        other = getattr(at, f"segment_{op}")(fw.array(x, "float32"), got, len(counts))
        assert np.array_equal(fw.numpy(one), fw.numpy(other)), op


@holds(segmented(dtype="float32"))
def all_dropped_ids_are_one_dropped_id(fw, case):
    """Which id out of range a row has, and what the row holds, makes no difference."""
    x, ids, n = case
    out = (ids < 0) | (ids >= n)
    wild, other = x.copy(), np.where(out, n + 100, ids)
    wild[out] = np.nan
    for op in REDUCTIONS:
        f = getattr(at, op)
        assert np.array_equal(
            fw.numpy(f(*arrays(fw, x, ids), n)), fw.numpy(f(*arrays(fw, wild, other), n))
        ), op
    for op in PER_ROW:
        f = getattr(at, op)
        one, two = fw.numpy(f(*arrays(fw, x, ids), n)), fw.numpy(f(*arrays(fw, wild, other), n))
        assert np.array_equal(one[~out], two[~out]) and (two[out] == 0.0).all(), op


@holds(st.lists(st.integers(0, 4), max_size=8), st.integers(0, 20))
def repeat_to_a_total_is_repeat_cut_or_filled(fw, counts, total):
    x = np.arange(len(counts), dtype="float32")
    got = fw.numpy(
        at.repeat(
            fw.array(x, "float32"), fw.array(np.array(counts, np.int64), "int64"), total_repeat_length=total
        )
    )
    plain = np.repeat(x, counts)[:total]
    want = (
        np.concatenate([plain, np.full(total - len(plain), x[-1] if len(x) else 0, "float32")])
        if len(x)
        else plain
    )
    assert np.array_equal(got, want)


@pytest.mark.parametrize(("body", "strategies"), PROPERTIES)
def test_property(fw, body, strategies):
    if fw.narrow:
        pytest.skip("the same as with 64-bit types, less exact")
    few = settings(
        max_examples=6 if fw.compiles else 60,
        deadline=None,
        database=None,
        derandomize=True,
        print_blob=False,
    )

    @few
    @given(st.tuples(*strategies))
    def run(values):
        body(fw, *values)

    run()
