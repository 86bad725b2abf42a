"""Elementwise functions and selection (SEMANTICS 12, 16, 19); accuses src/ops/elementwise.c."""

import cases
import pytest


@pytest.mark.parametrize("case", cases.ELEMENTWISE, ids=str)
def test_elementwise(fw, case):
    cases.check(fw, case)
