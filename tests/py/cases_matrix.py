"""Cases of what turns, cuts, piles up and multiplies matrices: transpose, split, stack, cast, matmul."""

import functools
import itertools

import numpy as np
import oracle
from case import INF, NAN, A, Case, D, N, data
from frameworks import DTYPES, FLOATS, INTEGERS

# --- transpose, stack, cast ---------------------------------------------------------------------------------


def transposes():
    for dtype in DTYPES:
        x = data(dtype, 2, 3)
        yield Case(f"transpose of {dtype}", "transpose", (A(x, dtype),), x.T, dtype)
    x = data("float32", 2, 3, 4)
    for axes in (None, (0, 1, 2), [2, 0, 1], (-1, 0, -2), (np.int64(1), 0, 2)):
        plain = axes if axes is None else [int(axis) for axis in axes]
        want = x.transpose(plain)
        yield Case(f"transpose to {axes!r}", "transpose", (A(x, "float32"), axes), want, "float32")
    for axes in (None, (), []):
        yield Case(
            f"transpose of 0-d to {axes!r}", "transpose", (A(5.0, "float32"), axes), np.array(5.0), "float32"
        )
    v = data("float32", 3)
    for axes in (None, 0, -1, (0,)):
        yield Case(f"transpose of a vector to {axes!r}", "transpose", (A(v, "float32"), axes), v, "float32")
    none = np.zeros((0, 2, 3))
    yield Case(
        "transpose of nothing", "transpose", (A(none, "float32"), (2, 0, 1)), np.zeros((3, 0, 2)), "float32"
    )


def stacks():
    for dtype in DTYPES:
        x, y = data(dtype, 2), data(dtype, 2)[::-1].copy()
        want = np.stack([x, y])
        yield Case(f"stack of {dtype}", "stack", ([A(x, dtype), A(y, dtype)],), want, dtype)
    x, y = data("float32", 2, 3), data("float32", 2, 3) + 10
    for axis in (1, 2, -1, -3):
        for kind in (list, tuple):
            args = (kind([A(x, "float32"), A(y, "float32")]), axis)
            yield Case(
                f"stack of a {kind.__name__} along {axis}", "stack", args, np.stack([x, y], axis), "float32"
            )
    zero_d = [A(1.0, "float32"), A(2.0, "float32")]
    yield Case("stack of 0-d arrays", "stack", (zero_d,), np.array([1.0, 2.0]), "float32")
    yield Case("stack of one", "stack", ([A(x, "float32")], -1), x[..., None], "float32")
    yield Case("stack of many", "stack", ([A(x, "float32")] * 40,), np.stack([x] * 40), "float32")
    none = A(np.zeros((0, 2)), "float32")
    yield Case("stack of nothing", "stack", ([none, none], 1), np.zeros((0, 2, 2)), "float32")
    yield Case(
        "stack gives the common dtype",
        "stack",
        ([A([1], "int64"), A([2.5], "float16")],),
        np.array([[1.0], [2.5]]),
        "float16",
    )
    yield Case(
        "stack with NumPy and a scalar in the list",
        "stack",
        ([N(1.0, "float32"), A(2.0, "float32"), 3],),
        np.array([1.0, 2.0, 3.0]),
        "float32",
    )


def casts():
    for before, after in itertools.product(("int32", "float32", "bool"), DTYPES):
        x = abs(data(before, 5))
        want = oracle.each(lambda v, t=after: oracle.cast(v, t), x)
        yield Case(f"cast from {before} to {after}", "cast", (A(x, before), after), want, after)
    x = A([0, 1], "int32")
    yield Case(
        "cast to the framework's own dtype", "cast", (x, D("float32")), np.array([0.0, 1.0]), "float32"
    )
    yield Case("cast to NumPy's dtype", "cast", (x, np.dtype("int8")), np.array([0, 1]), "int8")


# --- split --------------------------------------------------------------------------------------------------


def parts(x, how, axis=0):
    """By Python's own slices."""
    n = x.shape[axis]
    if isinstance(how, int):
        bounds = [(k * (n // how), (k + 1) * (n // how)) for k in range(how)]
    else:
        bounds = list(zip([0, *how], [*how, n], strict=True))
    key = (slice(None),) * (axis % x.ndim)
    return [x[(*key, slice(*bound))] for bound in bounds]


def splits():
    split = functools.partial(Case, op="split", container=list)
    for dtype in DTYPES:
        x = data(dtype, 4)
        yield split(f"split of {dtype}", args=(A(x, dtype), 2), want=parts(x, 2), dtype=dtype)
    x = data("float32", 6)
    a = A(x, "float32")
    for sections in (1, 3, 6):
        want = parts(x, sections)
        yield split(f"split into {sections}", args=(a, sections), want=want, dtype="float32")
    for how in (np.int64(3), np.uint8(3), 3.0, A(3, "int64"), A(3, "int32"), N(3, "int16")):
        text = f"{type(how).__name__} {getattr(how, 'dtype', '')}"
        yield split(f"split into 3 as {text}", args=(a, how), want=parts(x, 3), dtype="float32")
    for cuts in ([2, 4], (2,), [], (), [4, 2], [-1], [10], [-10, 3], [0, 6], [3, 3], [-2, -5, 99]):
        want = parts(x, list(cuts))
        yield split(f"split at {cuts!r}", args=(a, cuts), want=want, dtype="float32")
    for dtype in INTEGERS:
        for array in (A, N):
            cuts = array([2, 5], dtype)
            text = f"split at {array.__name__} of {dtype}"
            yield split(text, args=(a, cuts), want=parts(x, [2, 5]), dtype="float32")
    mixed = [A(1, "int32"), np.int8(-2), N(5, "int64")]
    yield split("split at numbers of all kinds", args=(a, mixed), want=parts(x, [1, -2, 5]), dtype="float32")
    none = A([], "int64")
    yield split("split at no cuts of an array", args=(a, none), want=[x], dtype="float32")
    x = data("float32", 2, 4, 3)
    for axis, how in ((1, 2), (-2, [1, 3]), (2, 3), (-1, [-1]), (0, [1])):
        args = (A(x, "float32"), how, axis)
        yield split(f"split along {axis} at {how}", args=args, want=parts(x, how, axis), dtype="float32")
    empty = np.zeros((0, 2))
    yield split("split of nothing", args=(A(empty, "float32"), 3), want=[empty] * 3, dtype="float32")
    yield split(
        "split of empty rows", args=(A(empty.T, "float32"), 2), want=parts(empty.T, 2), dtype="float32"
    )
    yield split(
        "split of a NumPy array at the framework's cuts",
        args=(N([1, 2], "int8"), [1]),
        want=[[1], [2]],
        dtype="int8",
    )


PARTS = [*transposes(), *stacks(), *casts(), *splits()]

# --- matmul -------------------------------------------------------------------------------------------------


def products():
    for dtype in DTYPES:
        x, y = data(dtype, 2, 3), data(dtype, 3, 2)[::-1].copy()
        want = functools.partial(oracle.matmul, x, y, dtype)
        yield Case(f"matmul of {dtype}", "matmul", (A(x, dtype), A(y, dtype)), want, dtype)
    shapes = [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((2, 1, 2, 3), (4, 3, 1)),
        ((3,), (2, 3, 2)),
        ((2, 2, 3), (3,)),
        ((2, 0), (0, 3)),
        ((0,), (0,)),
        ((0, 2), (2, 3)),
        ((2, 3), (3, 0)),
        ((0, 2, 2), (2, 1)),
        ((1, 1), (1, 1)),
    ]
    for (one, other), dtype in itertools.product(shapes, ("float32", "int32")):
        x, y = data(dtype, *one), data(dtype, *other)
        want = functools.partial(oracle.matmul, x, y, dtype)
        yield Case(
            f"matmul of {one} and {other} of {dtype}", "matmul", (A(x, dtype), A(y, dtype)), want, dtype
        )
    for dtype in ("bool", "uint8", "uint64", "float16"):
        x, y = data(dtype, 2), data(dtype, 2)
        want = functools.partial(oracle.matmul, x, y, dtype)
        yield Case(f"matmul of vectors of {dtype}", "matmul", (A(x, dtype), A(y, dtype)), want, dtype)
        none = A(np.zeros((2, 0)), dtype), A(np.zeros((0, 1)), dtype)
        yield Case(f"matmul without terms of {dtype}", "matmul", none, np.zeros((2, 1)), dtype)
    ones = A(np.ones((1, 5000)), "bool"), A(np.ones((5000, 1)), "bool")
    yield Case("matmul of many truths", "matmul", ones, np.array([[True]]), "bool")
    for dtype in FLOATS:
        ones = A(np.ones(3000), dtype)
        yield Case(f"matmul of long vectors of {dtype}", "matmul", (ones, ones), np.array(3000.0), dtype)
    for dtype in INTEGERS:
        x = np.array([oracle.highest(dtype), 3], dtype)
        want = functools.partial(oracle.matmul, x, x, dtype)
        a = A(x, dtype)
        yield Case(f"matmul of {dtype} wraps", "matmul", (a, a), want, dtype)
    for one, other, common in (
        ("float32", "int64", "float32"),
        ("int8", "int32", "int32"),
        ("bool", "int8", "int8"),
        ("float16", "float32", "float32"),
        ("uint8", "bfloat16", "bfloat16"),
    ):
        x, y = data(one, 2, 2), data(other, 2, 2)
        want = functools.partial(oracle.matmul, x, y, common)
        yield Case(f"matmul of {one} and {other}", "matmul", (A(x, one), A(y, other)), want, common)
    x = A([[1.0, 2.0]], "float32")
    yield Case(
        "matmul with NumPy behind", "matmul", (x, N([3.0, 4.0], "float32")), np.array([11.0]), "float32"
    )
    yield Case(
        "matmul with NumPy in front", "matmul", (N([2.0], "float32"), x), np.array([2.0, 4.0]), "float32"
    )
    spoilt = A([[NAN, 1.0], [1.0, 1.0]], "float32"), A([[1.0, INF], [1.0, 1.0]], "float32")
    yield Case("matmul keeps NaN and inf", "matmul", spoilt, np.array([[NAN, NAN], [2.0, INF]]), "float32")


MATMUL = list(products())
