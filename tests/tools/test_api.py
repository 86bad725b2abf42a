"""tools/api.py: which changes of public signatures it lets pass; accuses docs/api.txt when names change."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def api():
    spec = importlib.util.spec_from_file_location("api", ROOT / "tools" / "api.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow  # it has a process of its own
def test_the_committed_list_is_what_the_package_has():
    run = subprocess.run([sys.executable, ROOT / "tools" / "api.py"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    "old, new",
    [
        ("(x)", "(x, y=None)"),
        ("(x)", "(x, *, y=None)"),
        ("(x, /)", "(x, /, *more)"),
        ("(x, y)", "(x, y=0)"),
        ("(x, *, a, b=1)", "(x, *, b=1, a=2)"),
        ("(x, *, a=1)", "(x, a=1)"),
        ("", "(x)"),
        ("(x: int) -> str", "(x)"),
        ("(x=<object object>)", "(x=None)"),
    ],
)
def test_a_change_that_keeps_every_right_call_right_passes(api, old, new):
    assert api.breaks(old, new) is None


@pytest.mark.parametrize(
    "old, new, why",
    [
        ("(x, y=1)", "(x)", "parameter y is gone"),
        ("(x, y)", "(y, x)", "parameters have moved"),
        ("(x, y=1)", "(x, z=1, y=1)", "parameters have moved"),
        ("(x, y=1)", "(x, y)", "parameter y has lost its default"),
        ("(x)", "(x, /)", "parameter x is passed in another way"),
        ("(x, y=1)", "(x, *, y=1)", "parameter y is passed in another way"),
        ("(x)", "(x, y)", "parameter y is required"),
        ("(x)", "(x, *, y)", "parameter y is required"),
        ("(x)", "", "can no longer be called"),
    ],
)
def test_a_change_that_breaks_calls_is_told(api, old, new, why):
    assert api.breaks(old, new) == why


def test_a_name_that_goes_is_told_and_a_new_one_is_not(api):
    assert api.complaints(["# a comment", "at.f(x)", "at.g(x)"], ["at.g(x, y)", "at.h"]) == [
        "at.f is gone",
        "at.g(x, y): parameter y is required",
    ]


def test_the_last_tag_is_where_the_list_is_looked_up(api, tmp_path):
    def git(*args):
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@t", *args],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )

    git("init")
    assert api.last_tag(tmp_path) is None
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "api.txt").write_text("at.f(x)\n")
    git("add", ".")
    git("commit", "-m", "one")
    git("tag", "v1.2.0")
    (tmp_path / "docs" / "api.txt").write_text("at.g(x)\n")
    git("commit", "-am", "two")
    assert api.last_tag(tmp_path) == ("v1.2.0", ["at.f(x)"])
    assert api.major("v1.2.0") == api.major("1.9.0a1") == "1"
