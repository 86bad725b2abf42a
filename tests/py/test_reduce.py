"""Reductions over axes and running sums (SEMANTICS 16, 17); accuses the adapters' reductions."""

import cases
import pytest


@pytest.mark.parametrize("case", cases.REDUCE, ids=str)
def test_reduce(fw, case):
    cases.check(fw, case)
