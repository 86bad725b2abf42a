"""Facts about arrays: constants, dtypes and their limits, the name of a framework. Accuses src/python/info.c."""

import inspect
import math
import sys

import numpy as np
import pytest
from frameworks import BOOL, DTYPES, FLOATS, INTEGERS

import anytensor as at
from anytensor import _core

CONSTANTS = {"inf": math.inf, "ninf": -math.inf, "pi": math.pi, "e": math.e}
NO_ARRAYS = {
    "float": 1.0,
    "int": 1,
    "bool": True,
    "NumPy scalar": np.float32(1),
    "list": [1.0],
    "None": None,
    "str": "x",
    "type": np.ndarray,
}


def has(fw, dtype):
    return dtype not in fw.lacks and fw.held(dtype) == dtype


def test_the_list_of_facts_is_that_of_the_surface():
    assert set(_core.facts) == {*CONSTANTS, "nan", "dtype", "finfo", "iinfo"}
    assert {str(inspect.signature(getattr(at, name))) for name in (*CONSTANTS, "nan")} == {"(like)"}
    assert str(inspect.signature(at.dtype)) == "(name, like)"
    assert str(inspect.signature(at.finfo)) == str(inspect.signature(at.iinfo)) == "(x)"
    assert all(getattr(at, name).__doc__ for name in _core.facts)
    assert at.newaxis is None


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_is_a_python_float(fw, name):
    x = fw.array([1, 2], "int32")
    assert type(getattr(at, name)(x)) is float
    assert getattr(at, name)(like=x) == CONSTANTS[name]


def test_nan_is_a_python_float(fw):
    assert type(at.nan(fw.array([1.0], "float32"))) is float and math.isnan(at.nan(fw.array(1, "int8")))


@pytest.mark.parametrize("kind", NO_ARRAYS)
@pytest.mark.parametrize("function", ["inf", "ninf", "nan", "pi", "e", "finfo", "iinfo", "dtype"])
def test_what_is_no_array_is_refused_by_both_kinds_of_error(function, kind):
    arguments = ("int8", NO_ARRAYS[kind]) if function == "dtype" else (NO_ARRAYS[kind],)
    name = "x" if function.endswith("info") else "like"
    message = (
        rf"^{function}: argument '{name}': expected an array, found .*: Tensor type unknown to anytensor"
    )
    for kind_of_error in (TypeError, RuntimeError):
        with pytest.raises(kind_of_error, match=message):
            getattr(at, function)(*arguments)


@pytest.mark.parametrize("arguments", [(), (1, 2)])
def test_a_constant_takes_one_argument(arguments):
    with pytest.raises(TypeError, match="argument"):
        at.inf(*arguments)
    with pytest.raises(TypeError):
        at.inf(other=np.ones(1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_dtype_by_name_is_the_frameworks_own(fw, dtype):
    if not has(fw, dtype):
        pytest.skip(f"{fw.name} has no {dtype}")
    like = fw.array([0, 1], "int8")
    x = fw.array([0, 1], dtype)
    own = at.dtype(dtype, like)
    assert own == fw.own_dtype(dtype) and (own == x.dtype or fw.dtype(x) == own)
    assert fw.dtype(at.astype(like, own)) == dtype  # which every function takes
    assert fw.dtype(at.zeros(2, dtype=own, like=like)) == dtype


@pytest.mark.parametrize("name", ["zeros", "float", "complex64", "Float32", "", "float33"])
def test_an_unknown_dtype_is_an_attribute_error(fw, name):
    message = f"dtype: argument 'name': .* has no dtype '{name}'"
    with pytest.raises(AttributeError, match=message):
        at.dtype(name, fw.array([1], "int32"))
    assert not hasattr(at.get_backend(fw.array([1], "int32")), "no_such_dtype")


def test_a_dtype_that_the_framework_lacks_is_an_attribute_error(fw):
    for dtype in fw.lacks:
        if fw.name != "jax":  # without 64-bit types, which have their names all the same
            with pytest.raises(AttributeError, match=f"has no dtype '{dtype}'"):
                at.dtype(dtype, fw.array([1], "int32"))


def test_the_name_of_a_dtype_is_a_string(fw):
    with pytest.raises(TypeError, match="str"):
        at.dtype(np.float32, fw.array([1], "int32"))


@pytest.mark.parametrize("dtype", FLOATS)
def test_limits_of_floats(fw, dtype):
    if not has(fw, dtype):
        pytest.skip(f"{fw.name} has no {dtype}")
    digits, top = {"float16": (11, 15), "bfloat16": (8, 127), "float32": (24, 127), "float64": (53, 1023)}[
        dtype
    ]
    limits = at.finfo(fw.array([1.5], dtype))
    assert float(limits.eps) == 2.0 ** (1 - digits)
    assert float(limits.max) == (2 - 2.0 ** (1 - digits)) * 2.0**top == -float(limits.min)
    assert float(limits.smallest_normal) == 2.0 ** (1 - top)
    assert limits.bits == {"float16": 16, "bfloat16": 16, "float32": 32, "float64": 64}[dtype]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_limits_of_integers(fw, dtype):
    if not has(fw, dtype):
        pytest.skip(f"{fw.name} has no {dtype}")
    limits, want = at.iinfo(fw.array([1], dtype)), np.iinfo(dtype)
    assert (limits.min, limits.max, limits.bits) == (want.min, want.max, want.bits)


@pytest.mark.parametrize("dtype", DTYPES)
def test_limits_of_another_family_are_a_value_error(fw, dtype):
    if not has(fw, dtype):
        pytest.skip(f"{fw.name} has no {dtype}")
    x = fw.array([1], dtype)
    if dtype not in FLOATS:
        with pytest.raises(ValueError, match=f"finfo: argument 'x': expected floats, found {dtype}"):
            at.finfo(x)
    if dtype in FLOATS + BOOL:
        with pytest.raises(ValueError, match=f"iinfo: argument 'x': expected integers, found {dtype}"):
            at.iinfo(x)


def test_complex_numbers_have_no_limits_of_integers(torch):
    with pytest.raises(ValueError, match="iinfo: argument 'x': expected integers"):
        at.iinfo(torch.ones(1, dtype=torch.complex64))


def test_facts_of_subclasses_and_parameters(torch):
    parameter = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
    assert at.finfo(parameter).eps == 2.0**-52 and at.dtype("int8", parameter) is torch.int8
    assert at.inf(parameter) == math.inf


def test_facts_leave_no_references(fw):
    x = fw.array([1.0, 2.0], "float32")
    for function, arguments in (
        (at.inf, (x,)),
        (at.dtype, ("int8", x)),
        (at.finfo, (x,)),
        (at.dtype, ("no", x)),
    ):
        counts = []
        for _ in range(3):
            for _ in range(50):
                try:
                    function(*arguments)
                except AttributeError:
                    pass
            counts.append((sys.getrefcount(x), sys.getrefcount(arguments[0])))
        assert counts[1] == counts[2]


def test_the_error_of_a_stranger_can_be_pickled():
    import pickle

    with pytest.raises(_core.UnknownArrayError) as caught:
        at.inf(1)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is _core.UnknownArrayError and str(again) == str(caught.value)
