"""Constructors and casts (SEMANTICS 14, 15); accuses src/ops/construct.c and src/ops/checks.c."""

import cases
import pytest


@pytest.mark.parametrize("case", cases.CONSTRUCT, ids=str)
def test_construct(fw, case):
    cases.check(fw, case)
