"""The oldest supported version of a framework stands in its adapter; pyproject.toml and `make test-min` say the same.

Accuses pyproject.toml, .oldest in src/python/backends/*.c.
"""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text()
MIN = dict(re.findall(r'"([\w-]+)==([\d.]+)"', re.search(r"^min = \[.*?^\]", PROJECT, re.M | re.S)[0]))


def same(one, other):
    """Whether two versions are one: 2.1 is 2.1.0."""
    return re.sub(r"(\.0)+$", "", one) == re.sub(r"(\.0)+$", "", other)


@pytest.mark.parametrize("name", ["torch", "jax", "tensorflow"])
def test_the_floor_of_a_framework_is_one(name):
    source = (ROOT / f"src/python/backends/{name}.c").read_text()
    oldest = re.search(r'\.oldest = "([\d.]+)"', source)[1]
    extra = re.search(rf'^{name} = \["{name}>=([\d.]+)"\]', PROJECT, re.M)[1]
    tested = MIN[name if name in MIN else f"{name}-cpu"]
    assert oldest == extra and same(oldest, tested)


def test_each_dependency_is_tested_at_its_floor():
    line = re.search(r"^dependencies = \[(.*)\]", PROJECT, re.M)[1]
    for name, floor in re.findall(r'"([\w-]+)>=([\d.]+)"', line):
        assert same(MIN[name], floor), name


def test_what_checks_types_is_tested_at_its_floor():
    assert same(MIN["beartype"], re.search(r'^typecheck = \["beartype>=([\d.]+)"\]', PROJECT, re.M)[1])
