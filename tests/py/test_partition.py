"""Partition functions (SEMANTICS 9, 10); accuses src/ops/partition.c."""

import cases
import pytest


@pytest.mark.parametrize("case", cases.PARTITION, ids=str)
def test_partition(fw, case):
    cases.check(fw, case)
