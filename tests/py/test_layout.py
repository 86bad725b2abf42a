"""take, repeat, reshape, concatenate, shape (SEMANTICS 9, 18); accuses the adapters and src/ops/partition.c (repeat)."""

import cases
import pytest


@pytest.mark.parametrize("case", cases.LAYOUT, ids=str)
def test_layout(fw, case):
    cases.check(fw, case)
