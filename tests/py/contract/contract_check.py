"""Makes a call on a framework and compares it with the oracle. A call that fails is printed as a case that can be
pasted into tests/py/cases*.py.
"""

import warnings

import numpy as np
import oracle
from case import A, D, build, operands
from contract_oracle import Answer, Open, Refused, answer, difference
from frameworks import framework

import anytensor as at


def owner(fw, call):
    """The framework that answers: NumPy where no array of fw takes part."""
    ours = any(
        isinstance(value, A) and not value.host for value in operands([*call.args, *call.kwargs.values()])
    )
    return fw if ours else framework("numpy")


def direct(fw, call):
    """A call as users write it."""
    numpy = framework("numpy")
    args, kwargs = build(fw, call.args, numpy), build(fw, call.kwargs, numpy)
    return getattr(at, call.op)(*args, **kwargs)


def outcome(make, fw, call):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return make(fw, call)
        except Exception as error:
            return error


def complaint(fw, got, want):
    """None if a result is the answer, else a text."""
    if isinstance(want, Answer):
        if not fw.is_array(got):
            return f"a {type(got)}, expected an array of {fw.name}"
        if fw.dtype(got) != want.dtype:
            return f"dtype {fw.dtype(got)}, expected {want.dtype}"
        return difference(np.asarray(fw.numpy(got)), want)
    if not isinstance(got, type(want)) or len(got) != len(want):
        return f"{got!r}, expected {want!r}"
    if all(isinstance(one, int) for one in want):
        return None if tuple(got) == tuple(want) else f"{got!r}, expected {want!r}"
    return next(filter(None, (complaint(fw, g, w) for g, w in zip(got, want, strict=True))), None)


def named_in(got, types):
    """Whether an exception that a compiler wraps names one of these (Dynamo keeps the text alone: SEMANTICS 25)."""
    wrapped = type(got).__module__.startswith("torch._dynamo")
    return wrapped and any(one.__name__ in str(got) for one in types)


def check(fw, call, make=direct, row=None):
    """Makes the call and raises AssertionError with a case to paste unless the oracle says the same."""
    row = row or owner(fw, call)
    lacks = {*row.lacks, *(row.host_lacks if row is not fw else ())}
    if lacks & {v for v in (*call.args, *call.kwargs.values()) if isinstance(v, str)}:
        return  # a dtype of the framework's that NumPy, whose array decides, may not have
    try:
        want = answer(row, call)
    except Refused as refused:
        want = refused
    except Open:
        return
    got = outcome(make, fw, call)
    if isinstance(want, Refused):
        if not isinstance(got, want.types) and not named_in(got, want.types):
            raise AssertionError(f"{got!r}, expected one of {want.types}\n{as_case(call, None)}")
        return
    if isinstance(got, Exception):
        raise AssertionError(f"{type(got).__name__}: {got}\n{as_case(call, want)}") from got
    text = complaint(row, got, want)
    if text:
        raise AssertionError(f"{text}\n{as_case(call, want)}")


# --- a case to paste --------------------------------------------------------------------------------------


def shown(value):
    if isinstance(value, A):
        data = np.asarray(value.data)
        numbers = f"np.zeros({data.shape})" if not data.size and data.ndim > 1 else shown(data.tolist())
        layout = f", layout={value.layout!r}" if value.layout else ""
        return f"{'N' if value.host else 'A'}({numbers}, {value.dtype!r}{layout})"
    if isinstance(value, D):
        return f"D({value.name!r})"
    if isinstance(value, np.dtype):
        return f"np.dtype({value.name!r})"
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, tuple):
        return f"({''.join(shown(one) + ', ' for one in value)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name!r}: {shown(one)}' for name, one in value.items())}}}"
    if isinstance(value, np.generic):
        return f"np.{value.dtype.name}({shown(value.item())})"
    text = repr(value)
    return {"nan": "NAN", "inf": "INF", "-inf": "-INF"}.get(text, text)


def as_case(call, want):
    """The call as a Case; a result that the oracle leaves open in places is to be filled in."""
    values, dtype = "EXPECTED", "DTYPE"
    if isinstance(want, Answer):
        numbers = oracle.each(lambda v: float(v) if isinstance(v, float) else v, want.values)
        values = f"np.array({shown(numbers.tolist())})" if numbers.size else f"np.zeros({numbers.shape})"
        dtype = want.dtype
    kwargs = f", kwargs={shown(call.kwargs)}" if call.kwargs else ""
    return f'yield Case("{call.op} NAME", {call.op!r}, {shown(call.args)}, {values}, {dtype!r}{kwargs})'
