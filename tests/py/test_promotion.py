"""Common dtypes, weak scalars, NumPy beside a tensor (SEMANTICS 12-14, 24); accuses src/core/promote.c."""

import cases
import pytest


@pytest.mark.parametrize("case", cases.PROMOTION, ids=str)
def test_promotion(fw, case):
    cases.check(fw, case)
