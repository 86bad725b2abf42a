"""References and memory: operands keep theirs, results have one, calls leave nothing behind, good or bad.

Accuses src/python (args.c, calls.c, errors.c, the adapters): every path releases what it makes.
"""

import gc
import sys
import warnings

import cases
import numpy as np
import pytest
from conftest import framework
from test_errors import GOOD

import anytensor as at

CALLS = 2000
BAD = {
    "a bad keyword": {"nonsense": 1},
    "a list": "first",
    "a bad size": {"num_segments": -1, "total_length": 1, "total_repeat_length": -1, "shape": (-1, -1)},
    "a bad axis": {"axes": 9, "axis": 9},
    "a bad dtype": {"dtype": "nonsense"},
    "the framework's own": {"y": "mismatch", "condition": "mismatch", "indices": "mismatch", "arrays": "mismatch"},
}


def arguments(fw, op):
    return cases.build(fw, GOOD[op], framework("numpy"))


def spoiled(fw, op, kind):
    """The arguments of a call that fails in a certain way, or None where it cannot."""
    good = arguments(fw, op)
    if BAD[kind] == "first":
        return {**good, next(iter(good)): [1.0]} if op != "concatenate" else {"arrays": [[1.0]]}
    if kind == "a bad keyword":
        return {**good, **BAD[kind]}
    known = {**good, "axes": 0} if op in ("sum", "prod", "mean", "min", "max") else dict(good)
    if op in ("cumsum", "take", "concatenate"):
        known["axis"] = 0
    if op in ("zeros", "ones", "full", "full_like", "zeros_like", "ones_like"):
        known["dtype"] = None
    changes = {name: value for name, value in BAD[kind].items() if name in known}
    for name, value in changes.items():
        if value == "mismatch":
            odd = fw.array([1, 2, 77], "int64")
            changes[name] = [good["arrays"][0], odd] if name == "arrays" else odd if name != "indices" else fw.array([99], "int64")
    if "condition" in changes:
        changes["condition"] = fw.array([True] * 5, "bool")
    return {**good, **changes} if changes else None


def caller(op):
    """Calls by keywords, but for the arguments that take none."""
    function = getattr(at, op)
    if op in ("shape", "arange"):
        return lambda first, **rest: function(first, **rest)
    return None


def once(op, given):
    function = getattr(at, op)
    if op in ("shape", "arange"):
        rest = dict(given)
        first = rest.pop("x", None) if op == "shape" else rest.pop("start", None)
        return function(first, **rest)
    return function(**given)


def blocks(op, given, count, fails):
    """Blocks of memory that `count` calls leave behind."""
    kinds = (TypeError, ValueError, IndexError, OverflowError, NotImplementedError, RuntimeError)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(count):
        try:
            once(op, given)
        except kinds:
            assert fails
        else:
            assert not fails
    gc.collect()
    return sys.getallocatedblocks() - before


def grows(op, given, fails):
    """Whether each of the calls leaves something: the least of three runs, so that caches do not count."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        blocks(op, given, 50, fails)
        for _ in range(3):
            left = blocks(op, given, CALLS // 4, fails)
            if left < 20:
                break
        return left if left < 20 else blocks(op, given, CALLS, fails) * CALLS // CALLS


@pytest.mark.parametrize("op", sorted(GOOD))
def test_good_calls_leave_nothing_behind(fw, op):
    assert grows(op, arguments(fw, op), False) < 100


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("op", sorted(GOOD))
def test_bad_calls_leave_nothing_behind(fw, op, kind):
    given = spoiled(fw, op, kind)
    if given is None:
        pytest.skip("the function has no such argument")
    with pytest.raises(Exception):  # noqa: B017
        once(op, given)
    assert grows(op, given, True) < 100


def held(given):
    """Everything whose references are counted."""
    operands = []
    for value in given.values():
        operands += value if isinstance(value, list) else [value]
    return [one for one in operands if not isinstance(one, (int, float, str, bool, type(None), tuple))] + list(given.values())


@pytest.mark.parametrize("op", sorted(GOOD))
def test_operands_keep_their_references(fw, op):
    for kind in (None, *BAD):
        given = arguments(fw, op) if kind is None else spoiled(fw, op, kind)
        if given is None:
            continue
        watched = held(given)
        before = [sys.getrefcount(one) for one in watched]
        for _ in range(20):
            try:
                once(op, given)
            except Exception as error:  # noqa: BLE001
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


def test_an_identity_result_is_the_operand_with_one_reference_more(fw):
    x = fw.array([1.0, 2.0], "float32")
    before = sys.getrefcount(x)
    for same in (at.clip(x), at.astype(x, "float32"), at.astype(x, fw.own_dtype("float32"))):
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
        gc.collect()
        assert float(peer.numpy(got)[-1]) == 999.0
        assert float(peer.numpy(flat)[-1]) == 999.0


def test_results_of_numpy_own_their_memory_or_keep_its_owner():
    for _ in range(50):
        x = np.arange(12.0)
        view = at.reshape(x, (3, 4))
        mean = at.segment_mean(x.reshape(3, 4), np.array([0, 1, 1]), 2)
        address = x.ctypes.data
        del x
        gc.collect()
        filler = [np.full(12, -1.0) for _ in range(50)]
        assert view[2, 3] == 11.0 and mean[1, 3] == 9.0 and view.ctypes.data == address
        del filler
