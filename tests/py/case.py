"""A case: one call, its arguments and its value; and how a case is carried out on a framework."""

import math
import warnings
from dataclasses import dataclass, field
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


def N(data, dtype):
    return A(data, dtype, host=True)


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
    dtype: str  # of the result
    tol: float = 0.0
    kwargs: dict = field(default_factory=dict)

    def __str__(self):
        return self.name.replace(" ", "_")


def uses(case, dtype):
    """Whether an operand of the case has a dtype."""
    operands = [*case.args, *case.kwargs.values()]
    return any(
        isinstance(a, (A, D, np.generic)) and dtype == str(getattr(a, "dtype", getattr(a, "name", None)))
        for a in operands
    )


def build(fw, value, host=None):
    """The arguments of a case on a framework; host makes NumPy's arrays."""
    if isinstance(value, A):
        return (host if value.host else fw).array(value.data, value.dtype)
    if isinstance(value, D):
        return fw.own_dtype(value.name)
    if isinstance(value, (list, tuple)):
        return type(value)(build(fw, one, host) for one in value)
    if isinstance(value, dict):
        return {name: build(fw, one, host) for name, one in value.items()}
    return value


def verdict(fw, case, got):
    """None if a result is what the case expects, else a text."""
    if not fw.is_array(got):
        return f"a {type(got)}, expected an array of {fw.name}"
    dtype = {"float": fw.default("f"), "int": fw.default("i")}.get(case.dtype, case.dtype)
    dtype = getattr(fw, "narrow", {}).get(dtype, dtype)
    if fw.dtype(got) != dtype:
        return f"dtype {fw.dtype(got)}, expected {dtype}"
    want = case.want() if callable(case.want) else case.want
    tol = max(case.tol, oracle.TOL.get(dtype, 0)) if case.tol >= 0 else 0
    return oracle.difference(fw.numpy(got), want, tol)


def on_numpy(case):
    """Whether the result is NumPy's on every framework: nothing but scalars, or no `like`."""
    operands = []

    def visit(value):
        if isinstance(value, A) and not value.host:
            operands.append(value)
        if isinstance(value, (list, tuple)):
            for one in value:
                visit(one)

    for value in (*case.args, *case.kwargs.values()):
        visit(value)
    return not operands


def serves(fw, case):
    """Whether the framework has the dtypes of a case."""
    return not any(case.dtype == dtype or uses(case, dtype) for dtype in getattr(fw, "lacks", ()))


def check(fw, case):
    """Runs a case on a framework and asserts what it expects."""
    numpy = framework("numpy")
    if not serves(fw, case):
        pytest.skip("a dtype that the framework lacks")
    if "bfloat16" in (case.dtype, *case.args, *case.kwargs.values()) and fw is numpy:
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
