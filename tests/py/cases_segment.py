"""Cases of segments and partitions."""

import functools
import itertools

import numpy as np
import oracle
from case import INF, NAN, A, Case, N, data
from frameworks import DTYPES, FLOATS, INTEGERS, UNSIGNED

# --- segments ---------------------------------------------------------------------------------------------

KEEP = ("segment_sum", "segment_min", "segment_max", "segment_min_or_constant", "segment_max_or_constant")
FLOAT = ("segment_mean", "segment_variance", "segment_normalize", "segment_softmax")
TRUTH = ("segment_any", "segment_all")
ROWS = ("segment_argmin", "segment_argmax")
MORE_OPS = ("segment_prod", "segment_std", "segment_logsumexp", *TRUTH, *ROWS)
SEGMENT_OPS = KEEP + FLOAT + MORE_OPS + ("segment_count",)
FULL_OPS = (
    *KEEP,
    *FLOAT,
    "segment_prod",
    "segment_argmax",
    "segment_count",
)  # the others share their ids and sizes
IDS = [2, 0, 5, 0, -1, 3, 2, 7, 0]  # of 4 segments: 1 is empty, three rows are dropped
UNSIGNED_IDS = [2, 0, 5, 0, 200, 3, 2, 7, 0]


def segment_dtype(op, dtype):
    if op == "segment_count":
        return "float"
    if op in TRUTH or op in ROWS:
        return "bool" if op in TRUTH else "int"
    if op in ("segment_sum", "segment_prod"):
        return "int" if dtype == "bool" else dtype
    return dtype if op in KEEP or oracle.is_float(dtype) else "float"


def segment_tol(op, dtype):
    """The default of the result's dtype, but float32's where a default float may be float32."""
    return oracle.TOL["float32"] if op not in KEEP and not oracle.is_float(dtype) else 0.0


def segment(
    name, op, x, ids, n, *more, ids_dtype="int64", n_as=None, host=(False, False), values=None, **kwargs
):
    """A case of a segment function on x = (data, dtype)."""
    numbers, dtype = x
    rows = A(numbers, dtype, host=host[0])
    index = A(ids, ids_dtype, host=host[1])
    operands = (index,) if op == "segment_count" else (rows, index)
    constant = kwargs.get("constant", more[0] if more else 0.0)
    if op.endswith("or_constant") and isinstance(constant, A):
        constant = constant.data
    want = functools.partial(
        oracle.segment, op, numbers if values is None else values, ids, n, dtype, constant
    )
    size = n if n_as is None else n_as
    return Case(
        f"{op} {name}",
        op,
        (*operands, size, *more),
        want,
        segment_dtype(op, dtype),
        segment_tol(op, dtype),
        kwargs,
    )


def segments_of_each_dtype():
    for op, dtype in itertools.product(SEGMENT_OPS[:-1], DTYPES):
        for rank in (2,) if op in MORE_OPS else (1, 2, 3):
            x = data(dtype, *(9, 2, 3)[:rank])
            yield segment(f"of {dtype} rank {rank}", op, (x, dtype), IDS, 4)


def segments_of_each_id_dtype():
    x = data("float32", 9, 2), "float32"
    for op, dtype in itertools.product(FULL_OPS, INTEGERS):
        ids = UNSIGNED_IDS if dtype in UNSIGNED else IDS
        yield segment(f"with ids of {dtype}", op, x, ids, 4, ids_dtype=dtype)
    far = [0, 2**63, 1, 2**64 - 1, 2**63 + 1, 1]
    near = [0, 2**31 - 1, 1, -(2**31), -1, 1]
    farther = [0, 2**63 - 1, 1, -(2**63), 2**32, 1]
    short = data("float32", 6), "float32"
    for op in FULL_OPS:
        yield segment("drops uint64 ids beyond int64", op, short, far, 2, ids_dtype="uint64")
        yield segment("drops the extreme ids of int32", op, short, near, 2, ids_dtype="int32")
        yield segment("drops the extreme ids of int64", op, short, farther, 2, ids_dtype="int64")
        yield segment(
            "drops id n of int8 where n + 1 does not fit it",
            op,
            short,
            [0, 127, 1, -128, 126, 1],
            127,
            ids_dtype="int8",
        )
        yield segment(
            "drops ids of uint8 where n does not fit it",
            op,
            short,
            [0, 255, 1, 3, 2, 1],
            300,
            ids_dtype="uint8",
        )


def segments_at_the_edges():
    for op in SEGMENT_OPS:
        for dtype in ("float32", "float16", "int32", "uint8", "bool"):
            yield segment(f"of no rows of {dtype}", op, (data(dtype, 0, 2), dtype), [], 3)
            yield segment(f"into no segments of {dtype}", op, (data(dtype, 3), dtype), [0, 1, -1], 0)
            yield segment(f"of zero width of {dtype}", op, (data(dtype, 3, 0), dtype), [0, 1, 1], 2)
        x = data("float32", 5, 2), "float32"
        yield segment("of no rows into no segments", op, (data("float32", 0), "float32"), [], 0)
        yield segment("with all ids dropped", op, x, [-1, 9, -7, 3, 4], 3)
        yield segment("of one row", op, (data("float32", 1), "float32"), [0], 1)
        yield segment("keeps trailing empty segments when sorted", op, x, [0, 0, 1, 3, 3], 6, sorted=True)
        yield segment("of sorted ids drops both ends", op, x, [-2, 0, 0, 2, 3], 3, sorted=True)
        for label, host in (("x", (True, False)), ("ids", (False, True))):
            yield segment(f"takes NumPy {label} beside a tensor", op, x, [1, 0, 1, 4, -1], 3, host=host)
        yield segment(
            "takes NumPy ids of uint64 beside a tensor",
            op,
            x,
            [1, 0, 1, 2**63, 2],
            3,
            host=(False, True),
            ids_dtype="uint64",
        )


def segments_with_every_form_of_size():
    forms = {
        "np.int64": np.int64(3),
        "np.uint8": np.uint8(3),
        "whole float": 3.0,
        "whole np.float64": np.float64(3.0),
        "0-d NumPy array": N(3, "int64"),
        "0-d array": A(3, "int64"),
        "0-d int32 array": A(3, "int32"),
        "0-d uint8 array": A(3, "uint8"),
    }
    x = data("float32", 4), "float32"
    for op, (form, size) in itertools.product(
        (*KEEP, *FLOAT, "segment_argmax", "segment_count"), forms.items()
    ):
        yield segment(f"takes num_segments as {form}", op, x, [0, 2, 2, 5], 3, n_as=size)


def segments_with_nan_and_inf():
    ids = [0, 0, 1, 1, 2, 2, 3, 3, 4, 9, -1]
    column = [1.0, NAN, INF, 2.0, -INF, -INF, -INF, 1.0, INF, NAN, INF]
    plain = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1.0, 2.0]
    x = np.array([column, plain]).T
    for op, dtype in itertools.product(SEGMENT_OPS[:-1], FLOATS):
        yield segment(f"keeps NaN and infinities of {dtype} in their place", op, (x, dtype), ids, 6)
    for op, dtype in itertools.product(SEGMENT_OPS[:-1], ("float32", "bfloat16")):
        yield segment(
            f"with inf and -inf of {dtype} in one segment", op, ([INF, -INF, 1.0], dtype), [0, 0, 1], 2
        )
        yield segment(f"of only -inf of {dtype}", op, ([-INF, -INF], dtype), [1, 1], 3)
        yield segment(f"of only inf of {dtype}", op, ([INF, INF], dtype), [1, 1], 3)
        yield segment(
            f"does not see inf and NaN of {dtype} in dropped rows",
            op,
            ([NAN, 1.0, INF, -INF], dtype),
            [-1, 0, 2, 7],
            2,
        )
    yield segment("of zero sum gives zero", "segment_normalize", ([1.0, -1.0, 2.0], "float32"), [0, 0, 1], 2)
    yield segment(
        "of large logits does not overflow",
        "segment_softmax",
        ([1000.0, 1000.0, -1000.0], "float32"),
        [0, 0, 1],
        2,
    )
    yield segment(
        "of float16 does not overflow", "segment_softmax", ([60000.0, 60000.0], "float16"), [0, 0], 1
    )
    yield segment(
        "of large logits does not overflow",
        "segment_logsumexp",
        ([1000.0, 1000.0, -1000.0, 3.0e38], "float32"),
        [0, 0, 1, 2],
        3,
    )
    yield segment(
        "of float16 does not overflow", "segment_logsumexp", ([60000.0, 60000.0], "float16"), [0, 0], 1
    )
    yield segment("of float16 does not overflow", "segment_std", ([1000.0, -1000.0], "float16"), [0, 0], 1)
    big = [4096.0, 4097.0, 4098.0, 4099.0]
    yield segment("is exact beside a large offset", "segment_variance", (big, "float32"), [0, 0, 0, 0], 1)


def segments_of_integer_extremes():
    for dtype in INTEGERS:
        top, bottom = oracle.highest(dtype), oracle.lowest(dtype)
        x = np.array([top, bottom, top, 1, bottom], dtype=dtype)
        ids = [0, 0, 1, 1, 2]
        for op in ("segment_sum", "segment_min", "segment_max", "segment_prod", *ROWS):
            yield segment(f"of extreme {dtype} wraps or keeps them", op, (x, dtype), ids, 4)
    for dtype in ("float32", "int8", "uint64", "bool"):
        for op in ("segment_min_or_constant", "segment_max_or_constant"):
            edge = oracle.highest(dtype) if "min" in op else oracle.lowest(dtype)
            x = np.array([edge, 0, edge], dtype=dtype)
            yield segment(
                f"tells an occupied extreme of {dtype} from an empty segment", op, (x, dtype), [0, 1, 0], 3, 1
            )
    for op in ("segment_min_or_constant", "segment_max_or_constant"):
        x = data("float32", 4, 2), "float32"
        yield segment("takes NaN as constant", op, x, [0, 2, 2, 0], 4, NAN)
        yield segment("takes the constant by keyword", op, x, [0, 2, 2, 0], 4, constant=-7)
        yield segment("takes a 0-d array as constant", op, x, [0, 2, 2, 0], 4, A(2.5, "float64"))
        yield segment("takes a NumPy scalar as constant", op, x, [0, 2, 2, 0], 4, np.float64(2.5))
        yield segment(
            "cuts a fractional constant for integers", op, (data("int32", 4), "int32"), [0, 2, 2, 0], 4, 2.75
        )
        yield segment("is sorted as its fifth argument", op, x, [0, 0, 2, 2], 4, -1.0, True)


def products_with_zeros():
    x = [2.0, 0.0, -3.0, 0.0, 0.0, -0.0, 5.0, INF, 0.0, NAN, INF, -2.0]
    ids = [0, 1, 0, 1, 2, 3, 3, 4, 4, 5, 6, 6]
    for dtype in FLOATS:
        yield segment(f"of zeros, infinities and NaN of {dtype}", "segment_prod", (x, dtype), ids, 8)
    yield segment("of many rows of int32 wraps", "segment_prod", ([3] * 50, "int32"), [0] * 50, 1)
    yield segment("of many rows of uint16 wraps", "segment_prod", ([65535] * 51, "uint16"), [0] * 51, 1)
    yield segment(
        "of float16 multiplies in float32", "segment_prod", ([300.0, 300.0, 0.25, 0.5], "float16"), [0] * 4, 1
    )
    yield segment("of bfloat16 rounds once", "segment_prod", ([1.0078125] * 100, "bfloat16"), [0] * 100, 1)


def rows_that_hold_extremes():
    ids = [1, 1, 1, 0, 0, 3, 3, 9, -1, 3]
    for op in ROWS:
        for dtype in FLOATS:
            x = [2.0, 2.0, 1.0, -0.0, 0.0, 1.0, NAN, 9.0, -9.0, NAN]
            yield segment(f"of {dtype} is the first of ties and of NaN", op, (x, dtype), ids, 4)
            edges = [INF, INF, -INF, -INF, -INF, INF, 1.0, INF, -INF, INF]
            yield segment(f"of {dtype} finds infinities", op, (edges, dtype), ids, 4)
        for dtype in ("bool", "uint64", "int8"):
            equal = np.ones(10, dtype=dtype)
            yield segment(f"of equal rows of {dtype} is the first", op, (equal, dtype), ids, 4)
        yield segment("of a broad array", op, (data("int32", 10, 2, 2, 3), "int32"), ids, 5)


def truth_of_values():
    x = [0.0, -0.0, NAN, 1e-30, 0.0, -INF]
    ids = [0, 0, 1, 2, 2, 3]
    for op, dtype in itertools.product(TRUTH, ("bfloat16", "float32", "float64")):
        yield segment(f"of {dtype} takes NaN as true and -0 as false", op, (x, dtype), ids, 5)
    for op in TRUTH:
        yield segment(
            "of uint8 whose sum wraps to 0", op, ([128, 128, 0, 255, 1], "uint8"), [0, 0, 1, 2, 2], 4
        )
        yield segment("of int64 beyond float64", op, ([2**63 - 1, -(2**63), 2**32], "int64"), [0, 0, 1], 3)


def sums_in_half_precision():
    ones, ids = np.ones(3000), [0] * 3000
    for dtype in ("float16", "bfloat16"):
        for op in ("segment_sum", "segment_mean", "segment_variance", "segment_softmax"):
            yield segment(f"adds {dtype} in float32", op, (ones, dtype), ids, 1)
        for op in ("sum", "mean"):
            want = 3000.0 if op == "sum" else 1.0
            yield Case(f"{op} adds {dtype} in float32", op, (A(ones, dtype),), np.array(want), dtype)
            rows = A(np.ones((3000, 2)), dtype)
            yield Case(f"{op} adds {dtype} in float32 down the rows", op, (rows, 0), np.full(2, want), dtype)
            columns = A(np.ones((2, 3000)), dtype)
            yield Case(
                f"{op} adds {dtype} in float32 along the rows", op, (columns, 1), np.full(2, want), dtype
            )
        want = np.arange(1.0, 3001.0)
        yield Case(f"cumsum adds {dtype} in float32", "cumsum", (A(ones, dtype),), want, dtype)


SEGMENT = [
    *segments_of_each_dtype(),
    *segments_of_each_id_dtype(),
    *segments_at_the_edges(),
    *segments_with_every_form_of_size(),
    *segments_with_nan_and_inf(),
    *segments_of_integer_extremes(),
    *sums_in_half_precision(),
    *products_with_zeros(),
    *rows_that_hold_extremes(),
    *truth_of_values(),
]

# --- attention --------------------------------------------------------------------------------------------


def attention(name, logits, values, ids, n, dtype=None, ids_dtype="int64", host=(False,) * 3, n_as=None):
    """A case of segment_attention on logits and values = (data, dtype)."""
    result = dtype or (values[1] if oracle.is_float(values[1]) else "float")
    return Case(
        f"segment_attention {name}",
        "segment_attention",
        (A(*logits, host[0]), A(*values, host[1]), A(ids, ids_dtype, host[2]), n if n_as is None else n_as),
        functools.partial(oracle.attention, logits[0], values[0], ids, n),
        result,
        0.0 if oracle.is_float(values[1]) else oracle.TOL["float32"],
    )


def attentions():
    for dtype in DTYPES:
        x = data(dtype, 9, 2, 3), dtype
        yield attention(f"of {dtype}", (data(dtype, 9, 2), dtype), x, IDS, 4)
    x = data("float32", 9, 2, 3), "float32"
    for rank in (1, 2, 3):
        for more in range(3 - rank + 1):
            shape = (9, 2, 3)[: rank + more]
            logits = data("float32", *shape[:rank]), "float32"
            yield attention(
                f"of rank {rank} and {rank + more}", logits, (data("float32", *shape), "float32"), IDS, 4
            )
    heads = data("float32", 9, 2), "float32"
    for dtype in ("uint8", "int32", "uint64"):
        yield attention(f"with ids of {dtype}", heads, x, UNSIGNED_IDS, 4, ids_dtype=dtype)
    yield attention("of float32 beside float64", heads, (x[0], "float64"), IDS, 4)
    yield attention("of float32 beside float16", heads, (x[0], "float16"), IDS, 4, "float32")
    yield attention(
        "of float16 beside integers", (heads[0], "float16"), (x[0] * 2, "int32"), IDS, 4, "float16"
    )
    yield attention("takes a 0-d array as size", heads, x, IDS, 4, n_as=A(4, "int32"))
    for k, label in enumerate(("logits", "values", "ids")):
        host = tuple(i == k for i in range(3))
        yield attention(f"takes NumPy {label} beside tensors", heads, x, IDS, 4, host=host)
    yield attention(
        "of no rows", (data("float32", 0, 2), "float32"), (data("float32", 0, 2, 3), "float32"), [], 3
    )
    yield attention("of zero width", heads, (data("float32", 9, 2, 0), "float32"), IDS, 4)
    yield attention("into no segments", heads, x, IDS, 0)
    for dtype in ("float32", "bfloat16"):
        edges = [-INF, -INF, INF, 1.0, NAN, 0.0, -INF, 2.0, INF, NAN]
        ids = [0, 0, 1, 1, 2, 2, 3, 3, 9, -1]
        rows = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, INF, NAN]
        yield attention(f"of infinite and NaN logits of {dtype}", (edges, dtype), (rows, dtype), ids, 5)
        some = [1.0, NAN, 3.0, INF, 5.0, -INF, INF, NAN, 9.0, 9.0]
        plain = [0.0] * 10
        yield attention(
            f"of infinite and NaN values of {dtype}",
            (plain, dtype),
            (some, dtype),
            [0, 0, 1, 1, 2, 2, 8, -1, 3, 3],
            4,
        )
    ones = [60000.0] * 3000
    yield attention(
        "of float16 adds in float32", (np.zeros(3000), "float16"), (ones, "float16"), [0] * 3000, 1
    )


SEGMENT += attentions()

# --- partitions -------------------------------------------------------------------------------------------

TWIN = {"sum": "segment_sum", "min": "segment_min", "max": "segment_max", "softmax": "segment_softmax"}


def partition(name, op, x, counts, length, counts_dtype="int64", host=(False, False), length_as=None):
    size = length if length_as is None else length_as
    lengths = A(counts, counts_dtype, host=host[1])
    ids = oracle.expanded(counts, length)
    if op == "ids":
        return Case(f"partition_ids {name}", "partition_ids", (lengths, size), np.array(ids, np.int64), "int")
    numbers, dtype = x
    want = functools.partial(oracle.segment, TWIN[op], numbers, ids, len(counts), dtype)
    return Case(
        f"partition_{op} {name}",
        f"partition_{op}",
        (A(numbers, dtype, host=host[0]), lengths, size),
        want,
        segment_dtype(TWIN[op], dtype),
        segment_tol(TWIN[op], dtype),
    )


def partitions():
    counts = [2, 0, 3, 1]
    for op, dtype in itertools.product(TWIN, DTYPES):
        for rank in (1, 2):
            x = data(dtype, *(6, 2)[:rank]), dtype
            yield partition(f"of {dtype} rank {rank}", op, x, counts, 6)
    x = data("float32", 6, 2), "float32"
    for op in ("ids", *TWIN):
        for dtype in INTEGERS:
            yield partition(f"with lengths of {dtype}", op, x, counts, 6, dtype)
        empty = data("float32", 0), "float32"
        yield partition("of no parts", op, empty, [], 0)
        yield partition("of empty parts", op, empty, [0, 0, 0], 0)
        yield partition("of one part", op, x, [6], 6)
        yield partition("with empty parts at both ends", op, x, [0, 0, 6, 0], 6)
        yield partition("takes NumPy lengths beside a tensor", op, x, counts, 6, host=(False, op != "ids"))
        yield partition("takes NumPy data beside a tensor", op, x, counts, 6, host=(op != "ids", False))
        yield partition("takes a 0-d array as total_length", op, x, counts, 6, length_as=A(6, "int64"))
        yield partition("takes a NumPy scalar as total_length", op, x, counts, 6, length_as=np.int32(6))
        yield partition("takes a whole float as total_length", op, x, counts, 6, length_as=6.0)


PARTITION = list(partitions())
