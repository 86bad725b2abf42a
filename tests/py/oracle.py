"""What the answers should be: plain loops over Python numbers, sharing no code with the library.

Floats are Python's (float64), integers have no width until `cast` wraps them. Arrays in, object arrays out.
"""

import math

import numpy as np

WIDTH = {f"{sign}int{bits}": (bits, sign == "") for sign in ("", "u") for bits in (8, 16, 32, 64)}
TOL = {"float64": 1e-12, "float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2}


def width(dtype):
    """Bits of an integer dtype; bool and floats have none that matter here."""
    return WIDTH[dtype][0] if dtype in WIDTH else 0 if dtype == "bool" else math.inf


def is_float(dtype):
    return dtype in TOL


def highest(dtype):
    if dtype == "bool":
        return True
    if is_float(dtype):
        return math.inf
    bits, signed = WIDTH[dtype]
    return 2 ** (bits - signed) - 1


def lowest(dtype):
    if dtype == "bool":
        return False
    if is_float(dtype):
        return -math.inf
    bits, signed = WIDTH[dtype]
    return -(2 ** (bits - 1)) if signed else 0


def cast(value, dtype):
    """A number as the dtype holds it: integers wrap, floats become integers by cutting."""
    if dtype == "bool":
        return bool(value)
    if is_float(dtype):
        return float(value)
    bits, signed = WIDTH[dtype]
    value = int(value) % 2**bits
    return value - 2**bits if signed and value >= 2 ** (bits - 1) else value


def objects(x):
    """An object array of Python numbers."""
    x = np.asarray(x)
    out = np.empty(x.shape, dtype=object)
    for place in np.ndindex(*x.shape):
        value = x[place]
        out[place] = value.item() if hasattr(value, "item") else value
    return out


def each(f, *operands):
    """f of each element, with broadcasting."""
    operands = np.broadcast_arrays(*[objects(x) for x in operands])
    out = np.empty(operands[0].shape, dtype=object)
    for place in np.ndindex(*out.shape):
        out[place] = f(*[x[place] for x in operands])
    return out


# --- folds of a list of numbers ---------------------------------------------------------------------------


def total(numbers):
    result = 0
    for number in numbers:
        result = result + number
    return result


def product(numbers):
    result = 1
    for number in numbers:
        result = result * number
    return result


def is_nan(number):
    return number != number


def greatest(numbers, start):
    result = start
    for number in numbers:
        if is_nan(number):
            return math.nan
        if number > result:
            result = number
    return result


def least(numbers, start):
    result = start
    for number in numbers:
        if is_nan(number):
            return math.nan
        if number < result:
            result = number
    return result


def mean(numbers, empty=0.0):
    return total(float(number) for number in numbers) / len(numbers) if numbers else empty


def variance(numbers):
    middle = mean(numbers)
    return mean([(float(number) - middle) ** 2 for number in numbers])


def exponential(number):
    try:
        return math.exp(number)
    except OverflowError:
        return math.inf


def softmax(numbers):
    top = greatest([float(number) for number in numbers], -math.inf)
    powers = [exponential(float(number) - top) for number in numbers]
    below = total(powers)
    return [power / below if below else math.nan for power in powers]


def deviation(numbers):
    spread = variance(numbers)
    return spread if is_nan(spread) else math.sqrt(spread)


def logsumexp(numbers):
    numbers = [float(number) for number in numbers]
    top = greatest(numbers, -math.inf)
    if is_nan(top) or math.isinf(top):
        return top
    return top + math.log(total(math.exp(number - top) for number in numbers))


def first_of(numbers, beats):
    """The place of the number that beats all before it and is beaten by none behind it; of a NaN, if there is one."""
    best = 0
    for place, number in enumerate(numbers):
        if is_nan(number):
            return place
        if beats(number, numbers[best]):
            best = place
    return best


def normalize(numbers):
    below = total(float(number) for number in numbers)
    return [number / below if below else 0.0 for number in numbers]


# --- segments ---------------------------------------------------------------------------------------------


def members(ids, n):
    ids = [int(i) for i in ids]
    return [[e for e in range(len(ids)) if ids[e] == s] for s in range(n)]


def per_segment(fold, x, ids, n):
    """fold of each segment's numbers, column by column: (n, ...)."""
    x = objects(x)
    out = np.empty((n, *x.shape[1:]), dtype=object)
    for s, rows in enumerate(members(ids, n)):
        for place in np.ndindex(*x.shape[1:]):
            out[(s, *place)] = fold([x[(e, *place)] for e in rows])
    return out


def holders(beats, x, ids, n):
    """The row that beats the others of each segment, column by column; the number of rows where there is none."""
    x = objects(x)
    out = np.empty((n, *x.shape[1:]), dtype=object)
    for s, rows in enumerate(members(ids, n)):
        for place in np.ndindex(*x.shape[1:]):
            out[(s, *place)] = rows[first_of([x[(e, *place)] for e in rows], beats)] if rows else len(x)
    return out


def attention(logits, values, ids, n):
    """The values of each segment, weighted by the softmax of the logits, whose axes are the first of the values'."""
    logits, values = objects(logits), objects(values)
    shares = per_row(softmax, logits, ids, n)
    out = np.empty((n, *values.shape[1:]), dtype=object)
    for s, rows in enumerate(members(ids, n)):
        for place in np.ndindex(*values.shape[1:]):
            head = place[: logits.ndim - 1]
            out[(s, *place)] = total(shares[(e, *head)] * float(values[(e, *place)]) for e in rows)
    return out


def per_row(spread, x, ids, n):
    """One number per row from its segment's numbers; 0 where the id is dropped: x's shape."""
    x = objects(x)
    out = np.empty(x.shape, dtype=object)
    out[...] = 0.0
    for rows in members(ids, n):
        for place in np.ndindex(*x.shape[1:]):
            for e, number in zip(rows, spread([x[(e, *place)] for e in rows]), strict=True):
                out[(e, *place)] = number
    return out


def segment(op, x, ids, n, dtype, constant=0.0):
    """Expected value of a segment function; dtype is that of the data."""
    low, high = lowest(dtype), highest(dtype)
    if op == "segment_sum":
        wraps = (lambda v: v) if dtype == "bool" or is_float(dtype) else (lambda v: cast(v, dtype))
        return per_segment(lambda r: wraps(total(r)), x, ids, n)
    if op == "segment_prod":
        wraps = (lambda v: v) if dtype == "bool" or is_float(dtype) else (lambda v: cast(v, dtype))
        return per_segment(lambda r: wraps(product(r)), x, ids, n)
    if op == "segment_any":
        return per_segment(lambda r: any(v != 0 for v in r), x, ids, n)
    if op == "segment_all":
        return per_segment(lambda r: all(v != 0 for v in r), x, ids, n)
    if op == "segment_argmax":
        return holders(lambda a, b: a > b, x, ids, n)
    if op == "segment_argmin":
        return holders(lambda a, b: a < b, x, ids, n)
    if op == "segment_std":
        return per_segment(deviation, x, ids, n)
    if op == "segment_logsumexp":
        return per_segment(logsumexp, x, ids, n)
    if op == "segment_max":
        return per_segment(lambda r: greatest(r, low), x, ids, n)
    if op == "segment_min":
        return per_segment(lambda r: least(r, high), x, ids, n)
    if op == "segment_max_or_constant":
        return per_segment(lambda r: greatest(r, low) if r else cast(constant, dtype), x, ids, n)
    if op == "segment_min_or_constant":
        return per_segment(lambda r: least(r, high) if r else cast(constant, dtype), x, ids, n)
    if op == "segment_mean":
        return per_segment(mean, x, ids, n)
    if op == "segment_variance":
        return per_segment(variance, x, ids, n)
    if op == "segment_softmax":
        return per_row(softmax, x, ids, n)
    if op == "segment_normalize":
        return per_row(normalize, x, ids, n)
    if op == "segment_count":
        return np.array([float(len(rows)) for rows in members(ids, n)], dtype=object)
    raise ValueError(op)


def expanded(counts, length):
    """Ids of consecutive runs; the tail reads the number of runs."""
    ids = [run for run, count in enumerate(counts) for _ in range(int(count))]
    return (ids + [len(counts)] * length)[:length]


# --- reductions -------------------------------------------------------------------------------------------


def over_axes(fold, x, axes, keepdims=False):
    x = objects(x)
    axes = range(x.ndim) if axes is None else [axes] if isinstance(axes, int) else axes
    axes = {axis % x.ndim for axis in axes}
    kept = [1 if k in axes else size for k, size in enumerate(x.shape)]
    out = np.empty(kept, dtype=object)
    for place in np.ndindex(*kept):
        key = tuple(slice(None) if k in axes else place[k] for k in range(x.ndim))
        out[place] = fold(list(x[key].ravel()) if axes else [x[key]])
    return out if keepdims else out.reshape([size for k, size in enumerate(kept) if k not in axes])


def running(x, axis):
    out = objects(x)
    axis %= out.ndim
    for place in np.ndindex(*out.shape):
        if place[axis] > 0:
            before = (*place[:axis], place[axis] - 1, *place[axis + 1 :])
            out[place] = out[before] + out[place]
    return out


# --- products of matrices -----------------------------------------------------------------------------------


def matmul(x, y, dtype):
    """Sums of products along the last axis of x and the last but one of y; batches broadcast."""
    x, y = objects(x), objects(y)
    rows, columns = x.ndim > 1, y.ndim > 1
    x, y = x if rows else x[None, :], y if columns else y[:, None]
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = np.broadcast_to(x, batch + x.shape[-2:]), np.broadcast_to(y, batch + y.shape[-2:])
    out = np.empty((*batch, x.shape[-2], y.shape[-1]), dtype=object)
    for place in np.ndindex(*out.shape):
        row, column = x[place[:-1]], y[(*place[:-2], slice(None), place[-1])]
        out[place] = cast(total(a * b for a, b in zip(row, column, strict=True)), dtype)
    out = out if columns else out[..., 0]
    return out if rows else out[..., 0, :] if columns else out[..., 0]


# --- comparing --------------------------------------------------------------------------------------------


def difference(got, want, tol):
    """None if got (a NumPy array) is want, else a text. NaN equals NaN; infinities must be the same."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    for place in np.ndindex(*got.shape):
        g, w = got[place].item(), want[place]
        w = w.item() if hasattr(w, "item") else w
        if is_nan(w) or is_nan(g):
            same = is_nan(w) and is_nan(g)
        elif g == w or math.isinf(w) or math.isinf(g):
            same = g == w
        else:
            same = abs(g - w) <= tol * max(1.0, abs(w))
        if not same:
            return f"{g!r} at {place}, expected {w!r}\ngot {got}\nexpected {want}"
    return None
