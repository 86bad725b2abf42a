"""Cases of everything but segments: elementwise, reductions, layout, constructors."""

import functools
import itertools
import math

import numpy as np
import oracle
from case import INF, NAN, A, Case, D, N, data
from frameworks import DTYPES, FLOATS, INTEGERS, SIGNED, UNSIGNED

# --- elementwise and promotion ----------------------------------------------------------------------------


def guarded(f):
    """A function of math with IEEE results in place of exceptions."""

    def value(x):
        x = float(x)
        try:
            return f(x)
        except OverflowError:
            return INF
        except (ValueError, ZeroDivisionError):
            return -INF if f is math.log and x == 0 else INF if x == 0 else NAN

    return value


UNARY = {
    "exp": guarded(math.exp),
    "log": guarded(math.log),
    "sqrt": guarded(math.sqrt),
    "rsqrt": guarded(lambda x: 1 / math.sqrt(x)),
}


def unary():
    edges = [0.0, -0.0, 1.0, 4.0, -1.0, INF, -INF, NAN]
    for op, dtype in itertools.product(UNARY, DTYPES):
        integral = not oracle.is_float(dtype)
        x = abs(data(dtype, 3, 2))
        want = functools.partial(oracle.each, UNARY[op], x)
        tol = oracle.TOL["float32"] if integral else 0.0
        yield Case(f"{op} of {dtype}", op, (A(x, dtype),), want, "float" if integral else dtype, tol)
    for op, dtype in itertools.product(UNARY, FLOATS):
        x = [e for e in edges if not (op == "rsqrt" and math.copysign(1, e) < 0 and e == 0)]
        yield Case(
            f"{op} of the edges of {dtype}",
            op,
            (A(x, dtype),),
            functools.partial(oracle.each, UNARY[op], x),
            dtype,
        )
    for op in UNARY:
        for number in (2.0, 2, True, np.float32(2), np.int8(2)):
            dtype = "float32" if isinstance(number, np.float32) else "float64"
            want = np.array(UNARY[op](number))
            yield Case(
                f"{op} of the scalar {number!r} alone", op, (number,), want, dtype
            )  # on NumPy, whatever is loaded
        yield Case(f"{op} of a 0-d array", op, (A(4.0, "float32"),), np.array(UNARY[op](4.0)), "float32")
        yield Case(f"{op} of nothing", op, (A(np.zeros((0, 2)), "float32"),), np.zeros((0, 2)), "float32")


def larger(x, y):
    return NAN if oracle.is_nan(x) or oracle.is_nan(y) else x if x > y else y


def smaller(x, y):
    return NAN if oracle.is_nan(x) or oracle.is_nan(y) else x if x < y else y


def clipped(x, low, high):
    x = x if low is None else larger(x, low)
    return x if high is None else smaller(x, high)


def binary():
    pairs = {"maximum": larger, "minimum": smaller}
    for (op, f), dtype in itertools.product(pairs.items(), DTYPES):
        x, y = data(dtype, 4, 3), data(dtype, 3)
        yield Case(
            f"{op} of {dtype} with broadcasting",
            op,
            (A(x, dtype), A(y, dtype)),
            functools.partial(oracle.each, f, x, y),
            dtype,
        )
    for (op, f), dtype in itertools.product(pairs.items(), FLOATS):
        x, y = [NAN, 1.0, NAN, INF, -INF, 2.0], [1.0, NAN, NAN, 1.0, INF, -INF]
        yield Case(
            f"{op} of {dtype} keeps NaN of either side",
            op,
            (A(x, dtype), A(y, dtype)),
            functools.partial(oracle.each, f, x, y),
            dtype,
        )
    for op, f in pairs.items():
        x = data("float32", 4)
        for number in (1, -2, 0.5, True, NAN, INF):
            for args in ((A(x, "float32"), number), (number, A(x, "float32"))):
                side = "after" if args[1] is number else "before"
                yield Case(
                    f"{op} with the scalar {number!r} {side} float32",
                    op,
                    args,
                    functools.partial(oracle.each, f, x, number),
                    "float32",
                )
        for args in (
            (A(x, "float32"), N(x[::-1].copy(), "float32")),
            (N(x[::-1].copy(), "float32"), A(x, "float32")),
        ):
            side = "after" if args[1].host else "before"
            yield Case(
                f"{op} takes NumPy {side} a tensor",
                op,
                args,
                functools.partial(oracle.each, f, x, x[::-1]),
                "float32",
            )
        yield Case(f"{op} of two scalars", op, (2, 3.5), np.array(f(2, 3.5)), "float64")
        yield Case(f"{op} of nothing", op, (A([], "float32"), 1), np.zeros(0), "float32")
    x = A([300.0, -300.0], "float16")
    yield Case(
        "maximum with a float just beyond float16 gives inf",
        "maximum",
        (x, 1e6),
        np.array([INF, INF]),
        "float16",
    )
    for dtype in ("float16", "bfloat16", "float32"):
        for number, text in (
            (1e300, "a float"),
            (10**60, "an integer"),
            (10**400, "an integer beyond all floats"),
        ):
            yield Case(
                f"maximum with {text} beyond {dtype} gives inf",
                "maximum",
                (A([1.0], dtype), number),
                np.array([INF]),
                dtype,
            )
            yield Case(
                f"minimum with minus {text} beyond {dtype} gives -inf",
                "minimum",
                (A([1.0], dtype), -number),
                np.array([-INF]),
                dtype,
            )


def selection():
    mask = [[True], [False], [True]]
    for dtype in DTYPES:
        x, y = data(dtype, 3, 2), data(dtype, 2)[::-1].copy()
        want = functools.partial(oracle.each, lambda c, a, b: a if c else b, mask, x, y)
        yield Case(
            f"where of {dtype} with broadcasting",
            "where",
            (A(mask, "bool"), A(x, dtype), A(y, dtype)),
            want,
            dtype,
        )
        condition = abs(data(dtype, 4))
        want = functools.partial(oracle.each, lambda c: 1.0 if c else 2.0, condition)
        yield Case(
            f"where takes a condition of {dtype}",
            "where",
            (A(condition, dtype), A(np.ones(4), "float32"), A(np.full(4, 2.0), "float32")),
            want,
            "float32",
        )
    x = A([1.0, 2.0], "float32")
    flags = A([True, False], "bool")
    yield Case(
        "where takes NaN as true",
        "where",
        (A([NAN, 0.0], "float32"), 1.0, x),
        np.array([1.0, 2.0]),
        "float32",
    )
    yield Case("where of two Python integers", "where", (flags, 1, 2), np.array([1, 2]), "int")
    yield Case("where of two Python floats", "where", (flags, 1.0, 2), np.array([1.0, 2.0]), "float")
    yield Case("where of two Python bools", "where", (flags, True, False), np.array([True, False]), "bool")
    yield Case("where with a scalar keeps float32", "where", (flags, x, 0.5), np.array([1.0, 0.5]), "float32")
    yield Case("where with a scalar condition", "where", (True, x, 0.5), np.array([1.0, 2.0]), "float32")
    yield Case(
        "where with a NumPy condition",
        "where",
        (N([True, False], "bool"), x, 0.5),
        np.array([1.0, 0.5]),
        "float32",
    )
    yield Case("where with an infinite branch", "where", (flags, x, -INF), np.array([1.0, -INF]), "float32")
    yield Case("where of scalars alone", "where", (False, 1, 2.5), np.array(2.5), "float64")

    for dtype in ("float16", "bfloat16", "float32", "float64"):
        values = [NAN, 1.0, INF, -INF, NAN]
        yield Case(
            f"fill_nan of {dtype} is 0 by default",
            "fill_nan",
            (A(values, dtype),),
            np.array([0.0, 1.0, INF, -INF, 0.0]),
            dtype,
        )
    yield Case(
        "fill_nan takes a value", "fill_nan", (A([NAN, 1.0], "float32"), -7), np.array([-7.0, 1.0]), "float32"
    )
    yield Case(
        "fill_nan takes the value by keyword",
        "fill_nan",
        (A([NAN, 1.0], "float32"),),
        np.array([2.5, 1.0]),
        "float32",
        kwargs={"value": 2.5},
    )
    yield Case(
        "fill_nan broadcasts its value",
        "fill_nan",
        (A([[NAN, 1.0], [2.0, NAN]], "float32"), A([5.0, 6.0], "float32")),
        np.array([[5.0, 1.0], [2.0, 6.0]]),
        "float32",
    )
    yield Case(
        "fill_nan of integers with the default widens",
        "fill_nan",
        (A([1, 2], "int32"),),
        np.array([1.0, 2.0]),
        "float",
    )
    yield Case(
        "fill_nan of integers with an integer keeps them",
        "fill_nan",
        (A([1, 2], "int32"), 0),
        np.array([1, 2]),
        "int32",
    )

    bounds = {
        "both bounds": (-1, 2),
        "a lower bound": (-1, None),
        "an upper bound": (None, 2),
        "crossed bounds": (3, -3),
    }
    for dtype, (text, (low, high)) in itertools.product(SIGNED + FLOATS, bounds.items()):
        x = data(dtype, 4, 3)
        want = functools.partial(oracle.each, lambda v, low=low, high=high: clipped(v, low, high), x)
        yield Case(f"clip of {dtype} with {text}", "clip", (A(x, dtype), low, high), want, dtype)
    x = A([-3, 0, 3], "int32")
    yield Case(
        "clip of integers with float bounds widens",
        "clip",
        (x, -0.5, 0.5),
        np.array([-0.5, 0.0, 0.5]),
        "float",
    )
    yield Case(
        "clip of integers with one float bound widens",
        "clip",
        (x,),
        np.array([-3.0, 0.0, 0.5]),
        "float",
        kwargs={"max": 0.5},
    )
    small = A([1, -3], "int8")
    for args in ((0, -1, small), (0, small, 1), (0, None, small)):
        want = [clipped(0, *(a.data[k] if isinstance(a, A) else a for a in args[1:])) for k in (0, 1)]
        text = ", ".join("int8" if a is small else str(a) for a in args)
        yield Case(
            f"clip of a number keeps the dtype of the bound: {text}", "clip", args, np.array(want), "int8"
        )
    yield Case(
        "clip of uint8", "clip", (A([0, 100, 255], "uint8"), 10, 200), np.array([10, 100, 200]), "uint8"
    )
    for dtype, of in (("float32", "float64"), ("float16", "float32"), ("float32", "int64")):
        want = functools.partial(oracle.each, lambda v: clipped(v, 0, 1), np.array([-2.0, 0.5, 3.0]))
        x3 = A([-2.0, 0.5, 3.0], dtype)
        yield Case(
            f"clip of {dtype} beside bounds of {of}", "clip", (x3, A(0, of), A([1, 1, 1], of)), want, dtype
        )
        yield Case(
            f"clip of {dtype} beside NumPy's {of}", "clip", (x3, np.dtype(of).type(0), N(1, of)), want, dtype
        )
    for dtype, of, low, high, want in (
        ("int32", "int64", 0, 5, [0, 5, 3]),
        ("int8", "int64", -300, 300, [-7, 100, 3]),
        ("uint8", "int32", -5, 10, [7, 10, 3]),
        ("int64", "uint8", 1, 50, [1, 50, 3]),
    ):
        x3 = A([7 if dtype[0] == "u" else -7, 100, 3], dtype)
        args = (x3, A([low] * 3, of), A(high, of))
        yield Case(f"clip of {dtype} beside bounds of {of}", "clip", args, np.array(want), dtype)
    yield Case("clip by keywords", "clip", (x,), np.array([-1, 0, 1]), "int32", kwargs={"min": -1, "max": 1})
    yield Case("clip keeps NaN", "clip", (A([NAN, 5.0], "float32"), 0, 1), np.array([NAN, 1.0]), "float32")
    yield Case(
        "clip takes infinite bounds",
        "clip",
        (A([-5.0, 5.0], "float32"), -INF, INF),
        np.array([-5.0, 5.0]),
        "float32",
    )
    yield Case(
        "clip with array bounds",
        "clip",
        (A([1.0, 5.0], "float32"), A([2.0, 2.0], "float32"), A([3.0, 3.0], "float32")),
        np.array([2.0, 3.0]),
        "float32",
    )
    yield Case(
        "clip with NumPy bounds",
        "clip",
        (A([1.0, 5.0], "float32"), N([2.0, 2.0], "float32"), N(3.0, "float32")),
        np.array([2.0, 3.0]),
        "float32",
    )


ELEMENTWISE = [*unary(), *binary(), *selection()]

# --- reductions -------------------------------------------------------------------------------------------

FOLDS = {
    "sum": oracle.total,
    "prod": oracle.product,
    "mean": lambda r: oracle.mean(r, NAN),
    "min": lambda r: oracle.least(r, INF),
    "max": lambda r: oracle.greatest(r, -INF),
}


def reduce_dtype(op, dtype):
    if op in ("min", "max"):
        return dtype
    if op == "mean":
        return dtype if oracle.is_float(dtype) else "float"
    return f"widened {dtype}"


def reductions():
    for op, dtype in itertools.product(FOLDS, DTYPES):
        x = data(dtype, 2, 3)
        tol = oracle.TOL["float32"] if not oracle.is_float(dtype) else 0.0
        out = reduce_dtype(op, dtype)
        for axes in (None, 0, (0, 1)):
            text = "all axes" if axes is None else f"axes {axes}"
            fold = (
                FOLDS[op]
                if dtype != "bool" or op not in ("min", "max")
                else lambda r, op=op: all(r) if op == "min" else any(r)
            )
            want = functools.partial(oracle.over_axes, fold, x, axes)
            yield Case(f"{op} of {dtype} over {text}", op, (A(x, dtype), axes), want, out, tol)
    x = data("float32", 2, 3, 4)
    forms = (0, 1, -1, (0,), [1], (0, 2), [0, -1], (-3, 1, 2), [0, 1, 2], (), [], None, np.int64(1))
    for op, axes, keepdims in itertools.product(FOLDS, forms, (False, True)):
        want = functools.partial(
            oracle.over_axes,
            FOLDS[op],
            x,
            axes if axes is None or isinstance(axes, (tuple, list)) else int(axes),
            keepdims,
        )
        yield Case(
            f"{op} over axes {axes!r} of {type(axes).__name__} with keepdims={keepdims}",
            op,
            (A(x, "float32"),),
            want,
            "float32",
            kwargs={"axes": axes, "keepdims": keepdims},
        )
    for op in FOLDS:
        for dtype in FLOATS:
            rows = [[1.0, NAN], [2.0, 3.0], [INF, 1.0]]
            want = functools.partial(oracle.over_axes, FOLDS[op], rows, 1)
            yield Case(
                f"{op} of {dtype} keeps NaN and inf in their rows", op, (A(rows, dtype), 1), want, dtype
            )
        yield Case(f"{op} of a 0-d array", op, (A(2.0, "float32"),), np.array(2.0), "float32")
        yield Case(f"{op} of a Python scalar", op, (2.0,), np.array(2.0), "float64")
    for op, empty in (("sum", 0.0), ("prod", 1.0), ("mean", NAN)):
        none = A(np.zeros((0, 2)), "float32")
        yield Case(f"{op} of nothing", op, (none,), np.array(empty), "float32")
        yield Case(f"{op} of nothing down the rows", op, (none, 0), np.full(2, empty), "float32")
        yield Case(f"{op} of empty rows", op, (none, 1), np.zeros(0), "float32")
        no_ints = A(np.zeros((0,)), "int32")
        yield Case(
            f"{op} of no integers", op, (no_ints,), np.array(empty), "float" if op == "mean" else "int"
        )
    for op in ("min", "max"):
        yield Case(
            f"{op} of empty rows over the axis that is not empty",
            op,
            (A(np.zeros((2, 0)), "float32"), 0),
            np.zeros(0),
            "float32",
        )
    wide = A([2**63, 2**63 - 1], "uint64")
    yield Case("sum of uint64 beyond int64", "sum", (wide,), np.array(2**64 - 1, np.uint64), "widened uint64")
    yield Case(
        "mean of uint64 beyond int64",
        "mean",
        (A([2**63, 2**63], "uint64"),),
        np.array(2.0**63),
        "float",
        1e-6,
    )
    yield Case("sum of int8 does not wrap", "sum", (A([100, 100], "int8"),), np.array(200), "int")
    yield Case("prod of int8 does not wrap", "prod", (A([100, 100], "int8"),), np.array(10000), "int")

    for dtype in DTYPES:
        x = data(dtype, 3, 4)
        for axis in (0, 1, -1):
            want = functools.partial(oracle.running, x, axis)
            yield Case(
                f"cumsum of {dtype} along {axis}",
                "cumsum",
                (A(x, dtype), axis),
                want,
                reduce_dtype("sum", dtype),
            )
    yield Case(
        "cumsum is along axis 0 by default",
        "cumsum",
        (A([[1.0, 2.0], [3.0, 4.0]], "float32"),),
        np.array([[1.0, 2.0], [4.0, 6.0]]),
        "float32",
    )
    yield Case(
        "cumsum along None of a vector",
        "cumsum",
        (A([1.0, 2.0], "float32"), None),
        np.array([1.0, 3.0]),
        "float32",
    )
    yield Case(
        "cumsum carries NaN on",
        "cumsum",
        (A([1.0, NAN, 2.0], "float32"),),
        np.array([1.0, NAN, NAN]),
        "float32",
    )
    yield Case("cumsum of nothing", "cumsum", (A([], "float32"),), np.zeros(0), "float32")
    yield Case(
        "cumsum of int8 does not wrap", "cumsum", (A([100, 100], "int8"),), np.array([100, 200]), "int"
    )


REDUCE = list(reductions())

# --- layout -----------------------------------------------------------------------------------------------


def takes():
    for dtype in DTYPES:
        x = data(dtype, 4, 3)
        yield Case(f"take of {dtype}", "take", (A(x, dtype), A([3, 0, 0], "int64")), x[[3, 0, 0]], dtype)
    x = data("float32", 3, 4, 2)
    for index_dtype, axis in itertools.product(INTEGERS, (0, 1, 2, -1, None)):
        want = np.take(x, [1, 0], axis)
        yield Case(
            f"take with indices of {index_dtype} along {axis}",
            "take",
            (A(x, "float32"), A([1, 0], index_dtype), axis),
            want,
            "float32",
        )
    shapes = {
        "0-d": 1,
        "1-d": [1, 0],
        "2-D": [[1, 0], [0, 1], [1, 1]],
        "empty": np.zeros(0, int),
        "empty 2-D": np.zeros((2, 0), int),
    }
    for (text, indices), axis in itertools.product(shapes.items(), (0, 1, -1, None)):
        yield Case(
            f"take of {text} indices along {axis}",
            "take",
            (A(x, "float32"), A(indices, "int64"), axis),
            np.take(x, np.array(indices), axis),
            "float32",
        )
    yield Case(
        "take counts negative indices from the end",
        "take",
        (A(x, "float32"), A([-1, -3], "int64"), 1),
        x[:, [-1, -3]],
        "float32",
    )
    yield Case(
        "take counts negative int8 indices from the end",
        "take",
        (A(x, "float32"), A([-1, -3], "int8")),
        x[[-1, -3]],
        "float32",
    )
    yield Case(
        "take counts negative 2-D indices from the end",
        "take",
        (A(x, "float32"), A([[-1], [0]], "int64")),
        x[[[-1], [0]]],
        "float32",
    )
    for number in (1, -1, np.int64(1), np.uint8(1)):
        yield Case(
            f"take of the index {number!r} gives one rank less",
            "take",
            (A(x, "float32"), number),
            x[int(number)],
            "float32",
        )
    yield Case(
        "take of a 0-d index of a vector is 0-d",
        "take",
        (A([5.0, 6.0], "float32"), A(-1, "int32")),
        np.array(6.0),
        "float32",
    )
    yield Case(
        "take with NumPy indices", "take", (A(x, "float32"), N([1, -1], "int32")), x[[1, -1]], "float32"
    )
    yield Case(
        "take of NumPy data by a tensor",
        "take",
        (N(x, "float32"), A([1, -1], "int32")),
        x[[1, -1]],
        "float32",
    )


def repeats():
    for dtype in DTYPES:
        x = data(dtype, 4)
        yield Case(
            f"repeat of {dtype}",
            "repeat",
            (A(x, dtype), A([1, 0, 2, 3], "int64")),
            np.repeat(x, [1, 0, 2, 3]),
            dtype,
        )
        yield Case(
            f"repeat of {dtype} to a total",
            "repeat",
            (A(x, dtype), A([1, 0, 2, 1], "int64")),
            np.repeat(x, [1, 0, 2, 3]),
            dtype,
            kwargs={"total_repeat_length": 6},
        )
    x = data("float32", 3)
    for dtype in INTEGERS:
        yield Case(
            f"repeat with counts of {dtype}",
            "repeat",
            (A(x, "float32"), A([2, 0, 1], dtype)),
            x[[0, 0, 2]],
            "float32",
        )
        yield Case(
            f"repeat with counts of {dtype} to a total",
            "repeat",
            (A(x, "float32"), A([2, 0, 1], dtype)),
            x[[0, 0, 2, 2, 2]],
            "float32",
            kwargs={"total_repeat_length": 5},
        )
    lengths = {
        "cut": ([2, 2, 2], 4, [0, 0, 1, 1]),
        "exact": ([2, 1, 0], 3, [0, 0, 1]),
        "filled": ([1, 1, 0], 4, [0, 1, 2, 2]),
        "filled from nothing": ([0, 0, 0], 2, [2, 2]),
        "of length 0": ([1, 2, 3], 0, []),
    }
    for text, (counts, length, rows) in lengths.items():
        for host in (False, True):
            where = "NumPy counts" if host else "counts"
            yield Case(
                f"repeat {text} with {where}",
                "repeat",
                (A(x, "float32"), A(counts, "int64", host)),
                x[rows],
                "float32",
                kwargs={"total_repeat_length": length},
            )
    for number in (2, np.int64(2), A(2, "int64"), N(2, "int32")):
        yield Case(
            f"repeat by the scalar {number!r}",
            "repeat",
            (A(x, "float32"), number),
            np.repeat(x, 2),
            "float32",
        )
        yield Case(
            f"repeat by the scalar {number!r} to a total",
            "repeat",
            (A(x, "float32"), number),
            x[[0, 0, 1, 1, 2]],
            "float32",
            kwargs={"total_repeat_length": 5},
        )
    rows = data("float32", 3, 2)
    yield Case("repeat flattens by default", "repeat", (A(rows, "float32"), 2), np.repeat(rows, 2), "float32")
    yield Case(
        "repeat flattens to a total",
        "repeat",
        (A(rows, "float32"), 2),
        np.repeat(rows, 2)[:7],
        "float32",
        kwargs={"total_repeat_length": 7},
    )
    for axis in (0, 1, -1):
        counts = [2, 0, 1][: rows.shape[axis]]
        yield Case(
            f"repeat along {axis}",
            "repeat",
            (A(rows, "float32"), A(counts, "int64")),
            np.repeat(rows, counts, axis),
            "float32",
            kwargs={"axis": axis},
        )
        yield Case(
            f"repeat by a scalar along {axis}",
            "repeat",
            (A(rows, "float32"), 2),
            np.repeat(rows, 2, axis),
            "float32",
            kwargs={"axis": axis},
        )
    none = A([], "float32")
    yield Case("repeat of nothing", "repeat", (none, A([], "int64")), np.zeros(0), "float32")
    yield Case("repeat of nothing by a scalar", "repeat", (none, 3), np.zeros(0), "float32")
    yield Case("repeat by 0", "repeat", (A(x, "float32"), 0), np.zeros(0), "float32")
    yield Case(
        "repeat total as a 0-d array",
        "repeat",
        (A(x, "float32"), 2),
        x[[0, 0, 1, 1]],
        "float32",
        kwargs={"total_repeat_length": A(4, "int64")},
    )


def shapes():
    x = data("float32", 2, 6)
    forms = {
        "a tuple": (3, 4),
        "a list": [4, 3],
        "minus one": (-1,),
        "minus one inside": (2, -1, 2),
        "an int": 12,
        "NumPy sizes": (np.int64(3), np.int32(4)),
        "a 0-d array": (A(3, "int64"), 4),
        "a whole float": (3.0, 4),
    }
    for text, shape in forms.items():
        plain = {"a 0-d array": (3, 4), "a whole float": (3, 4)}.get(text, shape)
        yield Case(f"reshape to {text}", "reshape", (A(x, "float32"), shape), x.reshape(plain), "float32")
    yield Case("reshape to 0-d", "reshape", (A([5.0], "float32"), ()), np.array(5.0), "float32")
    yield Case("reshape of a 0-d array", "reshape", (A(5.0, "float32"), (1, 1)), np.array([[5.0]]), "float32")
    yield Case(
        "reshape of nothing",
        "reshape",
        (A(np.zeros((0, 3)), "float32"), (3, 0, 2)),
        np.zeros((3, 0, 2)),
        "float32",
    )
    for dtype in DTYPES:
        x = data(dtype, 4)
        yield Case(f"reshape of {dtype}", "reshape", (A(x, dtype), (2, 2)), x.reshape(2, 2), dtype)

    for dtype in DTYPES:
        x, y = data(dtype, 2, 3), data(dtype, 1, 3)
        yield Case(
            f"concatenate of {dtype}",
            "concatenate",
            ([A(x, dtype), A(y, dtype)],),
            np.concatenate([x, y]),
            dtype,
        )
    x, y = data("float32", 2, 3), data("float32", 2, 3) + 10
    for axis in (0, 1, -1, None):
        for kind in (list, tuple):
            yield Case(
                f"concatenate of a {kind.__name__} along {axis}",
                "concatenate",
                (kind([A(x, "float32"), A(y, "float32")]), axis),
                np.concatenate([x, y], axis),
                "float32",
            )
    yield Case("concatenate of one", "concatenate", ([A(x, "float32")],), x, "float32")
    yield Case(
        "concatenate of many", "concatenate", ([A(x, "float32")] * 40,), np.concatenate([x] * 40), "float32"
    )
    yield Case(
        "concatenate with an empty part",
        "concatenate",
        ([A(np.zeros((0, 3)), "float32"), A(x, "float32")],),
        x,
        "float32",
    )
    yield Case(
        "concatenate gives the common dtype",
        "concatenate",
        ([A([1], "int32"), A([2.5], "float32")],),
        np.array([1.0, 2.5]),
        "float32",
    )
    yield Case(
        "concatenate of small integers",
        "concatenate",
        ([A([1], "int8"), A([200], "uint8")],),
        np.array([1, 200]),
        "int16",
    )
    yield Case(
        "concatenate with NumPy in the list",
        "concatenate",
        ([N([1.0], "float32"), A([2.0], "float32"), N([3.0], "float32")],),
        np.array([1.0, 2.0, 3.0]),
        "float32",
    )
    yield Case(
        "concatenate flattens 0-d arrays",
        "concatenate",
        ([A(1.0, "float32"), A(2.0, "float32")], None),
        np.array([1.0, 2.0]),
        "float32",
    )


LAYOUT = [*takes(), *repeats(), *shapes()]

# --- casts and constructors -------------------------------------------------------------------------------


def casts():
    for before, after in itertools.product(DTYPES, DTYPES):
        x = data(before, 5)
        if after in UNSIGNED:
            x = abs(x)  # a negative float as an unsigned integer is the machine's choice
        want = functools.partial(oracle.each, lambda v, t=after: oracle.cast(v, t), x)
        yield Case(f"astype from {before} to {after}", "astype", (A(x, before), after), want, after)
    for dtype in DTYPES:
        x = A([0, 1], "int32")
        yield Case(
            f"astype to the framework's own {dtype}",
            "astype",
            (x, D(dtype)),
            np.array([0, 1]) == 1 if dtype == "bool" else np.array([0, 1]),
            dtype,
        )
        if dtype != "bfloat16":
            yield Case(
                f"astype to NumPy's {dtype}",
                "astype",
                (x, np.dtype(dtype)),
                np.array([0, 1]).astype(dtype),
                dtype,
            )
            yield Case(
                f"astype to NumPy's type {dtype}",
                "astype",
                (x, np.dtype(dtype).type),
                np.array([0, 1]).astype(dtype),
                dtype,
            )
    yield Case("astype to Python's float", "astype", (A([1], "int32"), float), np.array([1.0]), "float64")
    yield Case("astype to Python's int", "astype", (A([1.5], "float32"), int), np.array([1]), "int64")
    yield Case(
        "astype to Python's bool", "astype", (A([0.5, 0.0], "float32"), bool), np.array([True, False]), "bool"
    )
    yield Case(
        "astype wraps integers", "astype", (A([300, -1], "int32"), "uint8"), np.array([44, 255]), "uint8"
    )


def constructors():
    like = A([1.0, 2.0], "float32")
    for op, value in (("zeros", 0), ("ones", 1)):
        yield Case(f"{op} without like is NumPy's", op, ((2, 3),), np.full((2, 3), float(value)), "float64")
        yield Case(
            f"{op} like an array keeps its dtype",
            op,
            ((2, 3),),
            np.full((2, 3), value),
            "float32",
            kwargs={"like": like},
        )
        for shape in (3, [3], (), (2, 0), (np.int64(3),), (A(3, "int32"),)):
            plain = (3,) if isinstance(shape, tuple) and len(shape) == 1 else shape
            yield Case(
                f"{op} of shape {shape!r}",
                op,
                (shape,),
                np.full(plain, value),
                "float32",
                kwargs={"like": like},
            )
        for dtype in DTYPES:
            yield Case(
                f"{op} of {dtype}",
                op,
                (2,),
                np.full(2, bool(value) if dtype == "bool" else value),
                dtype,
                kwargs={"dtype": dtype, "like": like},
            )
            yield Case(
                f"{op}_like of {dtype}",
                f"{op}_like",
                (A(data(dtype, 2, 3), dtype),),
                np.full((2, 3), bool(value) if dtype == "bool" else value),
                dtype,
            )
            yield Case(
                f"{op}_like with the framework's own {dtype}",
                f"{op}_like",
                (like, D(dtype)),
                np.full(2, bool(value) if dtype == "bool" else value),
                dtype,
            )
    yield Case("full of a float is NumPy's", "full", (2, 2.5), np.array([2.5, 2.5]), "float64")
    yield Case("full of an integer is NumPy's", "full", (2, 7), np.array([7, 7]), "int64")
    yield Case("full of a bool is NumPy's", "full", (2, True), np.array([True, True]), "bool")
    yield Case(
        "full of a NumPy scalar keeps its dtype",
        "full",
        (2, np.float32(2.5)),
        np.array([2.5, 2.5]),
        "float32",
    )
    yield Case(
        "full like an array takes its dtype",
        "full",
        (2, 3),
        np.array([3.0, 3.0]),
        "float32",
        kwargs={"like": like},
    )
    yield Case(
        "full cuts a float for integers",
        "full",
        (2, 3.7),
        np.array([3, 3]),
        "int32",
        kwargs={"like": A([1], "int32")},
    )
    yield Case(
        "full takes 2 as True",
        "full",
        (2, 2),
        np.array([True, True]),
        "bool",
        kwargs={"dtype": "bool", "like": like},
    )
    yield Case("full of a 0-d array", "full", ((2, 2), A(5, "int64")), np.full((2, 2), 5), "int64")
    yield Case(
        "full of an array that broadcasts",
        "full",
        ((2, 3), A([1, 2, 3], "int32")),
        np.array([[1, 2, 3]] * 2),
        "int32",
    )
    yield Case("full of NaN", "full", (2, NAN), np.array([NAN, NAN]), "float32", kwargs={"like": like})
    yield Case("full of -inf", "full", (2, -INF), np.array([-INF, -INF]), "float32", kwargs={"like": like})
    yield Case(
        "full of a float beyond float32",
        "full",
        (1, 1e300),
        np.array([INF]),
        "float32",
        kwargs={"like": like},
    )
    yield Case(
        "full of the largest uint64",
        "full",
        (2, 2**64 - 1),
        np.array([2**64 - 1] * 2, np.uint64),
        "uint64",
        kwargs={"dtype": "uint64", "like": like},
    )
    yield Case(
        "full of a size read from an array",
        "full",
        ((A(2, "int64"),), A(3, "int64")),
        np.array([3, 3]),
        "int64",
    )
    for dtype in DTYPES:
        want = np.full(2, True if dtype == "bool" else 2)
        yield Case(f"full_like of {dtype}", "full_like", (A(data(dtype, 2), dtype), 2), want, dtype)
    yield Case(
        "full_like cuts a float for integers",
        "full_like",
        (A([1, 2], "int64"), 1.5),
        np.array([1, 1]),
        "int64",
    )
    yield Case(
        "full_like with another dtype",
        "full_like",
        (A([1, 2], "int64"), 1.5, "float32"),
        np.array([1.5, 1.5]),
        "float32",
    )
    yield Case(
        "full_like of a NumPy value", "full_like", (like, np.float64(2.5)), np.array([2.5, 2.5]), "float32"
    )
    yield Case(
        "full_like of nothing", "full_like", (A(np.zeros((0, 2)), "float32"), 1), np.zeros((0, 2)), "float32"
    )


def aranges():
    like = A([1.0], "float32")
    on = {"like": like}
    yield Case("arange of a stop", "arange", (4,), np.arange(4), "int", kwargs=on)
    yield Case("arange of two bounds", "arange", (2, 5), np.arange(2, 5), "int", kwargs=on)
    yield Case("arange with a step", "arange", (1, 10, 3), np.array([1, 4, 7]), "int", kwargs=on)
    yield Case("arange backwards", "arange", (5, 0, -2), np.array([5, 3, 1]), "int", kwargs=on)
    yield Case("arange of a float stop", "arange", (2.5,), np.array([0.0, 1.0, 2.0]), "float", kwargs=on)
    yield Case(
        "arange of a float step", "arange", (0, 1, 0.25), np.array([0.0, 0.25, 0.5, 0.75]), "float", kwargs=on
    )
    yield Case("arange of a negative stop is empty", "arange", (-3,), np.zeros(0, int), "int", kwargs=on)
    yield Case(
        "arange of integers counts up to a fractional bound",
        "arange",
        (2.5,),
        np.arange(3),
        "int32",
        kwargs={"dtype": "int32", **on},
    )
    yield Case("arange of a step away is empty", "arange", (0, 5, -1), np.zeros(0, int), "int", kwargs=on)
    yield Case("arange of 0 is empty", "arange", (0,), np.zeros(0, int), "int", kwargs=on)
    yield Case(
        "arange by keywords", "arange", (0,), np.array([0, 2]), "int", kwargs={"stop": 4, "step": 2, **on}
    )
    yield Case("arange of a 0-d array", "arange", (A(3, "int64"),), np.arange(3), "int")
    yield Case(
        "arange of a 0-d int32 array gives the default integer",
        "arange",
        (A(3, "int32"),),
        np.arange(3),
        "int",
    )
    yield Case(
        "arange of a 0-d float array", "arange", (A(2.5, "float32"),), np.array([0.0, 1.0, 2.0]), "float"
    )
    yield Case("arange of a NumPy scalar", "arange", (np.int8(3),), np.arange(3), "int", kwargs=on)
    yield Case("arange without like is NumPy's", "arange", (3,), np.arange(3), "int64")
    yield Case("arange without like of floats is NumPy's", "arange", (3.0,), np.arange(3.0), "float64")
    for dtype in (*INTEGERS, *FLOATS):
        yield Case(f"arange of {dtype}", "arange", (3,), np.arange(3), dtype, kwargs={"dtype": dtype, **on})
        yield Case(
            f"arange of the framework's own {dtype}",
            "arange",
            (3,),
            np.arange(3),
            dtype,
            kwargs={"dtype": D(dtype), **on},
        )


CONSTRUCT = [*casts(), *constructors(), *aranges()]
