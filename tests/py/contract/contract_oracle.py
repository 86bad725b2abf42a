"""What each call should give: plain loops over Python numbers, in float64 and in integers without a width.

One entry per function, `@answers(name, ...)`: its arguments are those of the function, arrays as `Num`. It returns an
Answer, a list or tuple of them, or raises Refused where an exception is the contract. The row (of frameworks.py) says
what the defaults are and what SEMANTICS leaves to a framework.

A number may carry the error that arithmetic of its dtype may make (`Near`), or be anything at all (`ANY`) where the
contract says nothing: a sum whose order decides whether it overflows, NaN as an integer.
"""

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import oracle
from case import A, D
from contract_roles import held, parameters
from frameworks import SIGNED, UNSIGNED

ORACLES = {}
TOP = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38}
TOP["float64"] = 1.7976931348623157e308
TINY = {"float16": 6.2e-5, "bfloat16": 1.2e-38, "float32": 1.2e-38, "float64": 2.3e-308}


class Refused(Exception):
    """The contract is an exception of one of these types."""

    def __init__(self, *types):
        super().__init__(types)
        self.types = types


class Open(Exception):
    """The contract says nothing about such a call."""


class Any_:
    """What the contract leaves open."""

    def __init__(self, text, among=None):
        self.text, self.among = text, among

    def __repr__(self):
        return self.text


ANY = Any_("ANY")
NOTHING = Any_("NOTHING", lambda number: number == 0 or number != number)  # NaN or 0


class Near(float):
    """A float beside which results may lie, at most so far."""

    def __new__(cls, value, error):
        made = super().__new__(cls, value)
        made.error = error
        return made


@dataclass
class Answer:
    values: Any
    dtype: str  # the framework's, no default any more


@dataclass
class Num:
    """An operand: an object array of Python numbers, and its dtype, or its kind if it is weak."""

    values: Any
    dtype: str = ""
    weak: str = ""

    @property
    def shape(self):
        return self.values.shape


def answers(*names):
    def listed(body):
        ORACLES.update(dict.fromkeys(names, body))
        return body

    return listed


def num(value):
    if isinstance(value, A):
        numbers = oracle.objects(value.data)
        if oracle.is_float(value.dtype):
            return Num(oracle.each(lambda v: held(v, value.dtype), numbers), value.dtype)
        return Num(oracle.each(lambda v: oracle.cast(v, value.dtype), numbers), value.dtype)
    if isinstance(value, np.generic):
        return Num(oracle.objects(value), value.dtype.name)
    return weak(value) if isinstance(value, (bool, int, float)) else value


def weak(value):
    """A Python number as an operand."""
    return Num(oracle.objects(np.array(value, object)), weak=type(value).__name__)


ZERO, ONE = weak(0.0), weak(1)  # what defaults are made of


def size(value):
    return int(value.data) if isinstance(value, A) else int(value)


# --- dtypes: SEMANTICS 4, 12, 16 --------------------------------------------------------------------------


def concrete(row, name):
    return row.held({"float": row.default("f"), "int": row.default("i")}.get(name, name))


def common(row, *operands):
    """The dtype that operands have together."""
    strong = {x.dtype for x in operands if x.dtype}
    weak = {x.weak for x in operands if x.weak}
    floats = {t for t in strong if oracle.is_float(t)}
    if floats:
        wide = [t for t in ("float64", "float32") if t in floats]
        return wide[0] if wide else "float32" if len(floats) == 2 else floats.pop()
    if "float" in weak:
        return concrete(row, "float")
    integers = strong - {"bool"}
    if not integers:
        return concrete(row, "int") if "int" in weak else "bool"
    if "uint64" in integers and integers & set(SIGNED):
        return concrete(row, "float")
    return row.held(
        functools.reduce(np.promote_types, sorted(integers)).name if len(integers) > 1 else integers.pop()
    )


def floating(row, dtype):
    return dtype if oracle.is_float(dtype) else concrete(row, "float")


def widened(row, dtype):
    default = concrete(row, "int")
    return default if oracle.width(dtype) < oracle.width(default) else dtype


def fitting(x, dtype):
    """A weak integer has to fit an integer dtype (SEMANTICS 12)."""
    if x.weak == "int" and dtype in oracle.WIDTH and oracle.cast(x.values.item(), dtype) != x.values.item():
        raise Refused(OverflowError)
    return x


def as_dtype(value, dtype):
    """A cast of one number; what a float without a fitting integer becomes is the machine's choice."""
    if oracle.is_float(dtype):
        try:
            return held(float(value), dtype)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if dtype == "bool" or isinstance(value, (bool, int)):
        return oracle.cast(value, dtype)
    if (
        not math.isfinite(value)
        or oracle.cast(int(value), dtype) != int(value)
        or (value < 0 and dtype in UNSIGNED)
    ):
        return ANY
    return int(value)


def cast(x, dtype):
    return oracle.each(lambda v: as_dtype(v, dtype), fitting(x, dtype).values)


def joined(row, *operands):
    dtype = common(row, *operands)
    return dtype, [cast(x, dtype) for x in operands]


def each(f, *operands):
    """f of each element with broadcasting; what is open stays open."""
    return oracle.each(lambda *v: ANY if ANY in v else f(*v), *operands)


# --- folds that know their error --------------------------------------------------------------------------


def adding(dtype):
    """The dtype that sums are made in: half types add in float32 (SEMANTICS 4)."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def total(numbers, dtype):
    if not oracle.is_float(dtype):
        return oracle.cast(sum(numbers), dtype)
    odd = [v for v in numbers if not math.isfinite(v)]
    weight = math.fsum(abs(v) for v in numbers if math.isfinite(v))
    if weight > TOP[adding(dtype)] / 2:
        return ANY
    if odd:
        return sum(odd)
    return Near(math.fsum(numbers), oracle.TOL[adding(dtype)] * weight)


def product(numbers, dtype):
    if not oracle.is_float(dtype):
        return oracle.cast(math.prod(numbers), dtype)
    if any(v != v for v in numbers):
        return math.nan
    finite = [abs(v) for v in numbers if math.isfinite(v) and v]
    grown, shrunk = (math.fsum(math.log2(v) for v in finite if (v > 1) is side) for side in (True, False))
    if grown > math.log2(TOP[dtype]) - 1 or shrunk < math.log2(TINY[dtype]) + 1:
        return ANY
    value = math.prod(numbers)
    return Near(value, 0 if math.isinf(value) else oracle.TOL[dtype] * len(numbers) * abs(value))


def over(value, divisor):
    """A sum over a number."""
    if value is ANY:
        return ANY
    return Near(value / divisor, getattr(value, "error", 0.0) / abs(divisor))


def mean(numbers, dtype, empty=0.0):
    return over(total([float(v) for v in numbers], dtype), len(numbers)) if numbers else empty


def variance(numbers, dtype):
    middle = mean(numbers, dtype)
    if middle is ANY:
        return ANY
    squares = total([(float(v) - middle) ** 2 for v in numbers], "float64")
    if squares is ANY or not numbers:
        return squares if numbers else 0.0
    value = squares / len(numbers)
    eps = oracle.TOL[adding(dtype)]
    return Near(value, eps * value + (eps * middle) ** 2 + eps * abs(middle) * math.sqrt(value))


def deviation(numbers, dtype):
    spread = variance(numbers, dtype)
    if spread is ANY or spread != spread or math.isinf(spread):
        return spread
    root = math.sqrt(spread)
    return Near(
        root, math.sqrt(spread + getattr(spread, "error", 0.0)) - root + oracle.TOL[adding(dtype)] * root
    )


def exponential(number):
    try:
        return math.exp(number)
    except OverflowError:
        return math.inf


def softmax(numbers, dtype):
    numbers = [float(v) for v in numbers]
    size = max([abs(v) for v in numbers if math.isfinite(v)], default=0)
    error = oracle.TOL[adding(dtype)] * (len(numbers) + min(size, 1e3))
    return [Near(v, error * v) for v in oracle.softmax(numbers)]


def exact(numbers):
    """Whether a sum has no error in any order."""
    return all((v * 1024).is_integer() for v in numbers) and sum(abs(v) for v in numbers) < 2**14


def normalize(numbers, dtype):
    """Shares of the sum. Half types may hold the sum as narrow as they are."""
    numbers = [float(v) for v in numbers]
    below = total(numbers, dtype)
    if below is ANY:
        return [ANY] * len(numbers)
    if not all(math.isfinite(v) for v in numbers):
        return [v / below if below else 0.0 for v in numbers]
    weight = math.fsum(map(abs, numbers))
    if below == 0:
        return [0.0 if exact(numbers) else ANY for _ in numbers]
    error = oracle.TOL[dtype] * weight / abs(below)
    if error > 0.1 or abs(below) > TOP[dtype]:
        return [ANY] * len(numbers)
    return [Near(v / below, error * abs(v / below)) for v in numbers]


def logsumexp(numbers, dtype):
    numbers = [float(v) for v in numbers]
    top = oracle.greatest(numbers, -math.inf)
    if top != top or math.isinf(top):
        return top
    return Near(top + math.log(math.fsum(math.exp(v - top) for v in numbers)), oracle.TOL[adding(dtype)] * 10)


def truth(number):
    return number != 0


def extreme(pick, start, dtype):
    return lambda numbers: pick(numbers, start(dtype))


# --- elementwise ------------------------------------------------------------------------------------------


def of_float(f, edges):
    def value(x):
        x = float(x)
        if x != x:
            return x
        try:
            return f(x)
        except (ValueError, ZeroDivisionError, OverflowError):
            return edges(x)

    return value


UNARY = {
    "exp": of_float(math.exp, lambda x: math.inf),
    "log": of_float(math.log, lambda x: -math.inf if x == 0 else math.nan),
    "sqrt": of_float(math.sqrt, lambda x: math.nan),
    "rsqrt": of_float(
        lambda x: 1 / math.sqrt(x),
        lambda x: (ANY if math.copysign(1, x) < 0 else math.inf) if x == 0 else math.nan,
    ),
}
CHECKS = {
    "is_nan": lambda v: v != v,
    "is_inf": lambda v: isinstance(v, float) and math.isinf(v),
    "is_finite": lambda v: not isinstance(v, float) or math.isfinite(v),
}


@answers(*UNARY)
def unary(op, row, x):
    dtype = floating(row, common(row, x))
    return Answer(each(UNARY[op], cast(x, dtype)), dtype)


@answers(*CHECKS)
def check(op, row, x):
    return Answer(each(CHECKS[op], x.values), "bool")


def larger(x, y):
    return math.nan if x != x or y != y else max(x, y)


def smaller(x, y):
    return math.nan if x != x or y != y else min(x, y)


@answers("maximum", "minimum")
def extremes(op, row, x, y):
    dtype, (x, y) = joined(row, x, y)
    return Answer(each(larger if op == "maximum" else smaller, x, y), dtype)


@answers("equal_nan")
def equal_nan(op, row, x, y):
    _, (x, y) = joined(row, x, y)
    return Answer(each(lambda a, b: a == b or (a != a and b != b), x, y), "bool")


@answers("fill_nan", "fill_nan_mask")
def fill_nan(op, row, x, value=ZERO):
    dtype, (x, value) = joined(row, x, value)
    filled = Answer(each(lambda a, b: b if a != a else a, x, value), dtype)
    return filled if op == "fill_nan" else (filled, Answer(each(lambda a: a != a, x), "bool"))


@answers("nan_to_num")
def nan_to_num(op, row, x, nan=ZERO, posinf=None, neginf=None):
    dtype = common(row, x)
    if not oracle.is_float(dtype):
        return Answer(x.values, dtype)
    ends = (oracle.objects(TOP[dtype]), oracle.objects(-TOP[dtype]))
    nan, posinf, neginf = (
        cast(v, dtype) if v is not None else end
        for v, end in zip((nan, posinf, neginf), (None, *ends), strict=True)
    )

    def value(v, nan, high, low):
        return nan if v != v else high if v == math.inf else low if v == -math.inf else v

    return Answer(each(value, x.values, nan, posinf, neginf), dtype)


@answers("where")
def where(op, row, condition, x, y):
    dtype, (x, y) = joined(row, x, y)
    return Answer(each(lambda c, a, b: a if truth(c) else b, condition.values, x, y), dtype)


def led(row, x, *others):
    """The dtype of x for bounds of its own kind (SEMANTICS 19); integers beyond its range are the ends of it."""
    whole = x.dtype in oracle.WIDTH and all(v.weak in ("", "int", "bool") for v in others)
    if oracle.is_float(x.dtype):
        dtype = x.dtype
    elif whole and all(v.dtype in ("", "bool", *oracle.WIDTH) for v in others):
        dtype = x.dtype
        low, high = (int(end) for end in (np.iinfo(dtype).min, np.iinfo(dtype).max))
        clamp = functools.partial(oracle.each, lambda v: low if v < low else high if v > high else v)
        others = [Num(clamp(v.values), v.dtype) if v.dtype in oracle.WIDTH else v for v in others]
    else:
        dtype = common(row, x, *others)
    return dtype, cast(x, dtype), [cast(v, dtype) for v in others]


@answers("clip")
def clip(op, row, x, min=None, max=None):
    dtype, x, rest = led(row, x, *[v for v in (min, max) if v is not None])
    if min is not None:
        x = each(larger, x, rest.pop(0))
    if max is not None:
        x = each(smaller, x, rest.pop(0))
    return Answer(x, dtype)


# --- reductions -------------------------------------------------------------------------------------------


def reduced(row, x, axes):
    axes = range(len(x.shape)) if axes is None else [axes] if isinstance(axes, int) else axes
    return [x.shape[k] for k in axes]


@answers("sum", "prod", "mean", "min", "max")
def reduction(op, row, x, axes=None, keepdims=False):
    dtype = common(row, x)
    if op in ("min", "max"):
        if 0 in reduced(row, x, axes):
            raise Refused(ValueError, IndexError, *row.errors)
        starts = (oracle.least, oracle.highest) if op == "min" else (oracle.greatest, oracle.lowest)
        fold = extreme(*starts, dtype)
    else:
        dtype = floating(row, dtype) if op == "mean" else widened(row, dtype)
        fold = {
            "sum": lambda r: total(r, dtype),
            "prod": lambda r: product(r, dtype),
            "mean": lambda r: mean(r, dtype, math.nan),
        }[op]
    return Answer(oracle.over_axes(fold, cast(x, dtype), axes, keepdims), dtype)


@answers("cumsum")
def cumsum(op, row, x, axis=0):
    rank = len(x.shape)
    if rank == 0 or (axis is None and rank > 1):
        raise Refused(ValueError)
    dtype = widened(row, common(row, x))
    x, axis = cast(x, dtype), (axis or 0) % rank
    out = np.empty(x.shape, object)
    for place in np.ndindex(*x.shape):
        before = tuple(slice(0, k + 1) if at == axis else k for at, k in enumerate(place))
        out[place] = total(list(x[before]), dtype)
    return Answer(out, dtype)


# --- layout -----------------------------------------------------------------------------------------------


@answers("shape")
def shape(op, row, x):
    return tuple(x.shape)


@answers("align_arrays")
def align_arrays(op, row, *arrays):
    return tuple(Answer(x.values, common(row, x)) for x in arrays)


@answers("take")
def take(op, row, x, indices, axis=0):
    values = x.values
    if axis is None:
        values, axis = values.reshape(-1), 0
    if values.ndim == 0:
        raise Refused(ValueError, IndexError, *row.errors)
    axis %= values.ndim
    n, i = values.shape[axis], indices.values
    out = np.empty((*values.shape[:axis], *i.shape, *values.shape[axis + 1 :]), object)
    for place in np.ndindex(*out.shape):
        k = i[place[axis : axis + i.ndim]]
        inside = -n <= k < n
        rest = (*place[:axis], k, *place[axis + i.ndim :])
        out[place] = values[rest] if inside else NOTHING
    if row.take_out_of_range == "raises" and any(not -n <= k < n for k in i.ravel()):
        if not out.size:
            raise Open  # NumPy does not look at indices of nothing
        raise Refused(IndexError, *(row.errors if row.runs_later else ()))
    return Answer(out, common(row, x))


@answers("repeat")
def repeat(op, row, x, repeats, total_repeat_length=None, axis=None):
    if axis is not None and total_repeat_length is not None:
        raise Refused(NotImplementedError)
    values = x.values.reshape(-1) if axis is None else np.moveaxis(x.values, axis, 0)
    counts = [repeats.values.item()] * len(values) if repeats.shape == () else list(repeats.values)
    rows = [k for k, count in enumerate(counts) for _ in range(count)]
    if total_repeat_length is not None:
        length = size(total_repeat_length) if len(values) else 0
        rows = (rows + [len(values) - 1] * length)[:length]
    out = values[rows] if rows else values[:0]
    return Answer(out if axis is None else np.moveaxis(out, 0, axis), common(row, x))


@answers("reshape")
def reshape(op, row, x, shape):
    return Answer(x.values.reshape(shape), common(row, x))


@answers("concatenate")
def concatenate(op, row, arrays, axis=0):
    dtype, parts = joined(row, *arrays)
    if axis is None:
        parts, axis = [part.reshape(-1) for part in parts], 0
    return Answer(np.concatenate(parts, axis), dtype)


@answers("stack")
def stack(op, row, arrays, axis=0):
    dtype, parts = joined(row, *arrays)
    return Answer(np.stack(parts, axis), dtype)


@answers("transpose")
def transpose(op, row, x, axes=None):
    return Answer(np.transpose(x.values, axes), common(row, x))


@answers("split")
def split(op, row, x, indices_or_sections, axis=0):
    if axis is None or not x.shape:
        raise Refused(ValueError, TypeError, IndexError)
    cuts, n = indices_or_sections, x.shape[axis]
    if isinstance(cuts, int):
        cuts = [n // cuts * k for k in range(1, cuts)]
    cuts = [slice(None, int(k)).indices(n)[1] for k in (cuts.values if isinstance(cuts, Num) else cuts)]
    parts = [
        np.moveaxis(np.moveaxis(x.values, axis, 0)[a:b], 0, axis)
        for a, b in itertools.pairwise([0, *cuts, n])
    ]
    return [Answer(part, common(row, x)) for part in parts]


@answers("matmul")
def matmul(op, row, x, y):
    dtype, (x, y) = joined(row, x, y)
    rows, columns = x.ndim > 1, y.ndim > 1
    x, y = x if rows else x[None, :], y if columns else y[:, None]
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = np.broadcast_to(x, (*batch, *x.shape[-2:])), np.broadcast_to(y, (*batch, *y.shape[-2:]))
    out = np.empty((*batch, x.shape[-2], y.shape[-1]), object)
    for place in np.ndindex(*out.shape):
        pairs = zip(x[place[:-1]], y[(*place[:-2], slice(None), place[-1])], strict=True)
        products = [ANY if ANY in pair else pair[0] * pair[1] for pair in pairs]
        out[place] = ANY if ANY in products else total(products, dtype)
    out = out if columns else out[..., 0]
    return Answer(out if rows else out[..., 0, :] if columns else out[..., 0], dtype)


@answers("astype", "cast")
def astype(op, row, x, dtype):
    dtype = row.held(named(dtype))
    return Answer(oracle.each(lambda v: as_dtype(v, dtype), x.values), dtype)


# --- constructors -----------------------------------------------------------------------------------------


def named(dtype):
    return dtype.name if isinstance(dtype, (D, np.dtype)) else dtype


def filled(row, shape, fill, dtype, like):
    """SEMANTICS 15: dtype, else like's, else the value's. A scalar that is no value of an integer dtype is refused."""
    dtype = row.held(named(dtype)) if dtype else common(row, like if like is not None else fill)
    value = fill.values.item() if fill.weak else None
    if value is not None and dtype in oracle.WIDTH:
        if value != value:
            raise Refused(ValueError)
        if math.isinf(value) or oracle.cast(int(value), dtype) != int(value):
            raise Refused(OverflowError)
    values = oracle.each(lambda v: as_dtype(v, dtype), fill.values)
    return Answer(np.broadcast_to(values, shape), dtype)


@answers("full")
def full(op, row, shape, fill_value, dtype=None, like=None):
    return filled(row, shape, fill_value, dtype, like)


@answers("zeros", "ones")
def zeros(op, row, shape, dtype=None, like=None):
    return filled(row, shape, weak(float(op == "ones")), dtype, like)


@answers("full_like")
def full_like(op, row, x, fill_value, dtype=None):
    return filled(row, x.shape, fill_value, dtype, x)


@answers("zeros_like", "ones_like")
def zeros_like(op, row, x, dtype=None):
    return filled(row, x.shape, weak(float(op == "ones_like")), dtype, x)


@answers("arange")
def arange(op, row, start, stop=None, step=ONE, dtype=None, like=None, device=None):
    start, stop = (weak(0), start) if stop is None else (start, stop)
    floats = any(oracle.is_float(x.dtype) or x.weak == "float" for x in (start, stop, step))
    dtype = row.held(named(dtype)) if dtype else concrete(row, "float" if floats else "int")
    start, stop, step = (x.values.item() for x in (start, stop, step))
    count = max(0, math.ceil((stop - start) / step))
    if not oracle.is_float(dtype):
        if any(oracle.cast(v, dtype) != v for v in (start, step, start + count * step)):
            raise Open  # the framework's choice: an error, or wrapped
        return Answer(each(lambda k: ANY if floats else start + k * step, range(count)), dtype)
    return Answer(each(lambda k: float(start + k * step), range(count)), dtype)


# --- segments and partitions ------------------------------------------------------------------------------

KEPT = {
    "segment_sum": lambda t: lambda r: total(r, t),
    "segment_prod": lambda t: lambda r: product(r, t),
    "segment_max": lambda t: extreme(oracle.greatest, oracle.lowest, t),
    "segment_min": lambda t: extreme(oracle.least, oracle.highest, t),
}
FLOATED = {
    "segment_mean": mean,
    "segment_variance": variance,
    "segment_std": deviation,
    "segment_logsumexp": logsumexp,
}
SPREAD = {"segment_softmax": softmax, "segment_normalize": normalize}
TRUTH = {"segment_any": any, "segment_all": all}


@answers(*KEPT)
def kept_segments(op, row, x, segment_ids, num_segments, sorted=False):
    dtype = x.dtype
    if dtype == "bool" and op in ("segment_sum", "segment_prod"):
        dtype = concrete(row, "int")
    values = oracle.per_segment(KEPT[op](dtype), x.values, segment_ids.values, size(num_segments))
    return Answer(values, dtype)


@answers("segment_min_or_constant", "segment_max_or_constant")
def or_constant(op, row, x, segment_ids, num_segments, constant=ZERO, sorted=False):
    n, answer = size(num_segments), kept_segments(op[:11], row, x, segment_ids, num_segments)
    fill = filled(row, (n, *x.shape[1:]), constant, x.dtype, None).values
    for s, rows in enumerate(oracle.members(segment_ids.values, n)):
        if not rows:
            answer.values[s] = fill[s]
    return answer


@answers(*FLOATED)
def floated_segments(op, row, x=None, segment_ids=None, num_segments=None, sorted=False, logits=None):
    x = x or logits
    dtype = floating(row, x.dtype)
    fold = functools.partial(FLOATED[op], dtype=dtype)
    return Answer(oracle.per_segment(fold, cast(x, dtype), segment_ids.values, size(num_segments)), dtype)


@answers(*SPREAD)
def spread_segments(op, row, segment_ids, num_segments, x=None, logits=None, sorted=False):
    x = x or logits
    dtype = floating(row, x.dtype)
    fold = functools.partial(SPREAD[op], dtype=dtype)
    return Answer(oracle.per_row(fold, cast(x, dtype), segment_ids.values, size(num_segments)), dtype)


@answers(*TRUTH)
def truth_of_segments(op, row, x, segment_ids, num_segments, sorted=False):
    values = oracle.each(truth, x.values)
    return Answer(oracle.per_segment(TRUTH[op], values, segment_ids.values, size(num_segments)), "bool")


@answers("segment_argmin", "segment_argmax")
def holders(op, row, x, segment_ids, num_segments, sorted=False):
    n = size(num_segments)
    out = np.empty((n, *x.shape[1:]), object)
    for s, rows in enumerate(oracle.members(segment_ids.values, n)):
        for place in np.ndindex(*x.shape[1:]):
            column = [(x.values[(e, *place)], e) for e in rows]
            best = oracle.greatest if op == "segment_argmax" else oracle.least
            top = best([v for v, _ in column[1:]], column[0][0]) if column else None
            lost = any(v != v for v, _ in column)
            out[(s, *place)] = next((e for v, e in column if (v != v if lost else v == top)), x.shape[0])
    return Answer(out, concrete(row, "int"))


@answers("segment_attention")
def attention(op, row, logits, values, segment_ids, num_segments, sorted=False):
    dtype, (logits, values) = joined(row, logits, values)
    dtype = floating(row, dtype)
    n, ids = size(num_segments), segment_ids.values
    shares = oracle.per_row(functools.partial(softmax, dtype=dtype), logits, ids, n)
    out = np.empty((n, *values.shape[1:]), object)
    for s, rows in enumerate(oracle.members(ids, n)):
        for place in np.ndindex(*values.shape[1:]):
            pairs = [(shares[(e, *place[: logits.ndim - 1])], float(values[(e, *place)])) for e in rows]
            out[(s, *place)] = weighted(pairs, dtype)
    return Answer(out, dtype)


def weighted(pairs, dtype):
    mean = total([float(p) * v for p, v in pairs], dtype)
    if mean is ANY or mean != mean or math.isinf(mean):
        return mean
    return Near(mean, getattr(mean, "error", 0.0) + sum(getattr(p, "error", 0.0) * abs(v) for p, v in pairs))


@answers("segment_count")
def segment_count(op, row, segment_ids, num_segments, sorted=False):
    counts = [float(len(rows)) for rows in oracle.members(segment_ids.values, size(num_segments))]
    return Answer(oracle.objects(np.array(counts)), concrete(row, "float"))


def runs(row, partitions, total_length):
    """Ids of runs; a total that is not the sum is refused where it is seen, else cut or filled (SEMANTICS 9)."""
    length = size(total_length)
    if row.reads_counts and sum(partitions.values) != length:
        raise Refused(ValueError)
    return oracle.objects(np.array(oracle.expanded(partitions.values, length), dtype=object))


@answers("partition_ids")
def partition_ids(op, row, partitions, total_length):
    return Answer(runs(row, partitions, total_length), concrete(row, "int"))


def partition(op, row, partitions, total_length, **data):
    ids = Num(runs(row, partitions, total_length), "int64")
    twin = op.replace("partition", "segment")
    return ORACLES[twin](twin, row, segment_ids=ids, num_segments=len(partitions.values), **data)


for name in list(ORACLES):
    if name.startswith("segment_") and name not in ("segment_count", "segment_attention"):
        ORACLES.setdefault(name.replace("segment_", "partition_"), partition)


# Operands are numbers to compute with; what stands here goes to the oracle as it is.
PLAIN = ("SIZE", "MAYBE_SIZE", "SHAPE", "DTYPE", "AXES", "AXIS", "FLAG", "DEVICE")


def operand(kind, value):
    if kind == "LIST":
        return [num(one) for one in value]
    if kind == "CUTS" and not isinstance(value, A):
        return value
    return value if kind in PLAIN else num(value)


def answer(row, call):
    """What the call should give."""
    body, signature = ORACLES[call.op], parameters()[call.op]
    if signature[0][1] == "OPERANDS":
        return body(call.op, row, *map(num, call.args))
    given = {**dict(zip([name for name, *_ in signature], call.args, strict=False)), **call.kwargs}
    kinds = {name: kind for name, kind, *_ in signature}
    return body(call.op, row, **{name: operand(kinds[name], value) for name, value in given.items()})


# --- comparing --------------------------------------------------------------------------------------------


def same(got, want, dtype):
    """Whether a number is what is expected, within the error of its dtype."""
    if isinstance(want, Any_):
        return want.among is None or want.among(got)
    if not oracle.is_float(dtype) or want != want or got != got:
        return got == want or (want != want and got != got)
    error = getattr(want, "error", 0.0)
    if math.isinf(want):
        return got == want
    allowed = oracle.TOL[dtype] * abs(want) + error + TINY[dtype]
    if math.isinf(got):
        return abs(want) + allowed >= TOP[dtype] and (got > 0) == (want > 0 or allowed >= TOP[dtype])
    return abs(got - want) <= allowed


def difference(got, want):
    """None if NumPy's `got` is the answer, else a text."""
    if got.shape != np.shape(want.values):
        return f"shape {got.shape}, expected {np.shape(want.values)}"
    for place in np.ndindex(*got.shape):
        if not same(got[place].item(), want.values[place], want.dtype):
            return f"{got[place].item()!r} at {place}, expected {want.values[place]!r}; got\n{got}"
    return None
