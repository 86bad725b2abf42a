"""The contract of every function, on every framework: random calls, generated from the op table, beside an oracle.

Calls come from contract_roles.py (a strategy per role of an argument), answers from contract_oracle.py (an entry per
function). Profile `ci`: a few calls of each function, always the same ones. Profile `long`: as many as there is time
for, `make fuzz SECONDS=3600`; failures are kept in build/hypothesis and tried first the next time. One framework:

    CONTRACT_SECONDS=600 pytest tests/py/contract --only torch

A failure prints the shrunk call as a case for tests/py/cases*.py.

Accuses src/ops, src/core/promote.c and the framework's adapter.
"""

import numpy as np
import pytest
from contract_check import check, direct
from contract_oracle import ORACLES
from contract_roles import OPS, calls, parameters, strategy_of
from contract_runs import run
from frameworks import framework


def test_every_argument_of_the_table_has_a_strategy():
    missing = [
        f"{op}({name}: {kind})"
        for op in OPS
        for name, kind, *_ in parameters()[op]
        if not strategy_of(op, name, kind)
    ]
    assert not missing, "contract_roles.py"


def test_every_function_has_an_oracle():
    assert not set(OPS) - set(ORACLES), "contract_oracle.py"


@pytest.mark.parametrize("op", OPS)
def test_random_calls_give_what_the_oracle_says(fw, op, only):
    run(calls(fw, op), lambda call: check(fw, call), 6 if fw.compiles else 40, only)


def spoiled(fw, call):
    """The result, all of it a little wrong."""

    def wrong(got):
        if isinstance(got, (list, tuple)):
            return type(got)(map(wrong, got))
        if not isinstance(got, np.ndarray):
            return got + 1
        return ~got if got.dtype == "bool" else got + got.dtype.type(1) + got // 8

    return wrong(direct(fw, call))


@pytest.mark.parametrize("op", OPS)
def test_a_wrong_result_is_seen(op):
    """Empty results, NaN, errors that are wanted and what the oracle leaves open take up most of the calls at most."""
    numpy, seen = framework("numpy"), []

    def body(call):
        try:
            check(numpy, call, spoiled)
        except AssertionError:
            seen.append(True)
        else:
            seen.append(False)

    run(calls(numpy, op), body, 20)
    assert sum(seen) > len(seen) / 6
