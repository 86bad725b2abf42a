"""References and memory: operands keep theirs, results have one, calls leave nothing behind, good or bad.

Accuses src/python (args.c, calls.c, errors.c, the adapters): every path releases what it makes.
"""

import gc
import sys
import warnings

import cases
import numpy as np
import pytest
from frameworks import framework
from test_errors import GOOD

import anytensor as at

CALLS = 2000
BAD = {
    "a bad keyword": {"nonsense": 1},
    "a list": "first",
    "a bad size": {
        "num_segments": -1,
        "total_length": 1,
        "total_repeat_length": -1,
        "shape": (-1, -1),
        "indices_or_sections": -1,
    },
    "a bad axis": {"axes": 9, "axis": 9},
    "a bad dtype": {"dtype": "nonsense"},
    "a bad option": {"copy": 1, "fallback": "nonsense"},
    "the framework's own": {
        "y": "mismatch",
        "condition": "mismatch",
        "indices": "mismatch",
        "arrays": "mismatch",
    },
}


def arguments(fw, op):
    return cases.build(fw, GOOD[op], framework("numpy"))


OPTIONS = {
    **dict.fromkeys(("sum", "prod", "mean", "min", "max"), ("axes",)),
    "align_arrays": ("copy", "fallback"),
    "transpose": ("axes",),
    **dict.fromkeys(("cumsum", "take", "concatenate", "split", "stack"), ("axis",)),
    **dict.fromkeys(("zeros", "ones", "full", "full_like", "zeros_like", "ones_like", "arange"), ("dtype",)),
}


def fails_by(op, kind):
    """The arguments of a function that a kind of failure changes."""
    if BAD[kind] == "first":
        return (
            [next(iter(GOOD[op]))]
            if GOOD[op].keys() & {"x", "logits", "segment_ids", "partitions", "arrays"}
            else []
        )
    if kind == "a bad keyword":
        return ["nonsense"] if op != "shape" else []
    if kind == "the framework's own" and op == "align_arrays":
        return []  # arrays of any shapes go together there
    return [name for name in BAD[kind] if name in (*GOOD[op], *OPTIONS.get(op, ()))]


def fails_on(fw, op, kind):
    """Whether a kind of failure is one on a framework: an index out of range need not be."""
    own = kind == "the framework's own" and op == "take"
    return fails_by(op, kind) and not (own and fw.take_out_of_range == "fills")


def spoiled(fw, op, kind):
    """The arguments of a call that fails in a certain way."""
    good = arguments(fw, op)
    odd = fw.array([1, 2, 77], "int64")
    mismatch = {
        "y": odd,
        "condition": fw.array([True] * 5, "bool"),
        "indices": odd,
        "arrays": [*good.get("arrays", []), odd],
    }
    if BAD[kind] == "first":
        return {**good, fails_by(op, kind)[0]: [[1.0]]}
    changes = {name: BAD[kind][name] for name in fails_by(op, kind)}
    if "total_length" in changes and not fw.reads_counts:
        changes["total_length"] = -1
    return {
        **good,
        **{name: mismatch[name] if value == "mismatch" else value for name, value in changes.items()},
    }


def once(op, given):
    function = getattr(at, op)
    if op == "align_arrays":
        return function(*given["arrays"], **{name: one for name, one in given.items() if name != "arrays"})
    if op in ("shape", "arange"):
        rest = dict(given)
        first = rest.pop("x", None) if op == "shape" else rest.pop("start", None)
        return function(first, **rest)
    return function(**given)


@pytest.fixture(autouse=True)
def rows_that_differ(request):
    """Rows of one framework share all code that could leak."""
    if "jax32" in getattr(getattr(request.node, "callspec", None), "params", {}).values():
        pytest.skip("as with 64-bit types")


@pytest.fixture(autouse=True, scope="module")
def little_to_collect():
    """What is there before these tests is left out of its garbage collections, which would take most of the time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def tidy():
    """Collects garbage, and empties the interpreter's cache of attributes, which keeps up to 4,096 of the names that
    were made for a lookup."""
    gc.collect()
    getattr(sys, "_clear_internal_caches" if sys.version_info >= (3, 13) else "_clear_type_cache")()


def left_behind(op, given, count, fails):
    """Blocks of memory that `count` calls leave behind; each failing call must fail."""
    tidy()
    before = sys.getallocatedblocks()
    failed = 0
    for _ in range(count):
        try:
            once(op, given)
        except Exception:
            failed += 1
    assert failed == (count if fails else 0)
    tidy()
    return sys.getallocatedblocks() - before


def assert_nothing_left(fw, op, given, count, fails):
    if fw.leaks:
        pytest.skip("the framework's own calls leave memory behind")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        left_behind(op, given, max(20, count // 2), fails)  # caches fill, the frameworks' own among them
        for _ in range(6):  # something else may have grown meanwhile: a leak grows each time
            left = left_behind(op, given, count, fails)
            if left <= count // 5:
                return
    raise AssertionError(f"{left} blocks after {count} calls, again and again")


@pytest.mark.parametrize("op", sorted(GOOD))
def test_good_calls_leave_nothing_behind(fw, op):
    assert_nothing_left(fw, op, arguments(fw, op), CALLS if fw.quick else CALLS // 10, False)


@pytest.mark.parametrize(
    ("op", "kind"), [(op, kind) for op in sorted(GOOD) for kind in BAD if fails_by(op, kind)]
)
def test_bad_calls_leave_nothing_behind(fw, op, kind):
    if not fails_on(fw, op, kind):
        pytest.skip("no failure here")
    assert_nothing_left(fw, op, spoiled(fw, op, kind), CALLS // 4 if fw.quick else CALLS // 20, True)


def held(given):
    """Everything whose references are counted."""
    operands = []
    for value in given.values():
        operands += value if isinstance(value, list) else [value]
    return [
        one for one in operands if not isinstance(one, (int, float, str, bool, type(None), tuple))
    ] + list(given.values())


@pytest.mark.parametrize("op", sorted(GOOD))
def test_operands_keep_their_references(fw, op):
    for kind in (None, *(kind for kind in BAD if fails_on(fw, op, kind))):
        given = arguments(fw, op) if kind is None else spoiled(fw, op, kind)
        watched = held(given)
        before = []
        for k in range(22):
            if k == 2:  # what compiles has done so, and keeps numbers of its own
                before = [sys.getrefcount(one) for one in watched]
            try:
                once(op, given)
            except Exception as error:
                error.__traceback__ = None
        after = [sys.getrefcount(one) for one in watched]
        assert [abs(a - b) < 10 for a, b in zip(after, before, strict=True)] == [True] * len(watched), kind


@pytest.mark.parametrize("op", sorted(set(GOOD) - {"shape"}))
def test_a_result_has_one_reference(fw, op):
    given = arguments(fw, op)
    got = once(op, given)
    own = sum(got is one for one in held(given))
    if own == 0:
        assert sys.getrefcount(got) == 2  # the name and the argument
    for k in range(len(got)) if op in ("split", "fill_nan_mask") else ():
        part = got[k]
        assert sys.getrefcount(part) == 3  # the container, the name and the argument


def test_an_identity_result_is_the_operand_with_one_reference_more(fw):
    x = fw.array([1.0, 2.0], "float32")
    before = sys.getrefcount(x)
    for same in (
        at.clip(x),
        at.astype(x, "float32"),
        at.astype(x, fw.own_dtype("float32")),
        at.cast(x, "float32"),
    ):
        assert same is x
    del same
    assert sys.getrefcount(x) == before


def test_joined_numpy_arrays_live_as_long_as_the_result(peer):
    for _ in range(50):
        x = np.arange(1000.0, dtype="float32")
        got = at.reshape(peer.array([1.0], "float32"), (1,))
        got = at.concatenate([got, x])
        flat = at.take(x, peer.array(np.arange(1000), "int64"))
        del x
        assert float(peer.numpy(got)[-1]) == 999.0
        assert float(peer.numpy(flat)[-1]) == 999.0


def test_results_of_numpy_own_their_memory_or_keep_its_owner():
    for _ in range(50):
        x = np.arange(12.0)
        view = at.reshape(x, (3, 4))
        mean = at.segment_mean(x.reshape(3, 4), np.array([0, 1, 1]), 2)
        address = x.ctypes.data
        del x
        filler = [np.full(12, -1.0) for _ in range(50)]
        assert view[2, 3] == 11.0 and mean[1, 3] == 9.0 and view.ctypes.data == address
        del filler
