"""Profiles: `ci` makes a few calls of each function, always the same; `long` (CONTRACT_SECONDS, shared by the tests of
a run) makes new ones while there is time."""

import os
import pathlib
import time

import selections
from contract_modes import FOUND_MODES, MODES
from contract_roles import OPS
from frameworks import FOUND
from hypothesis import HealthCheck, given, settings
from hypothesis.database import DirectoryBasedExampleDatabase

SECONDS = float(os.environ.get("CONTRACT_SECONDS", 0))
KEPT = pathlib.Path(__file__).resolve().parents[3] / "build" / "hypothesis"
COMMON = {"deadline": None, "print_blob": False, "suppress_health_check": list(HealthCheck)}


def share(only):
    """Seconds for one test of a run that has a selection, or all."""
    rows = [row for row in FOUND if only in (None, selections.HOME[row])]
    modes = [mode for mode in FOUND_MODES if only in (None, selections.HOME[MODES[mode].row])]
    return SECONDS / (len(OPS) * max(1, len(rows) + len(modes)))


def profile(examples):
    if not SECONDS:
        return settings(max_examples=examples, derandomize=True, database=None, **COMMON)
    return settings(max_examples=examples, database=DirectoryBasedExampleDatabase(KEPT), **COMMON)


def run(strategy, body, examples, only=None):
    """body of each example, as often as the profile says. A failure is shrunk, and raised."""
    end = time.monotonic() + share(only)

    @profile(examples)
    @given(strategy)
    def each(call):
        body(call)

    each()
    while time.monotonic() < end:
        each()
