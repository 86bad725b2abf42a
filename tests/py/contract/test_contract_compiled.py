"""The contract under jax.jit, torch.compile and tf.function, with XLA and without: the same calls as eager ones, as far
as what decides a shape is a number, beside the same oracle. Accuses what test_contract.py does, where a program is
traced.
"""

import pytest
from contract_check import check, owner
from contract_modes import FOUND_MODES, MODES
from contract_roles import OPS, calls
from contract_runs import run
from frameworks import framework
from hypothesis import assume

# The parameter `name` says which selection a test belongs to.
PAIRS = [pytest.param(MODES[mode].row, mode, id=mode) for mode in FOUND_MODES]


@pytest.mark.parametrize(("name", "mode"), PAIRS)
@pytest.mark.parametrize("op", OPS)
def test_compiled_calls_give_what_the_oracle_says(name, op, mode, only):
    fw, row = framework(name), MODES[mode].answers()

    def body(call):
        assume(owner(fw, call) is fw)  # an array to be traced
        check(fw, call, MODES[mode].make, row)

    run(calls(row, op, compiled=True), body, MODES[mode].examples, only)
