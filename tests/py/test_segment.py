"""Segment functions against plain loops (SEMANTICS 1-8, 10); accuses src/ops/segment.c and the kernels."""

import math
import warnings

import cases
import numpy as np
import oracle
import pytest
from frameworks import framework

import anytensor as at


@pytest.mark.parametrize("case", cases.SEGMENT, ids=str)
def test_segment(fw, case):
    cases.check(fw, case)


# --- memory of every kind ---------------------------------------------------------------------------------

FOREIGN = {
    "every second row": lambda x: np.repeat(x, 2, axis=0)[::2],
    "negative strides": lambda x: x[::-1].copy()[::-1],
    "Fortran order": np.asfortranarray,
    "foreign byte order": lambda x: x.astype(x.dtype.newbyteorder("S")),
    "misaligned memory": lambda x: misaligned(x),
    "read-only memory": lambda x: frozen(x),
    "a broadcast axis": lambda x: np.broadcast_to(x[..., :1], x.shape) if x.ndim > 1 else x,
}


def misaligned(x):
    raw = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    raw[...] = x
    return raw


def frozen(x):
    x = x.copy()
    x.flags.writeable = False
    return x


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float16", "bfloat16", "float32", "float64"]
)
def test_numpy_memory_of_every_kind_gives_the_same_values(dtype, kind):
    if dtype == "bfloat16" and kind == "foreign byte order":
        pytest.skip("ml_dtypes has one byte order")
    fw = framework("numpy")
    x = FOREIGN[kind](fw.array(cases.data(dtype, 9, 4), dtype))
    ids = FOREIGN[kind](np.array(cases.IDS))
    kept, kept_ids = x.tobytes(), ids.tobytes()
    plain = np.ascontiguousarray(x).astype(fw.own_dtype(dtype))
    for op in cases.SEGMENT_OPS[:-1]:
        f = getattr(at, op)
        assert (
            oracle.difference(fw.numpy(f(x, ids, 4)), fw.numpy(f(plain, np.array(cases.IDS), 4)), 0) is None
        ), op
    assert np.array_equal(at.segment_count(ids, 4), at.segment_count(np.array(cases.IDS), 4))
    assert (x.tobytes(), ids.tobytes()) == (kept, kept_ids)


@pytest.mark.parametrize("kind", FOREIGN)
def test_numpy_memory_of_every_kind_joins_a_framework(peer, kind):
    ids, x = np.array(cases.IDS), cases.data("float32", 9, 4).astype("float32")
    odd = FOREIGN[kind](x)
    for op in cases.SEGMENT_OPS[:-1]:
        f = getattr(at, op)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one, other = (
                f(odd, peer.array(ids, "int64"), 4),
                f(peer.array(x, "float32"), FOREIGN[kind](ids), 4),
            )
        want = oracle.segment(op, odd, cases.IDS, 4, "float32")
        assert oracle.difference(peer.numpy(one), want, 2e-6) is None, op
        want = oracle.segment(op, x, cases.IDS, 4, "float32")
        assert oracle.difference(peer.numpy(other), want, 2e-6) is None, op


def test_a_strided_tensor_gives_the_same_values(peer):
    x = peer.array(cases.data("float32", 4, 18), "float32")
    if not hasattr(x, "T"):
        pytest.skip("no strides here")
    turned = at.take(x, np.arange(18), axis=1).T[::2, ...]
    plain = peer.array(peer.numpy(turned).copy(), "float32")
    ids = peer.array(np.repeat(cases.IDS, 2), "int64")[::2]
    for op in cases.SEGMENT_OPS[:-1]:
        f = getattr(at, op)
        one, other = f(turned, ids, 4), f(plain, peer.array(cases.IDS, "int64"), 4)
        assert oracle.difference(peer.numpy(one), peer.numpy(other), 0) is None, op


@pytest.mark.slow
def test_ten_million_rows_of_float32_in_one_segment_stay_within_a_millionth():
    n = 10**7
    x = np.random.default_rng(0).random(n, dtype=np.float32)
    exact = math.fsum(np.add.reduceat(x.astype(np.float64), np.arange(0, n, 1000)))
    for dtype in ("int64", "uint8"):
        ids = np.zeros(n, dtype)
        total = at.segment_sum(x, ids, 1)
        assert total.dtype == np.float32
        assert abs(float(total[0]) - exact) <= 1e-6 * exact
    mean = at.segment_mean(x, ids, 1)
    assert abs(float(mean[0]) - exact / n) <= 1e-6 * exact / n
    variance = at.segment_variance(x, ids, 1)
    assert abs(float(variance[0]) - np.var(x.astype(np.float64))) <= 2e-6
    soft = at.segment_softmax(x, ids, 1)
    assert abs(math.fsum(np.add.reduceat(soft.astype(np.float64), np.arange(0, n, 1000))) - 1) <= 1e-6


@pytest.mark.parametrize("width", [1, 3, 8])
def test_long_segments_of_float32_stay_within_a_millionth(width):
    x = np.random.default_rng(1).random((10**5, width), dtype=np.float32)
    ids = np.arange(10**5) % 2
    got = at.segment_sum(x, ids, 2)
    for s in range(2):
        want = x[ids == s].astype(np.float64).sum(0)
        assert (abs(got[s] - want) <= 1e-6 * want).all()


def test_default_dtypes_are_the_frameworks(fw):
    ids, x = fw.array([0, 0], "int64"), fw.array([1, 2], "int32")
    assert fw.dtype(at.segment_count(ids, 1)) == fw.default("f")
    assert fw.dtype(at.segment_mean(x, ids, 1)) == fw.default("f")


def test_torchs_default_dtype_is_followed(torch):
    ids, x = torch.tensor([0, 0]), torch.tensor([1, 2])
    try:
        for dtype in (torch.float64, torch.float16, torch.float32):
            torch.set_default_dtype(dtype)
            for got in (
                at.segment_count(ids, 1),
                at.segment_mean(x, ids, 1),
                at.exp(x),
                at.mean(x),
                at.maximum(x, 0.5),
            ):
                assert got.dtype == dtype
    finally:
        torch.set_default_dtype(torch.float32)


def test_results_stay_on_the_device(fw):
    if fw.elsewhere is None:
        pytest.skip("one device")
    x, ids = fw.empty_elsewhere((5, 2), "float32"), fw.empty_elsewhere((5,), "int32")
    for op in cases.SEGMENT_OPS[:-1]:
        got = getattr(at, op)(x, ids, 3)
        assert fw.device(got) == fw.elsewhere, op
        assert tuple(got.shape) == ((5, 2) if op in ("segment_softmax", "segment_normalize") else (3, 2)), op
        assert fw.device(getattr(at, op)(x, np.zeros(5, int), 3)) == fw.elsewhere, op
    assert fw.device(at.segment_count(ids, 3)) == fw.elsewhere
    parts = fw.empty_elsewhere((4,), "int64")
    assert fw.device(at.partition_ids(parts, 5)) == fw.elsewhere
    for op in ("sum", "min", "max", "softmax"):
        assert fw.device(getattr(at, f"partition_{op}")(x, parts, 5)) == fw.elsewhere, op


def test_subclasses_of_arrays_are_arrays(fw):
    if fw.subclass is None:
        pytest.skip("no subclass here")
    x = fw.subclass(fw.array([0.0, 1.0, 2.0, 3.0], "float32"))
    got = at.segment_sum(x, fw.array([0, 1, 1, 5], "int64"), 2)
    assert fw.numpy(got).tolist() == [0.0, 3.0]


@pytest.mark.parametrize("op", cases.SEGMENT_OPS[:-1])
@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_numpy_ids_beyond_32_bits_are_dropped_whatever_width_they_get(peer, op, dtype):
    """2**32 and 2**33 + 1 read 0 and 1 where a framework cuts them to 32 bits."""
    if dtype in peer.lacks and dtype not in peer.narrow:
        pytest.skip("the framework has no such dtype, and refuses NumPy's")
    far = np.array([0, 2**32, 1, 2**33 + 1, 2**32 - 1, 1], dtype)
    x = cases.data("float32", 6)
    got = getattr(at, op)(peer.array(x, "float32"), far, 2)
    want = oracle.segment(op, x, far, 2, "float32")
    assert oracle.difference(peer.numpy(got), want, 2e-6) is None


def test_ids_are_not_changed_in_place(fw):
    ids = fw.array([-1, 5, 0, 99], "int64")
    x = fw.array([1.0, 2.0, 3.0, 4.0], "float32")
    for op in cases.SEGMENT_OPS[:-1]:
        getattr(at, op)(x, ids, 2)
    assert fw.numpy(ids).tolist() == [-1, 5, 0, 99]
    assert fw.numpy(x).tolist() == [1.0, 2.0, 3.0, 4.0]
