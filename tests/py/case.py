"""A case: one call, its arguments and its value; and how a case is carried out on a framework."""

import math
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import oracle
import pytest
from frameworks import UNSIGNED, framework

import anytensor as at

NAN, INF = math.nan, math.inf


@dataclass(frozen=True)
class A:
    """An array of the framework; of NumPy on every framework if host."""

    data: Any
    dtype: str
    host: bool = False
    layout: str = ""  # of its memory: a name of frameworks.LAYOUTS


def N(data, dtype, layout=""):
    return A(data, dtype, host=True, layout=layout)


@dataclass(frozen=True)
class D:
    """The framework's own dtype of a name."""

    name: str


@dataclass(frozen=True)
class Case:
    name: str
    op: str
    args: tuple
    want: Any  # array, or a function that makes it
    dtype: (
        str  # of the result: a name, "float" or "int" (the default), or "widened <name>" (see expected_dtype)
    )
    tol: float = 0.0
    kwargs: dict = field(default_factory=dict)
    container: type | None = (
        None  # list or tuple: several results; want is one array, dtype one name for each
    )

    def __str__(self):
        return self.name.replace(" ", "_")


def operands(value):
    """Everything that a case passes, out of lists and tuples too."""
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from operands(one)
    elif isinstance(value, Case):
        yield from operands((*value.args, *value.kwargs.values()))
    else:
        yield value


def dtype_of(value):
    """The name of the dtype that an operand carries, or None."""
    if isinstance(value, A):
        return value.dtype
    if isinstance(value, np.generic):
        return value.dtype.name
    return value.name if isinstance(value, D) else None


def build(fw, value, host=None):
    """The arguments of a case on a framework; host makes NumPy's arrays."""
    if isinstance(value, A):
        where = host if value.host else fw
        return where.laid_out(value.data, value.dtype, value.layout)
    if isinstance(value, D):
        return fw.own_dtype(value.name)
    if isinstance(value, (list, tuple)):
        return type(value)(build(fw, one, host) for one in value)
    if isinstance(value, dict):
        return {name: build(fw, one, host) for name, one in value.items()}
    return value


def expected_dtype(fw, case):
    """The dtype that the result has on a framework. Sums widen integers that are narrower than the default one."""
    name = {"float": fw.default("f"), "int": fw.default("i")}.get(case.dtype, case.dtype)
    plain = name.removeprefix("widened ")
    plain = fw.held(plain)
    if name.startswith("widened ") and oracle.width(plain) < oracle.width(fw.default("i")):
        return fw.default("i")
    return plain


def expected(fw, case):
    """The values, wrapped where the framework's integers are narrower than the case's."""
    want = case.want() if callable(case.want) else case.want
    dtype = expected_dtype(fw, case)
    if dtype in fw.narrow.values() and not oracle.is_float(dtype):
        return oracle.each(lambda value: oracle.cast(value, dtype), want)
    return want


def verdict(fw, case, got):
    """None if a result is what the case expects, else a text."""
    if case.container:
        return verdict_of_all(fw, case, got)
    if not fw.is_array(got):
        return f"a {type(got)}, expected an array of {fw.name}"
    dtype = expected_dtype(fw, case)
    if fw.dtype(got) != dtype:
        return f"dtype {fw.dtype(got)}, expected {dtype}"
    tol = max(case.tol, oracle.TOL.get(dtype, 0)) if case.tol >= 0 else 0
    return oracle.difference(fw.numpy(got), expected(fw, case), tol)


def verdict_of_all(fw, case, got):
    parts = each_result(case)
    if type(got) is not case.container or len(got) != len(parts):
        return f"{type(got)} of {len(got)}, expected {case.container} of {len(parts)}"
    return next(filter(None, (verdict(fw, part, one) for part, one in zip(parts, got, strict=True))), None)


def each_result(case):
    """A case with several results as one case for each."""
    want = case.want() if callable(case.want) else case.want
    if not case.container:
        return [replace(case, want=want)]
    dtypes = case.dtype if isinstance(case.dtype, tuple) else (case.dtype,) * len(want)
    return [
        replace(case, want=one, dtype=dtype, container=None) for one, dtype in zip(want, dtypes, strict=True)
    ]


def on_numpy(case):
    """Whether the result is NumPy's on every framework: nothing but scalars, or no `like`."""
    return not any(isinstance(value, A) and not value.host for value in operands(case))


def fits(fw, case):
    """Whether a framework that narrows 64-bit types holds what the case gives it: its arrays, and Python integers
    that are to become integers of the result's dtype."""
    if not fw.narrow:
        return True
    for value in operands(case):
        if isinstance(value, A) and not value.host and value.dtype in fw.narrow:
            numbers, dtype = oracle.objects(value.data).ravel(), fw.held(value.dtype)
        elif type(value) is int and not case.container and case.dtype in oracle.WIDTH:
            numbers, dtype = [value], fw.held(case.dtype)
        else:
            continue
        if dtype in oracle.WIDTH and any(oracle.cast(x, dtype) != x for x in numbers):
            return False
    return not any(part.dtype in fw.narrow and is_identity(part) for part in each_result(case))


def is_identity(case):
    """Whether the result holds the ends of its dtype: of the case's, not of the row's."""
    if case.dtype in oracle.WIDTH:
        ends = {oracle.lowest(case.dtype), oracle.highest(case.dtype)} - {0}
    elif case.dtype == "float64":
        ends = {np.finfo(np.float64).max}
    else:
        return False
    return bool(ends & set(oracle.objects(case.want).ravel()))


def repeats(fw, case):
    """Whether a case says on this row what it says on another row of the same framework: nothing in it is of 64 bits,
    but for indices, and no dtype is a default. (JAX compiles anew for each row, which takes most of the time.)"""
    data = [value for value in operands(case) if not (isinstance(value, A) and value.dtype == "int64")]
    dtypes = dtypes_of(case)
    defaults = any(dtype in ("float", "int") or dtype.startswith("widened") for dtype in dtypes)
    return bool(fw.narrow) and not defaults and not {*dtypes, *map(dtype_of, data)} & set(fw.narrow)


def dtypes_of(case):
    return case.dtype if isinstance(case.dtype, tuple) else (case.dtype,)


def serves(fw, case):
    """Whether the framework has the dtypes of a case, and room for its numbers."""
    carried = {dtype.removeprefix("widened ") for dtype in dtypes_of(case)} | {*map(dtype_of, operands(case))}
    return not carried & set(fw.lacks) and fits(fw, case) and not repeats(fw, case)


def check(fw, case):
    """Runs a case on a framework and asserts what it expects."""
    numpy = framework("numpy")
    if not serves(fw, case):
        pytest.skip(
            "a dtype that the framework lacks, numbers beyond its dtypes, or the same as on another row"
        )
    if "bfloat16" in (*dtypes_of(case), *case.args, *case.kwargs.values()) and fw is numpy:
        fw.own_dtype("bfloat16")  # loads ml_dtypes, which brings it to NumPy
    args, kwargs = build(fw, case.args, numpy), build(fw, case.kwargs, numpy)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # torch's on read-only memory, NumPy's on NaN
        got = getattr(at, case.op)(*args, **kwargs)
    text = verdict(numpy if on_numpy(case) else fw, case, got)
    assert text is None, f"{case.op}: {text}"


def data(dtype, *shape):
    """Values that every dtype holds exactly, small enough that sums stay exact; about a third of them repeat."""
    steps = np.arange(math.prod(shape)).reshape(shape)
    values = (steps * 7 % 13 - 6) / 2 if oracle.is_float(dtype) else steps * 7 % 13 - 6
    if dtype == "bool":
        return values % 2 == 0
    return abs(values) if dtype in UNSIGNED else values
