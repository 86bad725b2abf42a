"""Two frameworks in one call (SEMANTICS 24): a TypeError that names both and the argument. NumPy is no second one.

Accuses src/core/promote.c (arrays) and src/python/args.c (sizes). One process imports every framework here.
"""

import itertools

import cases
import numpy as np
import pytest
from cases import A
from frameworks import FOUND, ROWS, framework
from test_errors import GOOD

import anytensor as at

OTHERS = [name for name in FOUND if name not in ("numpy", "jax32")]
PAIRS = pytest.mark.parametrize(
    ("one", "other"), list(itertools.permutations(OTHERS, 2)), ids=lambda name: str(name)
)
X = A([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "float32")
CALLS = {  # arguments by name; each array in turn is the other framework's
    op: GOOD[op]
    for op in (
        *("matmul", "equal_nan"),
        *("maximum", "minimum", "where", "take", "repeat", "segment_sum", "segment_max", "segment_softmax"),
        *("segment_mean", "partition_sum", "partition_softmax"),
    )
} | {
    "clip": {"x": X, "min": A(0.0, "float32"), "max": A(1.0, "float32")},
    "fill_nan": {"x": X, "value": A(0.0, "float32")},
    "full": {"shape": (2,), "fill_value": A(1.0, "float32"), "like": X},
    "segment_max_or_constant": {**GOOD["segment_max_or_constant"], "constant": A(7.0, "float32")},
}
SIZED = {
    "segment_sum": "num_segments",
    "segment_softmax": "num_segments",
    "segment_count": "num_segments",
    "partition_ids": "total_length",
    "partition_max": "total_length",
    "repeat": "total_repeat_length",
    "reshape": "shape",
    "zeros": "shape",
    "full": "shape",
}


def names_both(error, op, one, other):
    """A message names a framework by its module, the generic adapter's by its namespace."""
    text = str(error.value)
    assert op in text, text
    for name in (one, other):
        assert name in text, f"{name} is not in {text!r}"
    return text


@PAIRS
@pytest.mark.parametrize("op", CALLS)
def test_arrays_of_two_frameworks_are_a_type_error_that_names_both_and_the_argument(one, other, op):
    first, second, good = framework(one), framework(other), CALLS[op]
    arrays = [name for name, value in good.items() if isinstance(value, A)]
    for name in arrays[1:]:
        given = {
            key: cases.build(second if key == name else first, value, framework("numpy"))
            for key, value in good.items()
        }
        with pytest.raises(TypeError) as error:
            getattr(at, op)(**given)
        text = names_both(error, op, one, other)
        assert any(f"'{key}'" in text for key in arrays), text


@PAIRS
@pytest.mark.parametrize("op", SIZED)
def test_a_size_of_another_framework_is_a_type_error_that_names_both_and_the_argument(one, other, op):
    first, second, name = framework(one), framework(other), SIZED[op]
    good = cases.build(first, GOOD[op], framework("numpy"))
    size = second.array(2 if op != "partition_max" and op != "partition_ids" else 3, "int64")
    given = {**good, name: (size, 3) if name == "shape" else size}
    with pytest.raises(TypeError) as error:
        getattr(at, op)(**given)
    assert f"'{name}'" in names_both(error, op, one, other)


@PAIRS
def test_a_list_of_two_frameworks_is_a_type_error(one, other):
    x, y, z = framework(one).array([1.0], "float32"), framework(other).array([1.0], "float32"), np.ones(1)
    for arrays in ([x, y], (x, z, y), [z, x, x, y]):
        with pytest.raises(TypeError) as error:
            at.concatenate(arrays)
        assert "'arrays'" in names_both(error, "concatenate", one, other)
        with pytest.raises(TypeError) as error:
            at.align_arrays(*arrays)
        names_both(error, "align_arrays", one, other)


@PAIRS
def test_a_failed_call_leaves_both_frameworks_usable(one, other):
    for name in (one, other):
        fw = framework(name)
        x, y = (
            fw.array([1.0, 2.0], "float32"),
            framework(other if name == one else one).array([3.0], "float32"),
        )
        with pytest.raises(TypeError):
            at.maximum(x, y)
        assert fw.numpy(at.maximum(x, x)).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("op", CALLS)
def test_numpy_joins_in_every_place_while_all_frameworks_are_loaded(name, op):
    for other in OTHERS:
        framework(other)
    fw, good = framework(name), CALLS[op]
    arrays = [key for key, value in good.items() if isinstance(value, A)]
    for ours in arrays:
        given = {
            key: cases.build(fw if key == ours else framework("numpy"), value, framework("numpy"))
            for key, value in good.items()
        }
        assert fw.is_array(getattr(at, op)(**given)), ours


@pytest.mark.parametrize("name", OTHERS)
def test_a_numpy_size_stands_beside_any_framework_and_any_size_beside_numpy(name):
    fw = framework(name)
    x, ids = np.ones(3), np.array([0, 1, 1])
    for size in (2, np.int64(2), np.array(2)):
        assert fw.is_array(at.segment_sum(fw.array(x, "float32"), ids, size))
    got = at.segment_sum(x, ids, fw.array(2, "int64"))  # a concrete size is a number
    assert (got if isinstance(got, np.ndarray) else fw.numpy(got)).tolist() == [1.0, 2.0]


def test_every_row_is_in_a_pair_where_it_is_installed():
    assert {name.removesuffix("32") for name in FOUND} - {"numpy"} == set(OTHERS) & set(ROWS)
