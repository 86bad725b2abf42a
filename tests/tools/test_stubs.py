"""mypy's stubtest: python/anytensor/_core.pyi says what the extension has. Accuses tools/opgen."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import anytensor as at


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("mypy"), reason="mypy is not installed")
def test_the_stubs_are_those_of_the_extension(tmp_path):
    package = tmp_path / "package"  # mypy refuses to look into site-packages as a path of its own
    shutil.copytree(pathlib.Path(at.__file__).resolve().parent, package / "anytensor")
    env = {
        **os.environ,
        "PYTHONPATH": str(package),
        "MYPYPATH": str(package),
        "MYPY_CACHE_DIR": str(tmp_path / "cache"),
    }
    command = [sys.executable, "-m", "mypy.stubtest", "anytensor._core", "anytensor.tree"]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
