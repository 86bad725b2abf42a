"""Cases of the NaN tools: what is NaN or infinite, and what takes its place."""

import functools
import itertools
import math

import numpy as np
import oracle
from case import INF, NAN, A, Case, N, data
from frameworks import DTYPES, FLOATS

EDGES = [0.0, -0.0, 1.5, -2.0, INF, -INF, NAN]
QUESTIONS = {"is_nan": math.isnan, "is_inf": math.isinf, "is_finite": math.isfinite}
MOST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38}


def most(dtype):
    return MOST.get(dtype, np.finfo(np.float64).max)


def questions():
    for (op, f), dtype in itertools.product(QUESTIONS.items(), DTYPES):
        x = EDGES if oracle.is_float(dtype) else data(dtype, 5)
        want = functools.partial(oracle.each, lambda v, f=f: f(float(v)), x)
        yield Case(f"{op} of {dtype}", op, (A(x, dtype),), want, "bool")
    for op, f in QUESTIONS.items():
        yield Case(f"{op} of a 0-d array", op, (A(NAN, "float32"),), np.array(f(NAN)), "bool")
        yield Case(f"{op} of a scalar", op, (INF,), np.array(f(INF)), "bool")
        yield Case(f"{op} of an integer alone", op, (3,), np.array(f(3)), "bool")
        yield Case(f"{op} of nothing", op, (A(np.zeros((2, 0)), "float32"),), np.zeros((2, 0), bool), "bool")


def same(x, y):
    return x == y or (oracle.is_nan(x) and oracle.is_nan(y))


def equality():
    for dtype in FLOATS:
        x, y = np.array(EDGES)[:, None], np.array(EDGES)
        want = functools.partial(oracle.each, same, x, y)
        yield Case(f"equal_nan of {dtype}", "equal_nan", (A(x, dtype), A(y, dtype)), want, "bool")
    for dtype in ("bool", "int8", "uint16", "int64", "uint64"):
        x, y = data(dtype, 4), data(dtype, 4)[::-1].copy()
        want = functools.partial(oracle.each, same, x, y)
        yield Case(f"equal_nan of {dtype}", "equal_nan", (A(x, dtype), A(y, dtype)), want, "bool")
    x = A(EDGES, "float32")
    for number in (NAN, 1.5, 0, INF, True):
        want = oracle.each(same, EDGES, number)
        yield Case(f"equal_nan with {number!r} behind", "equal_nan", (x, number), want, "bool")
        yield Case(f"equal_nan with {number!r} in front", "equal_nan", (number, x), want, "bool")
    yield Case("equal_nan of scalars", "equal_nan", (NAN, NAN), np.array(True), "bool")
    yield Case(
        "equal_nan with NumPy", "equal_nan", (x, N(EDGES, "float32")), np.ones(len(EDGES), bool), "bool"
    )
    yield Case(
        "equal_nan of two dtypes",
        "equal_nan",
        (A([1.0, NAN, 2.5], "float32"), A([1, 2, 2], "int32")),
        np.array([True, False, False]),
        "bool",
    )


def masks():
    for dtype in DTYPES:
        x = EDGES if oracle.is_float(dtype) else data(dtype, 4)
        value = True if dtype == "bool" else 3
        filled = oracle.each(lambda v, value=value: value if oracle.is_nan(v) else v, x)
        want = (filled, oracle.each(oracle.is_nan, x))
        args = (A(x, dtype), value)
        yield Case(f"fill_nan_mask of {dtype}", "fill_nan_mask", args, want, (dtype, "bool"), container=tuple)
    x = [[1.0, NAN], [NAN, 4.0]]
    mask = np.array([[False, True], [True, False]])
    for text, args, filled in (
        ("0 by default", (), [[1.0, 0.0], [0.0, 4.0]]),
        ("a row", (A([7.0, 8.0], "float32"),), [[1.0, 8.0], [7.0, 4.0]]),
        ("infinity", (INF,), [[1.0, INF], [INF, 4.0]]),
    ):
        args = (A(x, "float32"), *args)
        want = (np.array(filled), mask)
        yield Case(
            f"fill_nan_mask with {text}",
            "fill_nan_mask",
            args,
            want,
            ("float32", "bool"),
            container=tuple,
        )
    args, want = (A([1, 2], "int32"),), (np.array([1.0, 2.0]), np.zeros(2, bool))
    yield Case(
        "fill_nan_mask of integers with the default widens",
        "fill_nan_mask",
        args,
        want,
        ("float", "bool"),
        container=tuple,
    )


def replaced(x, nan=0.0, posinf=None, neginf=None, dtype="float32"):
    top = most(dtype) if posinf is None else posinf
    low = -most(dtype) if neginf is None else neginf
    return [nan if oracle.is_nan(v) else top if v == INF else low if v == -INF else v for v in x]


def numbers():
    for dtype in FLOATS:
        want = np.array(replaced(EDGES, dtype=dtype))
        yield Case(f"nan_to_num of {dtype}", "nan_to_num", (A(EDGES, dtype),), want, dtype)
    for dtype in DTYPES:
        if not oracle.is_float(dtype):
            x = data(dtype, 4)
            yield Case(f"nan_to_num of {dtype}", "nan_to_num", (A(x, dtype),), x, dtype, kwargs={"nan": 0.5})
    for kwargs in (
        {"nan": 2},
        {"posinf": 5.0},
        {"neginf": -1},
        {"nan": -1.0, "posinf": 0.0, "neginf": True},
        {"nan": INF, "posinf": NAN},
    ):
        text = ", ".join(f"{name}={value}" for name, value in kwargs.items())
        want = np.array(replaced(EDGES, **kwargs), dtype=float)
        yield Case(
            f"nan_to_num with {text}", "nan_to_num", (A(EDGES, "float32"),), want, "float32", kwargs=kwargs
        )
    yield Case(
        "nan_to_num with values of other dtypes keeps x's",
        "nan_to_num",
        (A([NAN, INF, -INF], "float16"),),
        np.array([1.5, 2.0, 3.0]),
        "float16",
        kwargs={"nan": np.float64(1.5), "posinf": A(2, "int32"), "neginf": N([9.0, 9.0, 3.0], "float32")},
    )
    yield Case("nan_to_num of a scalar", "nan_to_num", (NAN,), np.array(0.0), "float64")
    yield Case("nan_to_num of nothing", "nan_to_num", (A([], "float32"),), np.zeros(0), "float32")


NAN_TOOLS = [*questions(), *equality(), *masks(), *numbers()]
