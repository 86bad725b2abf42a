"""A lazy library behind the generic adapter: dask.array. A call builds a graph and computes nothing.

Accuses src/python/backends/array_api*.c: what reads an element, a value or a size that is not known yet.
"""

import math

import cases
import numpy as np
import pytest
from frameworks import Dask, framework
from test_errors import GOOD, call

import anytensor as at

SELECTION, ROW = "array_api_strict", "dask"
pytest.importorskip("dask.array")


def some(most=3):
    """The first cases of each function: a graph takes milliseconds."""
    seen = {}
    for case in cases.ALL:
        seen[case.op] = seen.get(case.op, 0) + 1
        if seen[case.op] <= most:
            yield case


@pytest.fixture
def dask():
    return framework("dask")


@pytest.mark.parametrize("case", list(some()), ids=str)
def test_some_cases(dask, case):
    cases.check(dask, case)


def forbidden(block):
    """Chunks of nothing pass: dask makes them to learn a dtype."""
    if block.size:
        raise AssertionError("a chunk was computed")
    return block


class Unread(Dask):
    """Its arrays cannot be computed."""

    def array(self, data, dtype):
        x = super().array(data, dtype)
        return x.map_blocks(forbidden, dtype=x.dtype, meta=np.empty((0,) * x.ndim, x.dtype))


@pytest.mark.parametrize("op", sorted(at._core.ops))
def test_nothing_is_computed(dask, op):
    """Each function, on arrays that cannot be computed: a function without a good call here fails."""
    in_reach = {"repeat": {"repeats": 2}, "reshape": {"shape": (-1,)}}  # of dask: tests/xfail/dask.txt
    got = call(Unread(), op, GOOD[op] | in_reach.get(op, {}))
    results = got if isinstance(got, (list, tuple)) else [got]
    assert op == "shape" or any(dask.is_array(y) for y in results)
    assert not any(isinstance(y, (np.ndarray, np.generic)) for y in results)


@pytest.mark.parametrize("op", ["segment_sum", "segment_softmax", "cumsum", "take"])
def test_rows_of_an_unknown_number_are_refused_in_words(dask, op):
    """Chunks of unknown size have the length NaN: nothing is computed to learn it."""
    x = dask.array([1.0, -1.0, 2.0], "float32")
    kept = x[x > 0]
    assert math.isnan(kept.shape[0])
    with pytest.raises((TypeError, ValueError, NotImplementedError), match="unknown|size|length|shape|nan"):
        {
            "segment_sum": lambda: at.segment_sum(kept, kept.astype("int64"), 2),
            "segment_softmax": lambda: at.segment_softmax(kept, kept.astype("int64"), 2),
            "cumsum": lambda: at.cumsum(kept),
            "take": lambda: at.take(kept, dask.array([0], "int64")),
        }[op]()


@pytest.mark.parametrize("op", ["segment_sum", "segment_max", "segment_softmax", "partition_sum"])
def test_chunks_do_not_matter(dask, op):
    """One chunk, or one for each row: the same values."""
    rows = np.arange(14, dtype="float64").reshape(7, 2) % 5
    ids = np.array([2, 0, -1, 2, 9, 0, 1]) if op != "partition_sum" else np.array([3, 0, 4])
    size = 3 if op != "partition_sum" else 7
    whole = [dask.da.from_array(x, chunks=-1) for x in (rows, ids)]
    split = [dask.da.from_array(x, chunks=1) for x in (rows, ids)]
    want = getattr(at, op)(rows, ids, size)
    for x, i in (whole, split, (split[0], ids)):
        np.testing.assert_allclose(dask.numpy(getattr(at, op)(x, i, size)), want)
