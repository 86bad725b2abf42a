"""Cases of promotion: which dtype two operands have together."""

import itertools

import numpy as np
import oracle
from case import A, Case, N
from frameworks import DTYPES, INTEGERS

# --- promotion --------------------------------------------------------------------------------------------


def common(a, b):
    """The dtype of two arrays: NumPy's table, but an integer beside a float takes the float's dtype."""
    if a == b:
        return a
    if oracle.is_float(a) != oracle.is_float(b):
        return a if oracle.is_float(a) else b
    if oracle.is_float(a):
        return "float32" if {a, b} == {"float16", "bfloat16"} else max(a, b, key=lambda t: int(t[-2:]))
    joined = np.promote_types(a, b).name
    return "float" if joined == "float64" else joined  # uint64 beside a signed integer


def promotions():
    for a, b in itertools.product(DTYPES, DTYPES):
        args = (A([True, False], "bool"), A([1, 0], a), A([0, 1], b))
        want = np.array([1, 1]) == 1 if a == b == "bool" else np.array([1, 1])
        yield Case(f"where of {a} and {b}", "where", args, want, common(a, b))
        yield Case(f"where of {a} and a 0-d {b}", "where", (args[0], args[1], A(1, b)), want, common(a, b))
        if b != "bfloat16":
            scalar = np.dtype(b).type(1)
            yield Case(
                f"where of {a} and a NumPy scalar of {b}",
                "where",
                (args[0], args[1], scalar),
                want,
                common(a, b),
            )
            yield Case(
                f"where of {a} and NumPy's {b}", "where", (args[0], args[1], N([0, 1], b)), want, common(a, b)
            )
    for dtype in DTYPES:
        x, flags = A([1, 0], dtype), A([True, False], "bool")
        weak_int = "int" if dtype == "bool" else dtype
        one = np.array([1, 1])
        yield Case(
            f"where of {dtype} and a Python bool",
            "where",
            (flags, x, True),
            one == 1 if dtype == "bool" else one,
            dtype,
        )
        yield Case(f"where of {dtype} and a Python integer", "where", (flags, x, 1), one, weak_int)
        yield Case(
            f"where of {dtype} and a Python float",
            "where",
            (flags, x, 1.0),
            one,
            dtype if oracle.is_float(dtype) else "float",
        )
        if dtype in INTEGERS:
            for edge in (oracle.highest(dtype), oracle.lowest(dtype)):
                yield Case(
                    f"where of {dtype} and the fitting integer {edge}",
                    "where",
                    (A([False, False], "bool"), x, edge),
                    np.array([edge, edge], dtype),
                    dtype,
                )
    x = A([1, 0], "int32")
    flags = A([False, False], "bool")
    yield Case(
        "where of int32 and float16 keeps fractions",
        "where",
        (flags, x, A([0.5, 1.5], "float16")),
        np.array([0.5, 1.5]),
        "float16",
    )
    yield Case(
        "three arrays: floats win over integers in any order",
        "concatenate",
        ([A([1], "int64"), A([2], "float16"), A([3], "uint64")],),
        np.array([1, 2, 3]),
        "float16",
    )
    yield Case(
        "three arrays: uint64, int8, float32",
        "concatenate",
        ([A([1], "uint64"), A([2], "int8"), A([3], "float32")],),
        np.array([1, 2, 3]),
        "float32",
    )


PROMOTION = list(promotions())
