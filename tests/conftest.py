"""The option --only, for the whole folder."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import selections


def pytest_addoption(parser):
    parser.addoption(
        "--only",
        choices=list(selections.ROWS),
        help="the tests of one framework, or the rest: what is of none, and NumPy's",
    )


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes seconds; run by default, left out with -m 'not slow'")


def pytest_ignore_collect(collection_path, config):
    """The files of another framework's folder import it: they are not even read."""
    only, owner = config.getoption("--only"), selections.of_folder(collection_path)
    return True if only and owner and owner != only else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    only = config.getoption("--only")
    if only is None:
        return
    kept, others = [], []
    for item in items:
        (kept if selections.owner(item) == only else others).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=others)
