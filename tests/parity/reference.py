"""Runs the reference release's own tests against this library.

    python tests/parity/reference.py [options of pytest]

The tests come from the sdist on PyPI (nothing of it is kept in the repository) and run as they are, in a folder of
their own, against the anytensor that this Python imports. left_out.txt says which ones do not, and why.
"""

import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build" / "parity"
RELEASE = "1.1.0"
EXAMPLES = "25"  # of each Hypothesis test; they are 1,000 by default

# The fuzz budget's option is declared in a file that the sdist does not carry.
CONFTEST = """\
def pytest_addoption(parser):
    parser.addini("fuzz_examples", "examples of each Hypothesis test", default="25")
"""
CONFIG = """\
[pytest]
addopts = --import-mode=importlib -p no:cacheprovider
testpaths = test
pythonpath = test
markers =
    fuzz: Hypothesis
filterwarnings =
    ignore::DeprecationWarning
"""


def unpack():
    """The tests, without the reference's own package beside them; downloaded once."""
    archive = BUILD / f"anytensor-{RELEASE}.tar.gz"
    if not archive.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
        # --no-build-isolation and the name of the file: pip would build the package to read its metadata
        subprocess.run([*pip, "--no-binary", ":all:", "-d", str(BUILD), f"anytensor=={RELEASE}"], check=True)
    tests = BUILD / "test"
    shutil.rmtree(tests, ignore_errors=True)
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            inside = pathlib.PurePosixPath(*pathlib.PurePosixPath(member.name).parts[1:])
            if member.isfile() and inside.parts[:1] == ("test",):
                target = BUILD / inside
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(tar.extractfile(member).read())
    (BUILD / "conftest.py").write_text(CONFTEST)
    (BUILD / "pytest.ini").write_text(CONFIG)


def left_out():
    """(pattern, reason, section) of left_out.txt."""
    section, rows = None, []
    for line in (HERE / "left_out.txt").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("["):
            section = line.strip("[] ")
            continue
        pattern, _, reason = line.partition(" | ")
        rows.append((pattern.strip(), reason.strip(), section))
    return rows


def check(rows):
    """The list must stay short and cite its rules."""
    contradicted = [row for row in rows if row[2] == "contradicted"]
    if len(contradicted) > 12:
        sys.exit(f"left_out.txt: {len(contradicted)} tests contradict SEMANTICS, at most 12 may")
    for pattern, reason, section in rows:
        if section == "contradicted" and not re.search(r"SEMANTICS \d+", reason):
            sys.exit(f"left_out.txt: {pattern}: cite the number of SEMANTICS that the test contradicts")
        if not reason:
            sys.exit(f"left_out.txt: {pattern}: say why")


def collected(options):
    """Ids of all tests, by which patterns are looked up: one that matches nothing is a mistake."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:warnings", *options],
        cwd=BUILD,
        env=environment(),
        capture_output=True,
        text=True,
    )
    return [line for line in run.stdout.splitlines() if "::" in line and not line.startswith("ERROR")]


def environment():
    return {**os.environ, "ANYTENSOR_FUZZ_EXAMPLES": os.environ.get("ANYTENSOR_FUZZ_EXAMPLES", EXAMPLES)}


def main(options):
    rows = left_out()
    check(rows)
    unpack()
    files = [pattern for pattern, _, _ in rows if "::" not in pattern]
    ignore = [f"--ignore=test/{name}" for name in files]
    found = collected(ignore)
    drop = []
    for pattern, _, _ in rows:
        if pattern in files:
            continue
        hits = [test for test in found if fnmatch.fnmatchcase(test.removeprefix("test/"), pattern)]
        if not hits:
            sys.exit(f"left_out.txt: {pattern}: there is no such test")
        drop += [f"--deselect={test}" for test in hits]
    command = [sys.executable, "-m", "pytest", "-q", *ignore, *drop, *options]
    return subprocess.run(command, cwd=BUILD, env=environment()).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
