"""Segment functions against plain loops (SEMANTICS 1-8, 10); accuses src/ops/segment.c and the kernels."""

import cases
import pytest


@pytest.mark.parametrize("case", cases.SEGMENT, ids=str)
def test_segment(fw, case):
    cases.check(fw, case)
