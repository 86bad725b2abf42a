"""What type checkers are told: stubs and annotations say what is there, and arrays come back as they went in.

Accuses tools/opgen, python/anytensor/*.pyi and the annotations of the package. The samples stand in tests/typing.
"""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import anytensor as at

pytestmark = pytest.mark.slow
SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "typing"
MISTAKES = SAMPLES / "mistakes.py"
# Frameworks are not looked into, and bodies of functions are not what is asked here.
CONFIG = """
[mypy]
[mypy-anytensor.*]
ignore_errors = True
[mypy-jax.*,torch.*,tensorflow.*]
follow_imports = skip
"""


def installed(*names):
    missing = [name for name in names if not importlib.util.find_spec(name)]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {missing}")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the package, which mypy refuses to look at in site-packages, and the samples."""
    place = tmp_path_factory.mktemp("typing")
    package = pathlib.Path(at.__file__).resolve().parent
    shutil.copytree(package, place / "package" / "anytensor")
    for sample in SAMPLES.glob("*.py"):
        shutil.copy(sample, place)
    (place / "mypy.ini").write_text(CONFIG)
    return place


def run(place, *command):
    package = str(place / "package")
    env = {**os.environ, "PYTHONPATH": package, "MYPYPATH": package, "MYPY_CACHE_DIR": str(place / "cache")}
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, env=env, cwd=place)


def marked():
    """Lines of the mistakes that are to be refused."""
    return {k for k, line in enumerate(MISTAKES.read_text().splitlines(), 1) if line.endswith("# error")}


@installed("mypy")
def test_stubs_and_annotations_say_what_is_there(place):
    for file in (place / "package" / "anytensor").glob("_t*"):
        if "tensorflow" in file.name or "torch" in file.name:
            file.unlink()  # they import a framework
    done = run(place, "-m", "mypy.stubtest", "--mypy-config-file", "mypy.ini", "anytensor")
    assert done.returncode == 0, done.stdout + done.stderr


@installed("mypy")
def test_mypy_sees_arrays_come_back(place):
    done = run(place, "-m", "mypy", "--config-file", "mypy.ini", "--strict", "arrays.py", "annotations.py")
    assert done.returncode == 0, done.stdout + done.stderr


@installed("mypy")
def test_mypy_refuses_the_mistakes(place):
    done = run(place, "-m", "mypy", "--config-file", "mypy.ini", "--strict", MISTAKES.name)
    assert {int(k) for k in re.findall(r":(\d+): error", done.stdout)} == marked(), done.stdout


def pyright(place, *files):
    """Errors as {file: lines}, and the whole text."""
    config = {
        "extraPaths": ["package"],
        "typeCheckingMode": "standard",
        "include": files,
        "pythonVersion": f"{sys.version_info.major}.{sys.version_info.minor}",
    }
    (place / "pyrightconfig.json").write_text(json.dumps(config))
    done = run(place, "-m", "basedpyright", "--outputjson", "-p", str(place), "--pythonpath", sys.executable)
    errors = {}
    for one in json.loads(done.stdout)["generalDiagnostics"]:
        if one["severity"] == "error":
            errors.setdefault(pathlib.Path(one["file"]).name, set()).add(one["range"]["start"]["line"] + 1)
    return errors, done.stdout


@installed("basedpyright")
def test_pyright_sees_arrays_come_back(place):
    errors, text = pyright(place, "arrays.py", "annotations.py")
    assert not errors, text


@installed("basedpyright")
def test_pyright_refuses_the_mistakes(place):
    errors, text = pyright(place, MISTAKES.name)
    assert errors == {MISTAKES.name: marked()}, text


@installed("typing_extensions", "einops", "jaxtyping")
def test_the_annotated_sample_runs(place):
    """Its names are there at run time, too."""
    done = run(place, "annotations.py")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_says_that_it_is_typed():
    package = pathlib.Path(at.__file__).resolve().parent
    assert (package / "py.typed").is_file() and (package / "native.pyi").is_file()
