"""Profiles: `ci` makes a few examples, always the same; `long` (CONTRACT_SECONDS, for each test) makes new ones while
there is time."""

import os
import pathlib
import time

from hypothesis import HealthCheck, given, settings
from hypothesis.database import DirectoryBasedExampleDatabase

SECONDS = float(os.environ.get("CONTRACT_SECONDS", 0))
KEPT = pathlib.Path(__file__).resolve().parents[3] / "build" / "hypothesis"
COMMON = {"deadline": None, "print_blob": False, "suppress_health_check": list(HealthCheck)}


def profile(examples):
    if not SECONDS:
        return settings(max_examples=examples, derandomize=True, database=None, **COMMON)
    kept = DirectoryBasedExampleDatabase(KEPT)
    return settings(max_examples=10 * examples, database=kept, **COMMON)


def run(strategy, body, examples):
    """body of each example, as often as the profile says. A failure is shrunk, and raised."""
    end = time.monotonic() + SECONDS

    @profile(examples)
    @given(strategy)
    def each(call):
        body(call)

    each()
    while time.monotonic() < end:
        each()
