"""Sizes in all their forms, and how often JAX compiles: once per op, size and dtype, not per value."""

import contextlib
import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from frameworks import installed

import anytensor as at

X = np.array([1.0, 2.0, 4.0], np.float32)
IDS = np.array([0, 2, 2], np.int32)


@contextlib.contextmanager
def compilations():
    """Names of the functions that JAX compiles meanwhile."""
    names = []

    class Listener(logging.Handler):
        def emit(self, record):
            text = record.getMessage()
            if text.startswith("Compiling "):
                names.append(text.split()[1])

    listener, logger = Listener(), logging.getLogger("jax._src.interpreters.pxla")
    kept = logger.propagate
    with jax.log_compiles():
        logger.addHandler(listener)
        logger.propagate = False
        others = [
            logging.getLogger(name) for name in ("jax._src.dispatch", "jax._src.compiler", "jax._src.pjit")
        ]
        for other in others:
            other.propagate, other.kept = False, other.propagate
            other.addHandler(logging.NullHandler())
        try:
            yield names
        finally:
            logger.removeHandler(listener)
            logger.propagate = kept
            for other in others:
                other.propagate = other.kept


# ---- forms of a size
@pytest.mark.parametrize(
    "size",
    [3, np.int32(3), np.uint8(3), np.array(3), 3.0, jnp.int32(3), jnp.array(3, "uint8"), np.float64(3.0)],
    ids=lambda size: f"{type(size).__name__}-{getattr(size, 'dtype', '')}",
)
def test_a_size_is_read_once(size):
    x, ids = jnp.asarray(X), jnp.asarray(IDS)
    assert at.segment_sum(x, ids, size).tolist() == [1.0, 0.0, 6.0]
    assert at.partition_ids(jnp.array([1, 2]), size).tolist() == [0, 1, 1]
    assert at.zeros((size, 2), like=x).shape == (3, 2)
    assert at.reshape(x, (size, 1)).shape == (3, 1)
    assert at.repeat(x, 2, total_repeat_length=size).tolist() == [1.0, 1.0, 2.0]
    assert jax.jit(lambda x: at.segment_sum(x, ids, size))(x).tolist() == [1.0, 0.0, 6.0]  # closed over
    assert jax.vmap(lambda x: at.segment_sum(x, ids, size))(x[None]).tolist() == [[1.0, 0.0, 6.0]]


@pytest.mark.parametrize(
    "size, kind, text",
    [
        (jnp.float32(3), TypeError, "integral"),
        (jnp.array(True), TypeError, "size"),
        (jnp.array([3]), TypeError, "ndim=1"),
        (jnp.array(-3), ValueError, "-3"),
        (-3, ValueError, "-3"),
        (None, TypeError, "None"),
        (True, TypeError, "bool"),
    ],
    ids=str,
)
def test_a_size_that_is_none(size, kind, text):
    with pytest.raises(kind, match=f"segment_sum.*'num_segments'.*{text}"):
        at.segment_sum(jnp.asarray(X), jnp.asarray(IDS), size)


TRACED = {
    "num_segments": lambda n: at.segment_sum(jnp.asarray(X), jnp.asarray(IDS), n),
    "total_length": lambda n: at.partition_ids(jnp.asarray(IDS), n),
    "total_repeat_length": lambda n: at.repeat(jnp.asarray(X), 2, total_repeat_length=n),
    "shape": lambda n: at.zeros((n, 2), like=jnp.asarray(X)),
}


@pytest.mark.parametrize("way", ["jit", "vmap", "eval_shape"])
@pytest.mark.parametrize("name", TRACED)
def test_a_traced_size_is_jaxs_own_error_with_a_note(name, way):
    run = {
        "jit": lambda f: jax.jit(f)(3),
        "vmap": lambda f: jax.vmap(f)(jnp.array([3, 3])),
        "eval_shape": lambda f: jax.eval_shape(f, 3),
    }[way]
    with pytest.raises(jax.errors.JAXTypeError) as caught:
        run(TRACED[name])
    assert isinstance(
        caught.value, (jax.errors.TracerIntegerConversionError, jax.errors.ConcretizationTypeError)
    )
    assert any("in anytensor." in note and f"{name}=" in note for note in caught.value.__notes__)


def test_a_repeat_of_traced_counts_without_a_total_is_jaxs_own_error():
    with pytest.raises(jax.errors.ConcretizationTypeError) as caught:
        jax.jit(lambda c: at.repeat(jnp.asarray(X), c))(IDS)
    assert any("anytensor.repeat(" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("name", ["torch", "tensorflow"])
def test_sizes_of_another_framework_are_refused(name):
    if name == "tensorflow" and installed(name) < (2, 14):
        pytest.skip("its bfloat16 takes the name from ml_dtypes', and JAX then knows none")
    module = pytest.importorskip(name)
    size = module.tensor(3) if name == "torch" else module.constant(3)
    try:
        at.exp(size)
    except TypeError:
        pytest.skip(f"{name} is not served")
    with pytest.raises(TypeError, match=f"num_segments.*{name}.*jax"):
        at.segment_sum(jnp.asarray(X), jnp.asarray(IDS), size)


def test_an_exported_size_beside_numpy_arrays_is_refused():
    (n,) = jax.export.symbolic_shape("n")
    spec = jax.ShapeDtypeStruct((n,), jnp.float32)
    with pytest.raises(TypeError, match="symbolic"):
        jax.export.export(jax.jit(lambda y: at.segment_sum(X, IDS, at.shape(y)[0])))(spec)


# ---- compilations
def test_repeated_calls_compile_once():
    x, ids, counts = jnp.asarray(X), jnp.asarray(IDS), jnp.array([2, 1])
    calls = {
        "segment_sum": lambda x: at.segment_sum(x, ids, 3),
        "segment_max": lambda x: at.segment_max(x, ids, 3),
        "segment_softmax": lambda x: at.segment_softmax(x, ids, 3),
        "segment_normalize": lambda x: at.segment_normalize(x, ids, np.int64(3)),
        "partition_softmax": lambda x: at.partition_softmax(x, counts, 3),
        "exp": lambda x: at.exp(x),
        "take": lambda x: at.take(x, ids),
        "repeat": lambda x: at.repeat(x, counts[:1], total_repeat_length=5),
        "concatenate": lambda x: at.concatenate([x, x]),
        "sum": lambda x: at.sum(x, axes=(0,)),
        "astype": lambda x: at.astype(x, "int32"),
    }
    with compilations() as first:
        for call in calls.values():
            call(x)
    values = [x * k for k in range(2, 5)]
    with compilations() as again:
        for call in calls.values():
            for value in values:
                call(value)
    assert again == []
    assert all(first.count(f"jit({name})") + first.count(name) <= 1 for name in calls)


def test_fresh_constants_do_not_compile_anew():
    x, whole, ids = jnp.asarray(X), jnp.array([1, 2, 3]), jnp.asarray(IDS)
    mask = x > 1

    def calls(c):
        return (
            at.segment_max_or_constant(x, ids, 3, constant=c),
            at.segment_min_or_constant(x, ids, 3, c + 0.5),
            at.segment_max_or_constant(whole, ids, 3, c),
            at.maximum(x, c),
            at.minimum(c + 0.25, x),
            at.maximum(whole, c),
            at.clip(x, c, c + 1),
            at.clip(whole, min=c),
            at.fill_nan(x, c),
            at.where(mask, x, c + 0.5),
            at.maximum(x, np.float32(c)),
        )

    calls(0)
    with compilations() as names:
        results = [calls(c) for c in range(1, 20)]
    assert names == []
    for c, got in enumerate(results, 1):
        assert got[0][1] == c and got[1][1] == c + 0.5 and got[2].dtype == got[7].dtype == "int32"
        assert (
            got[3].tolist() == np.maximum(X, c).tolist() and got[6].tolist() == np.clip(X, c, c + 1).tolist()
        )


def test_fresh_constants_do_not_compile_an_outer_function_anew():
    """A Python number handed to jit is traced; a closed-over one is part of the program."""
    run = jax.jit(lambda x, c: at.segment_max_or_constant(at.maximum(x, c), IDS, 3, c))
    x = jnp.asarray(X)
    run(x, 0.5)
    with compilations() as names:
        results = [run(x, c).tolist() for c in (1.5, 2.5, 3.5)]
    assert names == [] and [r[1] for r in results] == [1.5, 2.5, 3.5]


def test_a_new_size_compiles_once():
    x, ids = jnp.asarray(X), jnp.asarray(IDS)
    with compilations() as names:
        for _ in range(3):
            for size in (11, 12, 13):
                assert at.segment_mean(x, ids, size).shape == (size,)
                assert at.segment_mean(x, ids, jnp.array(size)).shape == (size,)
                assert at.segment_mean(x, ids, np.uint8(size)).shape == (size,)
    assert len([name for name in names if "segment_mean" in name]) == 3


def test_an_outer_jit_compiles_one_program():
    """Our functions are inlined: nothing of ours is compiled beside the caller's."""

    def model(x):
        return at.segment_sum(at.exp(x), IDS, 3) + at.segment_max_or_constant(x, IDS, 3)

    x = jnp.asarray(X)
    with compilations() as names:
        jax.jit(model)(x)
    assert len(names) == 1 and "model" in names[0]


def test_gradients_of_fresh_values_compile_once():
    x, ids = jnp.asarray(X), jnp.asarray(IDS)
    grad = jax.grad(lambda x: (at.segment_softmax(x, ids, 3) * x).sum())
    grad(x)
    with compilations() as names:
        for k in range(3):
            grad(x + k)
    assert [name for name in names if "segment" in name] == []
