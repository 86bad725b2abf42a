"""anytensor.lengths: ids, splits and cuts of the parts of a batch.

Accuses python/anytensor/lengths.py.
"""

import subprocess
import sys

import numpy as np
import pytest
from frameworks import installed

import anytensor as at
from anytensor import lengths as L


def calls(fw):
    """Each function on every row whose arrays add and subtract by themselves, and what it gives."""
    a = getattr(fw, "array", None)  # names are asked for without a framework
    return {
        "ids": (lambda: L.lengths_to_ids(a([2, 0, 1], "int32"), total=3), [0, 0, 2], "int32"),
        "ids of a longer total": (
            lambda: L.lengths_to_ids(a([1, 1], "int64"), total=4),
            [0, 1, 1, 1],
            "int64",
        ),
        "ids of a shorter total": (lambda: L.lengths_to_ids(a([2, 2], "int64"), total=3), [0, 0, 1], "int64"),
        "ids without a total": (lambda: L.lengths_to_ids(a([2, 0, 1], "int64")), [0, 0, 2], "int64"),
        "splits": (lambda: L.lengths_to_splits(a([2, 0, 3], "int64")), [2, 2, 5], "int64"),
        "splits of a matrix": (
            lambda: L.lengths_to_splits(a([[1, 2], [3, 4]], "int64")),
            [1, 3, 6, 10],
            "int64",
        ),
        "splits of nothing": (lambda: L.lengths_to_splits(a([], "int64")), [], "int64"),
        "cuts": (lambda: L.cuts_to_lengths(a([2, 2, 5], "int32"), 6), [2, 0, 3, 1], "int32"),
        "cuts and an array": (lambda: L.cuts_to_lengths(a([1], "int64"), a(4, "int64")), [1, 3], "int64"),
        "no cuts": (lambda: L.cuts_to_lengths(a([], "int64"), 4), [4], "int64"),
        "batch": (
            lambda: L.batch_ids(a([0, 1, 0, 2], "int32"), a([2, 5, 3], "int64"), a([2, 0, 2], "int64")),
            [0, 1, 7, 9],
            "int32",
        ),
        "batch of NumPy's lengths": (
            lambda: L.batch_ids(a([0, 1, 0], "int64"), np.array([2, 3]), np.array([2, 1])),
            [0, 1, 2],
            "int64",
        ),
        "batch of nothing": (lambda: L.batch_ids(*[a([], "int64")] * 3), [], "int64"),
    }


@pytest.mark.parametrize("name", list(calls(None)))
def test_lengths_on_every_framework(fw, name):
    if fw.name == "native" and name.startswith(("cuts", "no cuts", "batch")):
        with pytest.raises(TypeError):  # native arrays have no arithmetic operators
            calls(fw)[name][0]()
        return
    call, want, dtype = calls(fw)[name]
    got = call()
    assert fw.is_array(got) and fw.numpy(got).tolist() == want and fw.dtype(got) == fw.held(dtype)


def test_unbatching_undoes_batching(fw):
    if fw.name == "native":
        pytest.skip("native arrays have no arithmetic operators")
    ids, lengths, part_lengths = (fw.array(one, "int64") for one in ([0, 1, 0, 2], [2, 5, 3], [2, 0, 2]))
    parts = L.unbatch_ids(L.batch_ids(ids, lengths, part_lengths), lengths, part_lengths)
    assert type(parts) is list and [fw.numpy(one).tolist() for one in parts] == [[0, 1], [], [0, 2]]
    assert all(fw.dtype(one) == fw.dtype(ids) for one in parts)
    none = fw.array([], "int64")
    assert L.unbatch_ids(none, none, none) == []
    assert len(L.unbatch_ids(ids, fw.array([9], "int64"), np.array([4]))) == 1


def test_lists_of_cuts_are_numpys():
    for cuts in ([1, 3], (1, 3), []):
        got = L.cuts_to_lengths(cuts, 4)
        assert type(got) is np.ndarray and got.tolist() == np.diff([0, *cuts, 4]).tolist()


def test_part_lengths_that_do_not_add_up_are_refused_where_they_are_read(fw):
    if not fw.reads_counts or fw.name == "native":
        pytest.skip("it never reads them")
    with pytest.raises(ValueError, match="sum of the partitions"):
        L.batch_ids(fw.array([0, 1], "int64"), fw.array([2], "int64"), fw.array([3], "int64"))


def test_jax_and_torch_compile_them(fw):
    def f(ids, lengths, part_lengths):
        batched = L.batch_ids(ids, lengths, part_lengths)
        parts = L.lengths_to_ids(part_lengths, total=at.shape(ids)[0])
        return batched + parts, L.lengths_to_splits(lengths), L.cuts_to_lengths(lengths, 9)

    compiled = {
        "torch": lambda: __import__("torch").compile(f, fullgraph=True, backend="eager"),
        "jax": lambda: __import__("jax").jit(f),
        "jax32": lambda: __import__("jax").jit(f),
        "tensorflow": lambda: __import__("tensorflow").function(f, autograph=False),
    }
    if fw.name not in compiled or (fw.name == "torch" and installed("torch") < (2, 6)):
        pytest.skip("nothing compiles; torch in one graph, from 2.6 on")
    given = [fw.array(one, "int64") for one in ([0, 1, 0, 2], [2, 5, 3], [2, 0, 2])]
    for got, want in zip(compiled[fw.name]()(*given), f(*given), strict=True):
        assert fw.numpy(got).tolist() == fw.numpy(want).tolist()


def test_the_package_does_not_import_it():
    program = "import sys, anytensor; assert 'anytensor.lengths' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
    assert set(L.__all__) == {
        "batch_ids",
        "cuts_to_lengths",
        "lengths_to_ids",
        "lengths_to_splits",
        "unbatch_ids",
    }
