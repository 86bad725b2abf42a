"""The code of these pages is run by pytest: `pytest docs`. Each page has a namespace of its own."""

import doctest

import numpy as np
import pytest

try:
    from sybil import Sybil
    from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
except ImportError:
    Sybil = None  # with NumPy alone there is nothing to collect


@pytest.fixture(autouse=True, scope="package")
def print_as_numpy_does():
    with np.printoptions():
        yield


if Sybil is not None:
    pytest_collect_file = Sybil(
        parsers=[PythonCodeBlockParser(doctest_optionflags=doctest.ELLIPSIS), SkipParser()],
        patterns=["*.md"],
        excludes=["design-notes.md", "examples.md"],  # prose only; run where reference.md shows them
        fixtures=["print_as_numpy_does"],
    ).pytest()
