"""Bad input (SEMANTICS 6, 7, 9, 12, 24, 25): the documented exception, and a message that names function, argument,
expected and found; the framework's own exceptions keep their type and carry a note. Accuses src/ops/checks.c,
src/python/args.c and src/python/errors.c.
"""

import itertools
import warnings

import cases
import numpy as np
import pytest
from cases import A, N
from frameworks import FOUND, framework

import anytensor as at
from anytensor import _core

X = A([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "float32")
V = A([1.0, 2.0, 3.0], "float32")
I = A([0, 1, 1], "int64")  # noqa: E741
NOT_ARRAYS = {
    "a list": [1.0],
    "a tuple": (1.0,),
    "None": None,
    "a string": "abc",
    "an object": object(),
    "a dict": {},
    "a complex": 1j,
    "a function": len,
}

# A call of each function that works: the bad calls below change one argument of it.
GOOD = {
    **{
        op: {"x": X}
        for op in (
            *(
                "exp",
                "log",
                "sqrt",
                "rsqrt",
                "is_nan",
                "is_inf",
                "is_finite",
                "sum",
                "prod",
                "mean",
                "min",
                "max",
            ),
            *("cumsum", "shape", "transpose"),
        )
    },
    **{op: {"x": X, "y": X} for op in ("maximum", "minimum", "equal_nan")},
    **{op: {"x": X, "value": 0.0} for op in ("fill_nan", "fill_nan_mask")},
    "nan_to_num": {"x": X, "nan": 1.0},
    "where": {"condition": A([[True, False]], "bool"), "x": X, "y": X},
    "clip": {"x": X, "min": 0, "max": 1},
    "take": {"x": X, "indices": I},
    "repeat": {"x": V, "repeats": I},
    "reshape": {"x": X, "shape": (2, 3)},
    "split": {"x": X, "indices_or_sections": 3},
    **{op: {"arrays": [X, X]} for op in ("concatenate", "stack")},
    "matmul": {"x": X, "y": A([[1.0], [2.0]], "float32")},
    "align_arrays": {"arrays": [X, N([1.0], "float32"), None, 2.0]},
    **{op: {"x": X, "dtype": "float64"} for op in ("astype", "cast")},
    "full": {"shape": (2,), "fill_value": 1.0, "like": X},
    **{op: {"shape": (2,), "like": X} for op in ("zeros", "ones")},
    "full_like": {"x": X, "fill_value": 1.0},
    **{op: {"x": X} for op in ("zeros_like", "ones_like")},
    "arange": {"start": 3, "like": X},
    **{op: {"x": X, "segment_ids": I, "num_segments": 2} for op in cases.SEGMENT_OPS},
    "segment_softmax": {"logits": X, "segment_ids": I, "num_segments": 2},
    "segment_logsumexp": {"logits": X, "segment_ids": I, "num_segments": 2},
    "segment_attention": {"logits": X, "values": X, "segment_ids": I, "num_segments": 2},
    "segment_count": {"segment_ids": I, "num_segments": 2},
    "partition_ids": {"partitions": A([1, 2], "int64"), "total_length": 3},
    **{
        f"partition_{op}": {"x": X, "partitions": A([1, 2], "int64"), "total_length": 3}
        for op in ("sum", "min", "max")
    },
    "partition_softmax": {"logits": X, "partitions": A([1, 2], "int64"), "total_length": 3},
}
ARRAYS = (
    "x",
    "y",
    "condition",
    "logits",
    "values",
    "segment_ids",
    "partitions",
    "indices",
    "min",
    "max",
    "value",
    "nan",
    "repeats",
    "fill_value",
)
SIZES = {
    "num_segments": (*cases.SEGMENT_OPS, "segment_attention"),
    "total_length": [op for op in GOOD if op.startswith("partition")],
}


def call(fw, op, arguments):
    """A call by position as far as the signature has positions, else by keyword."""
    built = cases.build(fw, arguments, framework("numpy"))
    first = [built.pop(name) for name in ("x", "start") if name in built and op in ("shape", "arange")]
    first = built.pop("arrays") if op == "align_arrays" else first
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(at, op)(*first, **built)


def bad(fw, op, error, *fragments, **changes):
    """Asserts that a changed call raises exactly this type, with its text."""
    with pytest.raises(error) as caught:
        call(fw, op, {**GOOD[op], **changes})
    assert type(caught.value) is error
    text = str(caught.value)
    for fragment in (op, *fragments):
        assert fragment in text, f"{fragment!r} is not in {text!r}"


def test_every_function_has_a_good_call_here():
    assert set(GOOD) == set(_core.ops)


@pytest.mark.parametrize("op", sorted(GOOD))
def test_the_good_call_works(fw, op):
    call(fw, op, GOOD[op])


# --- kinds ------------------------------------------------------------------------------------------------

OPERANDS = [(op, name) for op, good in GOOD.items() for name in good if name in ARRAYS and op != "shape"]


@pytest.mark.parametrize("kind", NOT_ARRAYS)
@pytest.mark.parametrize(("op", "name"), OPERANDS)
def test_what_is_no_array_is_a_type_error(fw, op, name, kind):
    if kind == "None" and name in ("min", "max"):
        pytest.skip("None is no bound")
    found = type(NOT_ARRAYS[kind]).__name__ if kind != "None" else "None"
    bad(fw, op, TypeError, name, "expected", found, **{name: NOT_ARRAYS[kind]})


@pytest.mark.parametrize("kind", ["a list", "None", "a string", "an object"])
def test_shape_of_what_is_no_array_is_a_type_error(fw, kind):
    with pytest.raises(TypeError, match="shape.*'x'.*expected"):
        at.shape(NOT_ARRAYS[kind])


@pytest.mark.parametrize("kind", ["None", "a string", "an object", "a dict"])
@pytest.mark.parametrize("op", ["concatenate", "stack"])
def test_joining_what_is_no_list_is_a_type_error(fw, op, kind):
    bad(fw, op, TypeError, "arrays", "expected a list", arrays=NOT_ARRAYS[kind])


def test_concatenate_of_a_generator_or_an_array_is_a_type_error(fw):
    bad(fw, "concatenate", TypeError, "arrays", "expected a list", "generator", arrays=(one for one in ()))
    bad(fw, "concatenate", TypeError, "arrays", "expected a list", arrays=X)


def test_concatenate_of_lists_is_a_type_error(fw):
    bad(fw, "concatenate", TypeError, "arrays", "list is not a supported array type", arrays=[X, [1.0]])


@pytest.mark.parametrize("op", ["concatenate", "stack"])
def test_joining_nothing_is_a_value_error(fw, op):
    bad(fw, op, ValueError, "arrays", "expected at least one array", arrays=[])


def test_stack_of_unequal_shapes_is_a_value_error_that_shows_them(fw):
    bad(fw, "stack", ValueError, "'arrays'", "one shape", "(3, 2)", "(3,)", arrays=[X, X, V])
    for axis in (3, -4):
        bad(fw, "stack", ValueError, "'axis'", str(axis), "out of range", axis=axis)
    for op in ("stack", "split"):
        bad(fw, op, TypeError, "'axis'", "expected an int", "None", axis=None)


@pytest.mark.parametrize("axes", [(), (0,), (0, 0), (1, -1), (0, 2), (-3, 0), (0, 1, 2), 0], ids=str)
def test_axes_that_are_no_permutation_are_a_value_error(fw, axes):
    bad(fw, "transpose", ValueError, "'axes'", "permutation of the 2 axes", axes=axes)


@pytest.mark.parametrize("sections", [0, -1, 2, 4, np.int64(0), np.int8(-3), 2**31, 2**62])
def test_sections_that_are_none_or_not_equal_are_a_value_error(fw, sections):
    bad(fw, "split", ValueError, "'indices_or_sections'", "section", indices_or_sections=sections)


@pytest.mark.parametrize(
    "cuts",
    [None, True, "2", 1.5, {}, object(), [None], [1, "2"], [1.5], [True], [[1]], ([1],)],
    ids=lambda cuts: str(cuts).split(" at ")[0],
)
def test_what_is_no_number_of_sections_and_no_index_is_a_type_error(fw, cuts):
    bad(fw, "split", TypeError, "'indices_or_sections'", "expected", indices_or_sections=cuts)


@pytest.mark.parametrize(
    "cuts", [A([1.0], "float32"), A([True], "bool"), A([[1]], "int64"), A(1.0, "float32")]
)
def test_cuts_of_other_arrays_are_a_type_error(fw, cuts):
    for array in (A, N):
        given, dtype = array(cuts.data, cuts.dtype), fw.held(cuts.dtype) if array is A else cuts.dtype
        bad(fw, "split", TypeError, "'indices_or_sections'", dtype, indices_or_sections=given)


@pytest.mark.parametrize("dtype", ["bool", "float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("op", "name"), [(op, name) for op, name in OPERANDS if name in ("segment_ids", "partitions", "indices")]
)
def test_ids_that_are_not_integral_are_a_type_error_naming_the_operand(fw, op, name, dtype):
    if dtype in fw.lacks:
        pytest.skip("a dtype that the framework lacks")
    dtype = fw.held(dtype)
    bad(fw, op, TypeError, f"'{name}'", "kind='index'", dtype, **{name: A([0, 1, 1], dtype)})


@pytest.mark.parametrize("dtype", ["bool", "float32"])
def test_repeats_that_are_not_integral_are_a_type_error(fw, dtype):
    bad(fw, "repeat", TypeError, "'repeats'", "expected integers", dtype, repeats=A([0, 1, 1], dtype))
    bad(fw, "repeat", TypeError, "'repeats'", "expected integers", repeats=1.5)
    bad(fw, "repeat", TypeError, "'repeats'", "expected integers", repeats=True)


# --- sizes ------------------------------------------------------------------------------------------------

SIZE_CALLS = [(op, name) for name, ops in SIZES.items() for op in ops] + [
    ("zeros", "shape"),
    ("ones", "shape"),
    ("full", "shape"),
    ("reshape", "shape"),
    ("repeat", "total_repeat_length"),
]
NO_SIZES = {
    "None": None,
    "True": True,
    "np.True_": np.True_,
    "2.5": 2.5,
    "np.float64(2.5)": np.float64(2.5),
    "nan": np.nan,
    "inf": np.inf,
    "1e300": 1e300,
    "a string": "2",
    "np.str_": np.str_("2"),
    "a complex": 2j,
    "np.complex64": np.complex64(2),
    "np.timedelta64": np.timedelta64(2),
    "np.datetime64": np.datetime64(2, "s"),
    "np.void": np.void(b"ab"),
    "an object": object(),
    "a dict": {},
    "a 0-d float array": A(2.0, "float32"),
    "a 0-d bool array": A(True, "bool"),
    "a vector of one": A([2], "int64"),
    "a NumPy vector of one": N([2], "int64"),
    "a 0-d NumPy float array": N(2.0, "float64"),
}


@pytest.mark.parametrize("kind", NO_SIZES)
@pytest.mark.parametrize(("op", "name"), SIZE_CALLS)
def test_what_is_no_size_is_a_type_error(fw, op, name, kind):
    if kind == "None" and name == "total_repeat_length":
        pytest.skip("None is the default")
    bad(fw, op, TypeError, name, "expected", **{name: NO_SIZES[kind]})


@pytest.mark.parametrize("size", [-1, -(2**62), np.int64(-3), -2.0, A(-1, "int64"), N(-1, "int8")], ids=repr)
@pytest.mark.parametrize(("op", "name"), SIZE_CALLS)
def test_a_negative_size_is_a_value_error(fw, op, name, size):
    if name == "shape" and op == "reshape":
        size = (size, -1)
    bad(fw, op, ValueError, name, "expected", "found", **{name: size})


@pytest.mark.parametrize("size", [2**63, -(2**63), 10**30])
@pytest.mark.parametrize(("op", "name"), SIZE_CALLS)
def test_a_size_beyond_64_bits_is_a_value_error(fw, op, name, size):
    bad(fw, op, ValueError, name, "below 2**63", **{name: size})


@pytest.mark.parametrize("op", cases.SEGMENT_OPS)
def test_a_size_that_no_memory_holds_is_an_error_and_no_crash(fw, op):
    with pytest.raises((MemoryError, ValueError, OverflowError, *fw.errors)):
        call(fw, op, {**GOOD[op], "num_segments": 2**62})


@pytest.mark.parametrize(("op", "name"), SIZE_CALLS)
def test_a_size_that_is_missing_is_a_type_error(fw, op, name):
    if name == "total_repeat_length":
        pytest.skip("it may be missing")
    arguments = {key: value for key, value in GOOD[op].items() if key != name}
    with pytest.raises(TypeError, match=rf"{op}\(\) missing required argument '{name}'"):
        call(fw, op, arguments)


@pytest.mark.parametrize("op", ["zeros", "ones", "full"])
def test_more_axes_than_an_array_has_are_a_value_error(fw, op):
    bad(fw, op, ValueError, "shape", "rank", "70", shape=(1,) * 70)


# --- shapes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", cases.SEGMENT_OPS)
def test_ids_of_rank_2_or_0_are_a_value_error(fw, op):
    bad(fw, op, ValueError, "segment_ids", "(3, 1)", segment_ids=A([[0], [1], [1]], "int64"))
    bad(fw, op, ValueError, "segment_ids", "()", segment_ids=A(0, "int64"))
    bad(fw, op, ValueError, "segment_ids", "()", segment_ids=0)


@pytest.mark.parametrize("op", cases.SEGMENT_OPS[:-1])
def test_lengths_that_differ_are_a_value_error_naming_both_shapes(fw, op):
    for ids in ([0, 1], [0, 1, 1, 0], [], [0]):
        bad(fw, op, ValueError, "segment_ids", "(3, 2)", f"({len(ids)},)", segment_ids=A(ids, "int64"))
        bad(fw, op, ValueError, "segment_ids", "(3, 2)", f"({len(ids)},)", segment_ids=N(ids, "int64"))


@pytest.mark.parametrize("op", cases.SEGMENT_OPS[:-1])
def test_data_without_rows_is_a_value_error(fw, op):
    name = next(iter(GOOD[op]))
    bad(fw, op, ValueError, f"'{name}'", "0-d", **{name: A(1.0, "float32")})
    bad(fw, op, ValueError, f"'{name}'", "0-d", **{name: 2.0})


@pytest.mark.parametrize("op", [op for op in GOOD if op.startswith("partition")])
def test_partitions_of_another_rank_are_a_value_error(fw, op):
    bad(fw, op, ValueError, "partitions", "(1, 2)", partitions=A([[1, 2]], "int64"))
    bad(fw, op, ValueError, "partitions", "()", partitions=3)


@pytest.mark.parametrize("op", [op for op in GOOD if op.startswith("partition")])
def test_a_total_that_is_not_the_sum_is_a_value_error_that_names_both(fw, op):
    if not fw.reads_counts:
        pytest.skip("counts are never read; test_partition.py says what comes out")
    for total in (0, 2, 4):
        bad(fw, op, ValueError, "total_length", "expected 3", f"found {total}", total_length=total)
        bad(
            fw,
            op,
            ValueError,
            "total_length",
            "expected 3",
            f"found {total}",
            total_length=total,
            partitions=N([1, 2], "int32"),
        )


@pytest.mark.parametrize("op", [op for op in GOOD if op.startswith("partition")])
def test_a_negative_length_is_a_value_error(fw, op):
    if not fw.reads_counts:
        pytest.skip("counts are never read")
    bad(fw, op, ValueError, "partitions", ">= 0", "-1", partitions=A([-1, 4], "int64"))


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_lengths_whose_sum_overflows_are_a_value_error(fw, dtype):
    if not fw.reads_counts:
        pytest.skip("counts are never read")
    if dtype in fw.lacks:
        pytest.skip("the framework has no such dtype")
    bad(fw, "partition_ids", ValueError, "total_length", partitions=A([2**62] * 4 + [3], dtype))


@pytest.mark.parametrize("op", ["partition_sum", "partition_min", "partition_max", "partition_softmax"])
def test_data_that_is_not_as_long_as_the_total_is_a_value_error(fw, op):
    bad(
        fw,
        op,
        ValueError,
        "'total_length'",
        "(3, 2)",
        "found 4",
        partitions=A([1, 3], "int64"),
        total_length=4,
    )


def test_reshape_refuses_two_unknown_sizes(fw):
    bad(fw, "reshape", ValueError, "shape", "at most one -1", shape=(-1, -1))
    bad(fw, "reshape", ValueError, "shape", "at most one -1", "-2", shape=(-2, 3))


def test_cumsum_needs_an_axis_and_a_rank(fw):
    bad(fw, "cumsum", ValueError, "'axis'", "rank 2", "None", axis=None)
    bad(fw, "cumsum", ValueError, "'x'", "0-d", x=A(1.0, "float32"))


def test_repeat_refuses_negative_counts_and_other_lengths(fw):
    bad(fw, "repeat", ValueError, "repeats", ">= 0", "-1", repeats=-1)
    minus = A([1, -1, 1], "int64")
    bad(fw, "repeat", ValueError, "repeats", ">= 0", "-1", repeats=minus)
    if fw.reads_counts:
        bad(fw, "repeat", ValueError, "repeats", ">= 0", "-1", repeats=minus, total_repeat_length=4)
    bad(fw, "repeat", ValueError, "repeats", ">= 0", "-1", repeats=N(-1, "int64"))
    bad(
        fw,
        "repeat",
        ValueError,
        "repeats",
        "one per element",
        repeats=A([1, 2], "int64"),
        total_repeat_length=4,
    )
    bad(fw, "repeat", ValueError, "repeats", "rank 2", repeats=A([[1, 2, 1]], "int64"), total_repeat_length=4)


@pytest.mark.parametrize("counts", [2**61, [2**62] * 2 + [3], [2**63 - 1] * 3], ids=str)
@pytest.mark.parametrize("total", [None, 4])
def test_repeat_refuses_counts_whose_sum_overflows_where_frameworks_crash(fw, counts, total):
    if fw.narrow or (isinstance(counts, list) and total and not fw.reads_counts):
        pytest.skip("no such counts, or they are never read")
    bad(
        fw,
        "repeat",
        ValueError,
        "repeats",
        "too many",
        repeats=A(counts, "int64"),
        total_repeat_length=total,
        x=A([1] * 8 if isinstance(counts, int) else [1] * 3, "int8"),
    )


def test_repeat_with_a_total_and_an_axis_is_not_implemented(fw):
    bad(fw, "repeat", NotImplementedError, "total_repeat_length", "axis", total_repeat_length=3, axis=0)


@pytest.mark.parametrize(
    "zero", [0, 0.0, np.int64(0), np.float32(0), A(0, "int64"), N(0.0, "float64")], ids=repr
)
def test_arange_refuses_a_step_of_zero(fw, zero):
    bad(fw, "arange", ValueError, "'step'", "not 0", stop=5, step=zero)


# --- values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        ("int8", 128),
        ("int8", -129),
        ("uint8", 256),
        ("uint8", -1),
        ("int32", 2**31),
        ("int64", 2**63),
        ("uint64", 2**64),
        ("uint64", -1),
        ("int64", 10**400),
        ("int16", -(10**400)),
    ],
)
def test_a_python_integer_that_does_not_fit_is_an_overflow_error(fw, dtype, number):
    if dtype in fw.lacks:
        pytest.skip("a dtype that the framework lacks")
    x, dtype = A([1, 2], dtype), fw.held(dtype)
    for op, (one, other) in itertools.product(("maximum", "minimum"), ((x, number), (number, x))):
        name = "x" if one is number else "y"
        bad(fw, op, OverflowError, f"'{name}'", "out of bounds", dtype, x=one, y=other)
    bad(
        fw,
        "where",
        OverflowError,
        "'y'",
        "out of bounds",
        dtype,
        condition=A([True, False], "bool"),
        x=x,
        y=number,
    )
    bad(fw, "clip", OverflowError, "'min'", "out of bounds", dtype, x=x, min=number, max=None)
    bad(fw, "fill_nan", OverflowError, "'value'", "out of bounds", dtype, x=x, value=number)
    bad(fw, "full", OverflowError, "'fill_value'", "out of bounds", dtype, fill_value=number, dtype=dtype)
    bad(fw, "full_like", OverflowError, "'fill_value'", "out of bounds", dtype, x=x, fill_value=number)
    bad(
        fw, "full_like", OverflowError, "'fill_value'", "out of bounds", dtype, fill_value=number, dtype=dtype
    )
    for op in ("segment_min_or_constant", "segment_max_or_constant"):
        bad(
            fw,
            op,
            OverflowError,
            "'constant'",
            "out of bounds",
            dtype,
            x=x,
            segment_ids=A([0, 1], "int64"),
            constant=number,
        )


def test_a_count_or_bound_beyond_64_bits_is_an_overflow_error(fw):
    bad(fw, "repeat", OverflowError, "'repeats'", "out of bounds", repeats=10**30)
    bad(fw, "repeat", OverflowError, "'repeats'", "out of bounds", repeats=2**63)
    with pytest.raises(OverflowError, match="arange.*'start'.*out of bounds"):
        call(fw, "arange", {"start": 10**30, "stop": 10**30 + 3, "like": X})


@pytest.mark.parametrize("index", [3, -4, 2**31, 2**63 - 1])
@pytest.mark.parametrize("shape", ["0-d", "1-d", "2-D"])
def test_take_out_of_range_is_an_index_error(fw, index, shape):
    if fw.take_out_of_range != "raises":
        pytest.skip("an index is never read: the next test")
    indices = A({"0-d": index, "1-d": [0, index], "2-D": [[0], [index]]}[shape], "int64")
    for axis, x in ((0, X), (1, A([[1.0, 2.0, 3.0]], "float32")), (-1, V)):
        with pytest.raises(IndexError) as caught:
            call(fw, "take", {"x": x, "indices": indices, "axis": axis})
        notes = "".join(getattr(caught.value, "__notes__", ()))
        assert ("anytensor.take(" if fw.notes else "take: ") in notes + str(caught.value)


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool"])
@pytest.mark.parametrize("index", [3, -4, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("shape", ["0-d", "1-d", "2-D"])
def test_take_out_of_range_never_gives_another_element(fw, index, shape, dtype):
    """Where no error can be raised: NaN or 0."""
    if fw.take_out_of_range != "fills":
        pytest.skip("it is an error: the test before")
    indices = fw.array({"0-d": index, "1-d": [0, index, 2], "2-D": [[0], [index], [2]]}[shape], "int32")
    for axis, x in ((0, [[5, 6], [7, 8], [9, 10]]), (1, [[5, 7, 9]]), (-1, [5, 7, 9])):
        x = np.array(x).astype(dtype)
        got = fw.numpy(at.take(fw.array(x, dtype), indices, axis)).astype("float64")
        if shape == "0-d":
            assert (np.isnan(got) | (got == 0)).all()
            continue
        first, missing, last = np.moveaxis(got.reshape(np.take(x, [0, 0, 2], axis).shape), axis, 0)
        assert (np.isnan(missing) | (missing == 0)).all()
        assert (first == np.take(x, 0, axis)).all() and (last == np.take(x, 2, axis)).all()


@pytest.mark.parametrize("index", [2**63, 2**64 - 1, 2**63 + 1])
def test_take_of_uint64_beyond_int64_is_an_index_error_and_no_negative_index(fw, index):
    if "uint64" in fw.lacks:
        pytest.skip("a dtype that the framework lacks")
    if fw.take_out_of_range == "fills":
        for indices in (fw.array([index], "uint64"), fw.array(index, "uint64")):
            got = fw.numpy(at.take(fw.array([1.0, 2.0, 3.0], "float32"), indices))
            assert (np.isnan(got) | (got == 0)).all()
        return
    with pytest.raises(IndexError):
        call(fw, "take", {"x": V, "indices": A([index], "uint64")})
    with pytest.raises(IndexError):
        call(fw, "take", {"x": V, "indices": A(index, "uint64")})


# --- dtypes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", ["foo", "complex64", "", "datetime64[s]", "object", 3, 1.5, [1], object(), complex, str, b"int8"]
)
@pytest.mark.parametrize(
    "op", ["astype", "full", "zeros", "ones", "full_like", "zeros_like", "ones_like", "arange"]
)
def test_what_is_no_dtype_is_a_type_error(fw, op, dtype):
    bad(fw, op, TypeError, "'dtype'", "expected a bool, integer or floating dtype", "found", dtype=dtype)


def test_astype_needs_a_dtype(fw):
    bad(fw, "astype", TypeError, "'dtype'", "expected a dtype", "None", dtype=None)


@pytest.mark.parametrize("dtype", ["complex64", "datetime64[s]", "S3", "U3", "object", "V4"])
def test_numpy_arrays_of_other_kinds_give_a_type_error_and_no_crash(dtype):
    x = np.zeros(3, dtype)
    ids = np.array([0, 1, 1])
    for op in cases.SEGMENT_OPS[:-1]:
        with pytest.raises(TypeError):
            getattr(at, op)(x, ids, 2)
    for op, arguments in (
        (at.segment_count, (x, 2)),
        (at.partition_ids, (x, 2)),
        (at.take, (ids, x)),
        (at.repeat, (ids, x)),
    ):
        with pytest.raises(TypeError):
            op(*arguments)


# --- axes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "axis", [1.0, "0", True, np.float64(0), object(), {}], ids=lambda axis: type(axis).__name__
)
def test_what_is_no_axis_is_a_type_error(fw, axis):
    for op, name in [(op, "axes") for op in ("sum", "prod", "mean", "min", "max")] + [
        ("cumsum", "axis"),
        ("take", "axis"),
        ("split", "axis"),
        ("stack", "axis"),
        ("transpose", "axes"),
        ("concatenate", "axis"),
        ("repeat", "axis"),
    ]:
        bad(fw, op, TypeError, f"'{name}'", "expected an int", **{name: axis})
        if name == "axes":
            bad(fw, op, TypeError, "'axes'", "expected an int", axes=(0, axis))


@pytest.mark.parametrize("axis", [2, -3, 7, -20, 100, -100, 2**40, 2**70])
def test_an_axis_out_of_range_is_an_index_or_value_error_that_names_the_function(fw, axis):
    for op, name in [(op, "axes") for op in ("sum", "prod", "mean", "min", "max")] + [
        ("cumsum", "axis"),
        ("take", "axis"),
        ("split", "axis"),
        ("transpose", "axes"),
        ("concatenate", "axis"),
        ("repeat", "axis"),
    ]:
        for value in (axis, (axis,), [0, axis]) if name == "axes" else (axis,):
            with pytest.raises((IndexError, ValueError)) as caught:
                call(fw, op, {**GOOD[op], name: value})
            assert op in str(caught.value) + "".join(getattr(caught.value, "__notes__", []))


@pytest.mark.parametrize("axes", [(0, 0), (0, -2), [1, 0, 1], (-1, 1)], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_an_axis_given_twice_is_an_error(fw, axes, keepdims):
    for op in ("sum", "prod", "mean", "min", "max"):
        with pytest.raises((ValueError, *fw.errors)):
            call(fw, op, {**GOOD[op], "axes": axes, "keepdims": keepdims})


@pytest.mark.parametrize("op", ["min", "max"])
def test_the_extreme_of_nothing_is_an_error(fw, op):
    for shape, axes in (((0,), None), ((0, 2), 0), ((2, 0), 1), ((0, 2), None)):
        with pytest.raises((ValueError, IndexError, *fw.errors)):
            call(fw, op, {"x": A(np.zeros(shape), "float32"), "axes": axes})


# --- calls ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", sorted(set(GOOD) - {"shape", "align_arrays"}))
def test_arguments_that_do_not_fit_the_signature_are_a_type_error(fw, op):
    function, good = getattr(at, op), cases.build(fw, GOOD[op])
    with pytest.raises(TypeError, match=rf"{op}\(\) got an unexpected keyword argument 'nonsense'"):
        function(*list(good.values())[:1], nonsense=1)
    with pytest.raises(
        TypeError, match=rf"{op}\(\) takes at most \d positional arguments \(9 given\): too many positional"
    ):
        function(*[fw.array([1.0], "float32")] * 9)
    with pytest.raises(TypeError, match=rf"{op}\(\) missing required argument"):
        function()
    first = next(iter(good))
    if op != "arange":
        with pytest.raises(TypeError, match=rf"{op}\(\) got multiple values for argument '{first}'"):
            function(good[first], **{first: good[first]})


def test_shape_takes_one_argument(fw):
    for arguments in ((), (1, 2)):
        with pytest.raises(TypeError, match="shape"):
            at.shape(*arguments)


def test_arange_takes_its_start_by_position_only():
    with pytest.raises(TypeError, match="unexpected keyword argument 'start'"):
        at.arange(start=3)


def test_options_after_the_star_are_keywords_only(fw):
    x = fw.array([1.0], "float32")
    for arguments in (
        (at.sum, x, 0, True),
        (at.zeros, 3, "float32"),
        (at.full, 3, 1, "float32"),
        (at.repeat, x, 2, 3),
    ):
        with pytest.raises(TypeError, match="too many positional"):
            arguments[0](*arguments[1:])


@pytest.mark.skipif(len(FOUND) < 2, reason="one framework alone")
@pytest.mark.parametrize("op", sorted(GOOD))
def test_numpy_beside_a_framework_is_no_second_framework(peer, op):
    """Each array of the call in turn is NumPy's."""
    if op in (
        "zeros_like",
        "ones_like",
        "full_like",
        "shape",
        "zeros",
        "ones",
        "full",
        "arange",
        "partition_ids",
        "segment_count",
        "align_arrays",
    ):
        pytest.skip("one array, or a list")
    good = GOOD[op]
    names = [name for name, value in good.items() if isinstance(value, A)]
    for name in names if len(names) > 1 else ():
        got = call(peer, op, {**good, name: N(good[name].data, good[name].dtype)})
        assert peer.is_array(got)


# --- the framework's own ----------------------------------------------------------------------------------


def foreign(fw, op, **arguments):
    with pytest.raises((ValueError, TypeError, IndexError, *fw.errors)) as caught:
        call(fw, op, arguments)
    note = "\n".join(caught.value.__notes__)
    assert f"in anytensor.{op}(" in note
    for name in arguments:
        assert f"{name}=" in note
    return caught.value, note


def test_a_frameworks_exception_keeps_its_type_and_names_the_call(fw):
    if not fw.notes:
        pytest.skip("what it refuses itself is the library's own error")
    error, note = foreign(fw, "maximum", x=X, y=V)
    assert isinstance(error, fw.shape_error)
    assert "float32(3, 2)" in note and "float32(3,)" in note
    error, note = foreign(fw, "reshape", x=X, shape=(4, 5))
    assert isinstance(error, fw.shape_error)
    assert "(4, 5)" in note
    error, note = foreign(fw, "concatenate", arrays=[X, V])
    assert isinstance(error, fw.shape_error)
    error, note = foreign(fw, "where", condition=A([True] * 4, "bool"), x=X, y=1.0)
    assert isinstance(error, fw.shape_error) and "bool(4,)" in note and "y=1.0" in note
    error, note = foreign(fw, "full", shape=(2,), fill_value=V, like=X)
    assert isinstance(error, fw.shape_error)


def test_an_error_leaves_the_operands_as_they_were(fw):
    x, ids = fw.array([1.0, 2.0, 3.0], "float32"), fw.array([0, 1], "int64")
    with pytest.raises(ValueError):
        at.segment_softmax(x, ids, 2)
    assert fw.numpy(x).tolist() == [1.0, 2.0, 3.0]
    assert fw.numpy(ids).tolist() == [0, 1]


def test_an_exception_of_the_users_own_comes_through(fw):
    class Size:
        def __index__(self):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        at.zeros(Size(), like=fw.array([1.0], "float32"))
    with pytest.raises(KeyError, match="mine"):
        at.sum(fw.array([1.0], "float32"), Size())

    class Flag:
        def __bool__(self):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        at.sum(fw.array([1.0], "float32"), keepdims=Flag())


def test_a_list_that_changes_during_the_call_does_no_harm(fw):
    """__index__ and warnings run Python code in the middle of a call."""

    class Emptied:
        def __init__(self, of):
            self.of = of

        def __index__(self):
            self.of.clear()
            return 1

    for op in (
        lambda s: at.zeros(s, like=fw.array([1.0], "float32")),
        lambda s: at.reshape(fw.array([1.0], "float32"), s),
    ):
        sizes = []
        sizes += [Emptied(sizes), 1, 1]
        assert at.shape(op(sizes)) == (1, 1, 1)
    axes = []
    axes += [Emptied(axes), 0]
    assert at.shape(at.sum(fw.array([[1.0]], "float32"), axes)) == ()


@pytest.mark.skipif(len(FOUND) < 2, reason="one framework alone")
def test_a_list_that_a_warning_empties_is_joined_all_the_same(peer):
    arrays = [
        peer.array([1.0], "float32"),
        np.arange(3, dtype="float32")[::-1],
        np.arange(2, dtype="float32"),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda *args, **kwargs: arrays.clear()
        got = at.concatenate(arrays)
    assert not arrays
    assert peer.numpy(got).tolist() == [1.0, 2.0, 1.0, 0.0, 0.0, 1.0]
