"""Every test belongs to exactly one selection, so that `make test`, which runs one pytest per selection, runs all.

Accuses tests/selections.py and the Makefile's list of them.
"""

import pathlib
import re
import subprocess
import sys

import pytest
import selections

ROOT = pathlib.Path(__file__).resolve().parents[2]


def collected(*options):
    """The ids of the tests that pytest would run, once each."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode in (0, 5), done.stdout[-2000:] + done.stderr[-2000:]  # 5: none are there
    ids = [line for line in done.stdout.splitlines() if "::" in line]
    assert len(ids) == len(set(ids))
    return set(ids)


@pytest.mark.slow
def test_the_selections_share_out_all_tests():
    parts = {only: collected("--only", only) for only in selections.ROWS}
    every = collected()
    assert every == set().union(*parts.values())
    assert len(every) == sum(map(len, parts.values())), "a test belongs to two selections"


def test_make_runs_every_selection():
    text = (ROOT / "Makefile").read_text()
    listed = re.search(r"^SELECTIONS\s*:?=\s*(.*)$", text, re.M).group(1).split()
    assert sorted(listed) == sorted(selections.ROWS)
