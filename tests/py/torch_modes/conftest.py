"""These tests need torch: without it the folder is empty. Caches of compiled code are off."""

import importlib.util
import os
import shutil
import sysconfig

import pytest

os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"  # read when torch._inductor is imported

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]


@pytest.fixture(autouse=True)
def _fresh_dynamo():
    """Each test compiles from nothing."""
    yield
    import torch

    torch._dynamo.reset()


@pytest.fixture
def cxx():
    """The C++ compiler that Inductor needs, and Python's headers."""
    found = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++")
    if found is None:
        pytest.skip("Inductor needs a C++ compiler, and none is installed")
    if not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")):
        pytest.skip("Inductor needs Python's headers, and they are not installed")
    return found
