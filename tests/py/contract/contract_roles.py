"""Arguments for every function of the op table: one strategy per role of an argument, none per function.

A role (include/anytensor/ops.def) says what an argument is: data, ids, a size, axes. An argument whose meaning its
role leaves open (ids of segments, lengths of partitions) has a strategy under role and name. What the arguments of
one call have in common, the shape above all, stands in its Draft, each part drawn when it is first asked for.
"""

import functools
import importlib.util
import math
import pathlib
import sys
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader

import numpy as np
import oracle
from case import A, D
from frameworks import DTYPES, FLOATS, INTEGERS, ROWS, UNSIGNED
from hypothesis import strategies as st

import anytensor as at
from anytensor import _core

ROOT = pathlib.Path(__file__).resolve().parents[3]


def opgen():
    """tools/opgen, which has no suffix: it reads the table."""
    loader = SourceFileLoader("anytensor_opgen_of_contract", str(ROOT / "tools" / "opgen"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


@functools.cache
def parameters():
    """{function: ((name, role, default, how), ...)} of the table, and of the two functions that are no rows."""
    table = opgen().read_table((ROOT / "include/anytensor/ops.def").read_text())
    rows = {op.name: [(p.name, p.role, p.default, p.how) for p in op.params] for op in table if op.python}
    own = {
        "shape": [("x", "DATA", "", "POS")],
        "align_arrays": [("arrays", "OPERANDS", "", "REST")],
    }
    return {**rows, **own}


# Functions by their own name; an alias is the same object and has nothing to be tested.
OPS = [op for op in _core.ops if getattr(getattr(at, op), "__name__", op) == op]

ROLES = {}


def role(*keys):
    """A strategy: body(draft, name) draws an argument. Keys: a role, a role and a name, a function and a name."""

    def listed(body):
        ROLES.update(dict.fromkeys(keys, body))
        return body

    return listed


def strategy_of(op, name, kind):
    return ROLES.get(f"{op} {name}") or ROLES.get(f"{kind} {name}") or ROLES.get(kind)


# --- numbers ----------------------------------------------------------------------------------------------

LARGE = {"float16": 5e4, "bfloat16": 1e30, "float32": 1e30, "float64": 1e30}
SCALARS = (0, 1, -1, 3, True, False, 0.5, -2.0, 2.5, math.nan, math.inf, -math.inf, 1e300, 300)


def plain_numbers(dtype):
    """Small numbers that every dtype of the kind holds; sums of some of them cancel."""
    if dtype == "bool":
        return (False, True)
    if oracle.is_float(dtype):
        return (0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.25, 3.0, 7.5, -0.0)
    return (0, 1, 2, 3, 5, 7) if dtype in UNSIGNED else (0, 1, -1, 2, -2, 3, 7)


def all_numbers(dtype):
    if dtype == "bool":
        return plain_numbers(dtype)
    if oracle.is_float(dtype):
        big = LARGE[dtype]
        odd = [float(np.float16(v)) for v in (0.1, -3.3, 100.0, 1e-3)]
        odd = [round(v * 64) / 64 for v in odd] if dtype == "bfloat16" else odd
        return (
            *plain_numbers(dtype),
            math.nan,
            math.inf,
            -math.inf,
            *odd,
            held(big, dtype),
            held(-big, dtype),
        )
    low, high = oracle.lowest(dtype), oracle.highest(dtype)
    return (*plain_numbers(dtype), low, high, low + 1, high - 1)


def held(value, dtype):
    """A number as a floating dtype rounds it."""
    with np.errstate(all="ignore"):
        if dtype == "bfloat16":
            bits = np.float32(value).view(np.uint32)
            if not np.isfinite(np.float32(value)):
                return float(np.float32(value))
            return float(
                np.uint32((int(bits) + 0x7FFF + (int(bits) >> 16 & 1)) & 0xFFFF0000).view(np.float32)
            )
        return float(np.dtype(dtype).type(value))


# --- one call ---------------------------------------------------------------------------------------------


@dataclass
class Draft:
    """A call in the making."""

    draw: object
    row: object  # of frameworks.py
    op: str
    compiled: bool = False  # sizes and what decides a shape are then plain numbers
    made: dict = field(default_factory=dict)

    def pick(self, *choices):
        return self.draw(st.sampled_from(choices))

    def chance(self, one_in):
        """True once in a while; a shrunk call has it False."""
        return self.draw(st.integers(0, one_in - 1)) == one_in - 1

    @property
    def names(self):
        return [name for name, *_ in parameters()[self.op]]

    @functools.cached_property
    def dtypes(self):
        """Those of the framework; NumPy holds bfloat16 by ml_dtypes alone."""
        known = [t for t in DTYPES if t not in self.row.lacks and t not in self.row.narrow]
        return [t for t in known if self.row.name != "numpy" or t not in self.row.host_lacks]

    @functools.cached_property
    def integers(self):
        return [t for t in self.dtypes if t in INTEGERS]

    @functools.cached_property
    def floats(self):
        return [t for t in self.dtypes if t in FLOATS]

    @functools.cached_property
    def segmented(self):
        return bool({"segment_ids", "partitions"} & set(self.names))

    @functools.cached_property
    def none(self):
        """(0,) in some calls, () in most: an empty axis anywhere leaves nothing to be compared."""
        return (0,) if self.chance(5) else ()

    @functools.cached_property
    def dims(self):
        """The shape that all data of the call go together in."""
        rank = self.draw(st.integers(1 if self.segmented else 0, 3))
        first = [self.pick(3, 1, 2, 4, 5, 6, *self.none)] if self.segmented else []
        return (*first, *(self.pick(2, 1, 3, *self.none) for _ in range(rank - len(first))))

    @functools.cached_property
    def n(self):
        """The number of segments or partitions."""
        return self.pick(2, 1, 3, 4, *self.none)

    @functools.cached_property
    def axis(self):
        rank = len(self.dims)
        return None if not rank or self.chance(4) else self.draw(st.integers(-rank, rank - 1))

    @property
    def along(self):
        """How many elements there are along the axis; all, without one."""
        return math.prod(self.dims) if self.axis is None else self.dims[self.axis]

    def part(self):
        """The shape of an operand that broadcasts to dims."""
        dims = [1 if self.chance(5) else size for size in self.dims]
        return tuple(dims[self.draw(st.integers(0, len(dims))) if self.chance(3) else 0 :])

    def numbers(self, dtype, shape, pool=None):
        pool = pool or (plain_numbers(dtype) if self.draw(st.booleans()) else all_numbers(dtype))
        size = math.prod(shape)
        flat = self.draw(st.lists(st.sampled_from(pool), min_size=size, max_size=size))
        carrier = "float64" if oracle.is_float(dtype) else dtype
        return np.array(flat, carrier).reshape(shape)

    def array(self, shape, dtype=None, pool=None):
        """An array of the framework, or of NumPy beside it, in some layout of memory."""
        host = self.row.name != "numpy" and self.chance(4)
        dtype = dtype or self.pick(*self.dtypes)
        host = host and dtype not in self.row.host_lacks
        numbers = self.numbers(dtype, shape, pool)
        layouts = ROWS["numpy" if host else self.row.name].layouts if shape and not self.compiled else ()
        layout = self.pick(*layouts) if layouts and self.chance(3) else ""
        if layout == "swapped" and dtype == "bfloat16":
            layout = ""  # ml_dtypes has one byte order
        if layout == "expanded":
            numbers = np.repeat(numbers[:1], len(numbers), 0)
        return A(numbers, dtype, host, layout)

    def number(self, *choices):
        """A Python number, as it is or as a NumPy scalar."""
        value = self.pick(*choices)
        if type(value) is bool or not self.chance(4):
            return value
        if type(value) is int:
            return np.dtype(
                self.pick(*(t for t in ("int8", "int16", "int32", "int64") if t in self.dtypes))
            ).type(value % 100)
        return np.dtype(self.pick(*(t for t in ("float16", "float32", "float64") if t in self.dtypes))).type(
            value if not math.isfinite(value) else value % 100
        )

    def size(self, n):
        """A size in one of its forms."""
        ours = any(isinstance(value, A) and not value.host for value in self.made.values())
        forms = [n, n, n, np.int64(n), float(n), A(np.array(n), "int32", host=True)]
        if ours and not self.compiled:
            forms.append(A(np.array(n), self.pick(*self.integers)))
        return self.pick(*forms)

    def dtype_named(self):
        name = self.pick(*self.dtypes)
        forms = [name, D(name)] + ([np.dtype(name)] if name != "bfloat16" else [])
        return self.pick(*forms)


@dataclass
class Call:
    op: str
    args: tuple
    kwargs: dict

    def __repr__(self):
        return f"{self.op}{self.args} {self.kwargs}"


def call_of(draw, row, op, compiled=False):
    """A call of a function: its arguments, each by the strategy of its role."""
    draft = Draft(draw, row, op, compiled)
    args, kwargs = [], {}
    for name, kind, default, how in parameters()[op]:
        if default and kind != "AXIS" and f"{op} {name}" not in ROLES and draft.chance(3):
            continue  # the default; axes and what has a strategy of its own hang together with other arguments
        value = strategy_of(op, name, kind)(draft, name)
        draft.made[name] = value
        if how == "REST":
            args += value
        elif default:
            kwargs[name] = value
        else:
            args.append(value)
    return Call(op, tuple(args), kwargs)


calls = st.composite(call_of)

# --- roles ------------------------------------------------------------------------------------------------


@role("DATA")
def data(d, name):
    """An array; beside others also a scalar, or one that broadcasts."""
    operands = [n for n, kind, *_ in parameters()[d.op] if kind in ("DATA", "MASK", "MAYBE")]
    if len(operands) < 2 or d.segmented:
        return d.array(d.dims)
    return d.number(*SCALARS) if d.chance(4) else d.array(d.part())


@role("MASK")
def mask(d, name):
    if d.chance(5):
        return d.pick(True, False)
    return d.array(d.part(), "bool" if d.draw(st.booleans()) else None)


@role("MAYBE")
def maybe(d, name):
    return None if d.chance(3) else data(d, name)


@role("DATA values")
def values_of_attention(d, name):
    """Rows of logits, with axes behind."""
    return d.array((*d.dims, *d.pick((), (2,), (0,), (1, 3))))


@role("matmul x")
def left_matrix(d, name):
    d.inner = d.draw(st.integers(0, 3))
    return d.array((*d.pick((), (2,), (3, 2), (1, 2)), d.inner))


@role("matmul y")
def right_matrix(d, name):
    batch = np.shape(d.made["x"].data)[:-2]
    shape = d.pick(
        (d.inner,), (d.inner, 2), (d.inner, 0), (*batch, d.inner, 3), (*[1 for _ in batch], d.inner, 1)
    )
    return d.array(shape)


@role("INDEX segment_ids")
def segment_ids(d, name):
    """Ids in and out of range, sorted half of the time; NumPy's may be wider than what the framework has."""
    rows = d.dims[0] if any(isinstance(v, A) for v in d.made.values()) else d.pick(3, 1, 2, 5, *d.none)
    dtype = d.pick(*d.integers)
    low, high = oracle.lowest(dtype), oracle.highest(dtype)
    near = [i for i in (*range(d.n + 3), -1, -2) if low <= i]
    pool = near if d.draw(st.booleans()) else [*near, low, high, high // 2 + 1]
    ids = d.array((rows,), dtype, pool)
    wide = ids.host and not ids.layout and d.row.narrow and dtype == "int32" and d.draw(st.booleans())
    if wide:
        ids = A(ids.data.astype("int64") + d.pick(0, 2**32, -(2**32)), "int64", host=True)
    if ids.layout not in ("expanded",) and d.draw(st.booleans()):
        ids = A(np.sort(ids.data), ids.dtype, ids.host, ids.layout)
    return ids


@role("FLAG sorted")
def sorted_(d, name):
    ids = [int(i) for i in d.made["segment_ids"].data]
    return ids == sorted(ids) and d.draw(st.booleans())


@role("SIZE num_segments")
def num_segments(d, name):
    return d.size(d.n)


@role("INDEX partitions")
def partitions(d, name):
    """Lengths whose sum is the number of rows; now and then it is not."""
    rows = d.dims[0]
    cuts = sorted(d.draw(st.lists(st.integers(0, rows), min_size=d.n, max_size=d.n)))
    lengths = np.diff([0, *cuts, rows])
    if d.chance(6):
        lengths[d.draw(st.integers(0, d.n))] += d.pick(1, 3)
    dtype = d.pick(*d.integers)
    made = d.array((len(lengths),), dtype, (0,))
    return A(lengths.astype(dtype), dtype, made.host, "" if made.layout == "expanded" else made.layout)


@role("SIZE total_length")
def total_length(d, name):
    return d.size(d.dims[0])


@role("INDEX indices")
def indices(d, name):
    """Along the axis, from both ends; now and then out of range."""
    dtype = d.pick(*d.integers)
    size = d.along
    inside = [i for i in range(-size, size) if i >= oracle.lowest(dtype)]
    outside = [i for i in (size, -size - 1, oracle.lowest(dtype)) if i >= oracle.lowest(dtype)]
    shape = d.pick((), (3,), (1,), (0,), (2, 2), (1, 0))
    pool = inside + outside if d.chance(6) else inside
    if not pool:
        shape, pool = (0,), [0]
    made = d.array(shape, dtype, [i for i in pool if not -size <= i < 0 or dtype not in UNSIGNED])
    return int(made.data) if shape == () and d.chance(3) else made


@role("AXIS")
def axis(d, name):
    return d.axis


@role("AXES")
def axes(d, name):
    rank = len(d.dims)
    if not rank or d.chance(4):
        return d.pick(None, ()) if not rank else None
    chosen = d.draw(st.lists(st.integers(0, rank - 1), unique=True, max_size=rank))
    chosen = [k - rank if d.draw(st.booleans()) else k for k in chosen]
    if len(chosen) == 1 and d.draw(st.booleans()):
        return chosen[0]
    return d.pick(tuple, list)(chosen)


@role("transpose axes")
def permutation(d, name):
    rank = len(d.dims)
    order = d.draw(st.permutations(range(rank)))
    return d.pick(None, tuple(order), [k - rank for k in order])


@role("FLAG")
def flag(d, name):
    return d.draw(st.booleans())


@role("VALUE repeats")
def repeats(d, name):
    """One count, or one per element along the axis."""
    if d.chance(3) or (d.compiled and d.axis is not None):
        return d.number(0, 1, 2, 3)
    dtype = d.pick(*d.integers)
    return d.array(d.pick((d.along,), (d.along,), ()), dtype, (0, 1, 2, 3))


@role("repeat total_repeat_length")
def total_repeat_length(d, name):
    size = d.size(d.draw(st.integers(0, 9)))
    if d.compiled and isinstance(d.made["repeats"], A):
        return size  # else the shape would depend on values
    free = d.axis is None or d.chance(8)
    return d.pick(None, size) if free else None


@role("VALUE fill_value", "VALUE constant")
def fill_value(d, name):
    shapes = [(), ()]
    if name == "constant":
        shapes += [d.dims[1:]]
    return d.number(*SCALARS) if d.draw(st.booleans()) else d.array(d.pick(*shapes))


@role("VALUE nan", "VALUE posinf", "VALUE neginf")
def replacement(d, name):
    value = d.number(0, 1, 2.5, -3.0) if d.chance(2) else d.array((), d.pick(*d.floats))
    return d.pick(value, None if name != "nan" else value)


@role("BOUND")
def bound(d, name):
    if name == "step":
        return d.number(1, 2, -1, 0.5, 3)
    return d.number(3, 0, 5, -2, 2.5, 7)


@role("SHAPE")
def shape(d, name):
    sizes = tuple(np.int64(n) if d.chance(6) else n for n in d.dims)
    return sizes[0] if len(sizes) == 1 and d.draw(st.booleans()) else d.pick(sizes, list(sizes))


@role("reshape shape")
def shape_of_as_many(d, name):
    n = math.prod(d.dims)
    whole = (
        [(n,), (1, n), (n, 1, 1), d.dims[::-1]]
        + ([()] if n == 1 else [])
        + ([(2, n // 2)] if n % 2 == 0 else [])
    )
    sizes = list(d.pick(*whole))
    known = [k for k in range(len(sizes)) if math.prod(sizes[:k] + sizes[k + 1 :])]
    if known and d.draw(st.booleans()):
        sizes[d.pick(*known)] = -1
    return d.pick(tuple, list)(sizes)


@role("DTYPE")
def dtype(d, name):
    return d.dtype_named()


@role("arange dtype")
def dtype_of_a_range(d, name):
    """None is bool: frameworks refuse such ranges, or do not."""
    return d.pick(None, *(t for t in d.dtypes if t != "bool"))


@role("LIKE")
def like(d, name):
    return d.array(d.dims)


@role("DEVICE")
def device(d, name):
    return None


@role("LIST arrays", "OPERANDS")
def arrays(d, name):
    """Arrays of one shape, but for the axis along which they are joined."""
    count = d.draw(st.integers(1, 3))
    if d.op == "stack":
        return [d.array(d.dims) for _ in range(count)]
    if d.op != "concatenate" or d.axis is None:
        return [d.array(d.part()) for _ in range(count)]
    shapes = [list(d.dims) for _ in range(count)]
    for one in shapes:
        one[d.axis] = d.draw(st.integers(0, 3))
    return [d.array(tuple(one)) for one in shapes]


@role("stack axis")
def axis_between(d, name):
    return d.draw(st.integers(-len(d.dims) - 1, len(d.dims)))


@role("CUTS")
def cuts(d, name):
    n = d.along if d.axis is not None else 1
    if d.draw(st.booleans()):
        return d.pick(*(k for k in (1, 2, 3) if n % k == 0))
    places = d.draw(st.lists(st.integers(-n - 1, n + 1), max_size=3))
    if d.compiled:
        return places
    return d.pick(list(places), tuple(places), A(np.array(places, "int64"), "int64", host=True))
