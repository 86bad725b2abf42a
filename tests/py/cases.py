"""The one list of cases: what is called with what, and what comes out. Each runs on every framework found.

A case is data: `A(...)` stands for an array of the framework under test, `N(...)` for a NumPy array on every
framework. What is expected comes from oracle.py, with its dtype ("float", "int": the framework's default) and its
tolerance.
"""

from case import A, N, build, check, data
from cases_array import CONSTRUCT, ELEMENTWISE, LAYOUT, REDUCE
from cases_matrix import MATMUL, PARTS
from cases_nan import NAN_TOOLS
from cases_promotion import PROMOTION
from cases_segment import IDS, PARTITION, SEGMENT, SEGMENT_OPS

ALL = [
    *SEGMENT,
    *PARTITION,
    *ELEMENTWISE,
    *NAN_TOOLS,
    *REDUCE,
    *LAYOUT,
    *PARTS,
    *MATMUL,
    *CONSTRUCT,
    *PROMOTION,
]

__all__ = [
    "ALL",
    "CONSTRUCT",
    "ELEMENTWISE",
    "IDS",
    "LAYOUT",
    "MATMUL",
    "NAN_TOOLS",
    "PARTITION",
    "PARTS",
    "PROMOTION",
    "REDUCE",
    "SEGMENT",
    "SEGMENT_OPS",
    "A",
    "N",
    "build",
    "check",
    "data",
]
