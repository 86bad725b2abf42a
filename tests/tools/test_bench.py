"""bench/figures.py: `make bench` tells of every function."""

import importlib.util
import pathlib

from anytensor import _core

PATH = pathlib.Path(__file__).resolve().parents[2] / "bench" / "figures.py"


def test_every_function_has_a_figure():
    spec = importlib.util.spec_from_file_location("figures", PATH)
    figures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(figures)
    asked = {figure.name for figure in figures.FIGURES.values()}
    assert set(_core.ops) <= asked, set(_core.ops) - asked
