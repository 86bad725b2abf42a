"""64-bit types on and off, also switched within a process; 64-bit NumPy data beside 32-bit JAX; weak types."""

import warnings

import jax
import jax.experimental
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import anytensor as at

enable_x64 = (
    jax if hasattr(jax, "enable_x64") else jax.experimental
).enable_x64  # the older place is the second

SMALL = np.array([1, 2, 4], np.int8)
IDS = np.array([0, 1, 1])


def defaults(x):
    """The dtypes that are not the operands' own."""
    whole = jnp.asarray(SMALL)
    return {
        "mean": at.mean(whole).dtype,
        "sum": at.sum(whole).dtype,
        "exp": at.exp(whole).dtype,
        "maximum": at.maximum(whole, 0.5).dtype,
        "cumsum": at.cumsum(whole).dtype,
        "zeros": at.zeros(2, like=whole).dtype,
        "full": at.full(2, 1.5, dtype="float64", like=x).dtype,
        "arange": at.arange(3, like=x).dtype,
        "arange of floats": at.arange(3.0, like=x).dtype,
        "segment_mean": at.segment_mean(whole, IDS, 2).dtype,
        "segment_softmax": at.segment_softmax(whole, IDS, 2).dtype,
        "segment_count": at.segment_count(jnp.asarray(IDS), 2).dtype,
        "segment_sum of bool": at.segment_sum(whole > 1, IDS, 2).dtype,
        "partition_ids": at.partition_ids(jnp.asarray([1, 2]), 3).dtype,
        "astype": at.astype(x, "float64").dtype,
        "align": at.align_arrays(x, 2)[1].dtype,
        "numpy": at.maximum(x, np.ones(3)).dtype,
        "numpy data": at.segment_sum(np.ones(3), jnp.asarray(IDS), 2).dtype,
    }


KEEPS_ITS_OWN = {"zeros": "int8", "numpy": None}


def expected(wide):
    f, i = ("float64", "int64") if wide else ("float32", "int32")
    whole = ("sum", "cumsum", "arange", "segment_sum of bool", "partition_ids", "align")
    return {
        name: i if name in whole else KEEPS_ITS_OWN.get(name) or f
        for name in defaults(jnp.zeros(3, "float32"))
    }


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
def test_default_dtypes_follow_the_switch():
    """Back and forth: what was compiled under one setting never serves the other."""
    x = jnp.zeros(3, "float32")
    for wide in (False, True, False, True):
        jax.config.update("jax_enable_x64", wide)
        got = {name: str(dtype) for name, dtype in defaults(x).items()}
        assert got == expected(wide)


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
def test_default_dtypes_follow_the_context_manager():
    x = jnp.zeros(3, "float32")
    for wide in (True, False, True):
        with enable_x64(wide):
            assert {name: str(dtype) for name, dtype in defaults(x).items()} == expected(wide)
            inner = not wide
            with enable_x64(inner):
                assert at.mean(jnp.asarray(SMALL)).dtype == ("float64" if inner else "float32")
        assert at.mean(jnp.asarray(SMALL)).dtype == "float32"


def test_compiled_functions_follow_the_switch():
    run = jax.jit(lambda w: (at.segment_mean(w, IDS, 2), at.sum(w), at.arange(2, like=w)))
    for wide in (False, True, False):
        with enable_x64(wide):
            bits = 64 if wide else 32
            assert [str(y.dtype) for y in run(SMALL)] == [f"float{bits}", f"int{bits}", f"int{bits}"]


def test_wide_arrays_keep_their_width_under_the_switch():
    with enable_x64(True):
        x = jnp.array([0.1, 0.2, 0.3], "float64")
        total = at.segment_sum(x, IDS, 2)
        assert total.dtype == "float64" and total.tolist() == [0.1, 0.5]
        assert at.maximum(x, jnp.ones(3, "float32")).dtype == "float64"
        assert at.segment_sum(jnp.array([2**40, 1, 1]), IDS, 2).tolist() == [2**40, 2]


# ---- 64-bit integers of NumPy beside 32-bit JAX
FAR = {
    "int64": [2**32, -(2**32) + 1, 2**31, 2**32 + 1, -1, 2**63 - 1, -(2**63), -(2**32), 2**31 + 1],
    "uint64": [2**63, 2**63 + 1, 2**64 - 1, 2**32, 2**31, 2**32 + 1, 2**64 - 2**32],
}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dtype", FAR)
def test_far_ids_of_numpy_are_dropped(dtype, wide):
    ids = np.array([0, *FAR[dtype], 2], dtype)
    with enable_x64(wide):
        x = jnp.arange(1.0, len(ids) + 1)
        want = [1.0, 0.0, float(len(ids))]
        for run in (lambda f: f, jax.jit):
            assert run(lambda x: at.segment_sum(x, ids, 3))(x).tolist() == want
            assert run(lambda x: at.segment_max_or_constant(x, ids, 3))(x).tolist() == want
            shares = run(lambda x: at.segment_softmax(x, ids, 3))(x)
            assert shares.tolist() == [1.0] + [0.0] * len(FAR[dtype]) + [1.0]
        assert at.segment_count(jnp.asarray(np.array([0, 2], dtype)), 3).tolist() == [1.0, 0.0, 1.0]
        grad = jax.grad(lambda x: at.segment_sum(x, ids, 3).sum())(x)
        assert grad.tolist() == [1.0] + [0.0] * len(FAR[dtype]) + [1.0]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dtype", FAR)
def test_far_indices_of_numpy_take_nothing(dtype, wide):
    with enable_x64(wide):
        for length in (1, 3):
            x = jnp.arange(1.0, length + 1)
            far = [v for v in FAR[dtype] if not -length <= v < length]
            index = np.array([0, *far, length - 1], dtype)
            for got in (at.take(x, index), jax.jit(lambda x, index=index: at.take(x, index))(x)):
                assert [got[0], got[-1]] == [1.0, length] and np.isnan(got[1:-1]).all()
            whole = at.take(jnp.arange(1, length + 1), index)
            assert whole.tolist() == [1] + [0] * len(far) + [length]


def test_ids_of_jax_with_64_bits_do_not_wrap():
    with enable_x64(True):
        ids = jnp.array([0, 2**32, -(2**32) + 1, 2**31, 1])
        assert at.segment_sum(jnp.arange(1.0, 6.0), ids, 2).tolist() == [1.0, 5.0]
        run = jax.jit(lambda x, ids: at.segment_sum(x, ids, 2))
        assert run(jnp.arange(1.0, 6.0), ids).tolist() == [1.0, 5.0]
        assert np.isnan(at.take(jnp.arange(3.0), jnp.array([2**32, -(2**32)]))).all()


def test_unsigned_ids_of_jax_do_not_wrap():
    for dtype in ("uint8", "uint16", "uint32"):
        top = np.iinfo(dtype).max
        ids = jnp.array([0, top, 1, top - 1], dtype)
        assert at.segment_sum(jnp.ones(4), ids, 2).tolist() == [1.0, 1.0], dtype
        if top > 3:
            assert np.isnan(at.take(jnp.ones(3), ids)[1])
    many = at.segment_sum(jnp.array([7.0]), jnp.array([211], "uint8"), 290)  # more segments than uint8 counts
    assert many[211] == 7.0 and many.sum() == 7.0


def test_64_bit_numpy_data_stops_at_the_ends_of_32_bits():
    ids = jnp.array([0, 0, 1])
    got = at.segment_max(np.array([2**40, 1, -(2**40)]), ids, 2)
    assert got.dtype == "int32" and got.tolist() == [2**31 - 1, -(2**31)]
    assert at.maximum(ids, np.int64(2**40)).tolist() == [2**31 - 1] * 3


def test_float64_of_numpy_joins_as_float32():
    x, host = jnp.ones(3), np.array([0.1, 2.5, -1e30])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = at.maximum(x, host)
        total = at.segment_sum(host[:1], jnp.array([0]), 1)
        scalar = at.maximum(x, np.float64(2.0))
    assert got.dtype == "float32" and got.tolist() == [1.0, 2.5, 1.0]
    assert total.dtype == "float32" and total[0] == np.float32(0.1) and scalar.dtype == "float32"


# ---- Python scalars
@pytest.mark.parametrize("value", [2**31, 2**32, 2**63, 2**64, 10**30, -(2**31) - 1])
def test_a_python_integer_that_does_not_fit_is_an_overflow_error(value):
    x, whole = jnp.ones(2), jnp.array([1, 2])
    for call in (
        lambda: at.maximum(whole, value),
        lambda: at.where(whole > 1, whole, value),
        lambda: at.clip(whole, 0, value),
        lambda: at.fill_nan(whole, value),
        lambda: at.full_like(whole, value),
        lambda: at.full(2, value, dtype="int32", like=x),
        lambda: at.segment_max_or_constant(whole, whole, 3, value),
        lambda: at.align_arrays(x, value),
        lambda: jax.jit(lambda w: at.maximum(w, value))(whole),
    ):
        with pytest.raises(OverflowError, match="out of bounds for int32"):
            call()
    assert at.maximum(x, value).tolist() == [max(1.0, float(np.float32(value)))] * 2
    assert at.full(2, value, like=x).tolist() == [float(np.float32(value))] * 2


def test_a_python_integer_of_64_bits_is_exact_with_64_bit_types():
    with enable_x64(True):
        whole = jnp.array([1, 2])
        assert at.maximum(whole, 2**62 + 1).tolist() == [2**62 + 1] * 2
        assert at.clip(whole, max=-(2**63)).tolist() == [-(2**63)] * 2
        assert at.full_like(whole, 2**63 - 1).tolist() == [2**63 - 1] * 2
        assert at.segment_min_or_constant(whole, whole, 3, 2**53 + 1).tolist() == [2**53 + 1, 1, 2]
        unsigned = jnp.array([1], "uint64")
        assert at.maximum(unsigned, 2**64 - 1).tolist() == [2**64 - 1]
        with pytest.raises(OverflowError):
            at.maximum(whole, 2**63)


def test_a_size_that_needs_64_bits_is_refused_not_wrapped():
    for size in (2**31, 2**32, 2**32 + 3):
        try:
            got = at.segment_sum(jnp.zeros((0, 0)), jnp.zeros(0, int), size)
        except (OverflowError, ValueError, TypeError):
            continue
        assert got.shape == (size, 0)  # JAX before 0.5 or so makes it: it holds nothing


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_python_scalars_keep_the_dtype_of_half_precision():
    for dtype in ("float16", "bfloat16"):
        x = jnp.ones(2, dtype)
        assert at.maximum(x, 2.5).dtype == dtype
        assert at.maximum(x, 10**6).tolist() == ([np.inf] * 2 if dtype == "float16" else [999424.0] * 2)
        assert at.maximum(x, True).dtype == dtype


# ---- weak types, half precision
def test_weak_arrays_carry_their_dtype():
    """jnp.asarray(2.0) is weak for JAX; for us an array has the dtype that it shows."""
    real, whole = jnp.asarray(2.0), jnp.asarray(2)
    assert real.weak_type and whole.weak_type
    for x, other, want in (
        (jnp.ones(2, "float16"), real, "float32"),
        (jnp.ones(2, "bfloat16"), real, "float32"),
        (jnp.ones(2, "int8"), whole, "int32"),
        (jnp.ones(2, "int8"), real, "float32"),
        (jnp.ones(2, "float16"), whole, "float16"),
        (jnp.ones(2, "float16"), 2.0, "float16"),
        (jnp.ones(2, "int8"), 2, "int8"),
    ):
        for y in (at.maximum(x, other), at.maximum(other, x), at.where(x > 0, x, other)):
            assert y.dtype == want
        assert (
            jax.jit(at.maximum)(x, other if isinstance(other, jax.Array) else jnp.asarray(other, want)).dtype
            == want
        )
    assert at.clip(jnp.ones(2, "float16"), real).dtype == "float16"
    assert at.concatenate([jnp.ones(2, "float16"), jnp.full(1, real)]).dtype == "float32"
    assert at.segment_max_or_constant(jnp.ones(2, "float16"), np.array([0, 0]), 2, real).dtype == "float16"


def test_weak_operands_of_jit_give_the_same_as_eager():
    """A Python number handed to jit is a weak tracer."""
    x = jnp.ones(2, "float16")
    assert jax.jit(at.maximum)(x, 2.0).dtype == at.maximum(x, jnp.asarray(2.0)).dtype == "float32"
    assert jax.vmap(at.maximum, (None, 0))(x, jnp.array([1.0, 2.0])).dtype == "float32"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_added_in_float32(dtype):
    x = jnp.ones(3000, dtype)
    ids = np.zeros(3000, int)
    for run in (lambda f: f, jax.jit):
        total = run(lambda x: at.segment_sum(x, ids, 1))(x)
        assert total.dtype == dtype and float(total[0]) == float(jnp.asarray(3000.0, dtype))
        assert float(run(lambda x: at.segment_mean(x, ids, 1))(x)[0]) == 1.0
        assert float(run(lambda x: at.segment_variance(x, ids, 1))(x)[0]) == 0.0
        assert float(run(lambda x: at.sum(x))(x)) == float(jnp.asarray(3000.0, dtype))
    assert at.maximum(jnp.ones(2, "float16"), jnp.ones(2, "bfloat16")).dtype == "float32"
    numpys = np.ones(2, ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16)
    assert at.maximum(jnp.ones(2, dtype), numpys).dtype == dtype
    assert at.segment_softmax(numpys, jnp.array([0, 0]), 1).dtype == dtype
