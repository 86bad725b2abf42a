"""Trouble that users of this field reported: the scripts of ../shared/cases beside the repository, on each framework.

Each script runs in a process of its own. The processes are forked from one that has imported the framework and done
nothing with it, since importing takes longer than most scripts; a framework that starts threads when imported would
not survive that, so its scripts get a fresh interpreter each.
"""

import importlib
import importlib.util
import json
import os
import pathlib
import runpy
import subprocess
import sys
import warnings

SHARED = pathlib.Path(__file__).resolve().parents[3] / "shared"  # or where ANYTENSOR_SHARED says
CASES = pathlib.Path(os.environ.get("ANYTENSOR_SHARED", SHARED)) / "cases"
WANTED = (
    1,
    3,
    4,
    5,
    6,
    7,
    9,
    10,
    12,
    13,
    14,
    15,
    17,
    19,
    20,
    21,
    23,
    26,
    27,
    28,
    31,
    32,
    33,
    34,
    35,
    36,
    37,
    38,
    39,
    48,
    49,
    50,
    59,
    60,
)
ABOUT = {48: "torch", 49: "torch"}  # cases about one framework
RUNS = ("numpy", "torch", "jax", "tensorflow")  # what the scripts know; JAX as it comes, without 64-bit types


def threads():
    return len(os.listdir("/proc/self/task"))


def forked(script, name):
    """Exit status and output of a script in a copy of this process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(write, 1)
        os.dup2(write, 2)
        sys.argv = [script, name]
        runpy.run_path(script, run_name="__main__")
        os._exit(3)  # a script ends by itself
    os.close(write)
    with os.fdopen(read, errors="replace") as output:
        text = output.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text


def fresh(script, name):
    done = subprocess.run(
        [sys.executable, script, name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.returncode, done.stdout


def serve(name):
    """Runs the scripts named on stdin, one process each; answers a line of JSON: status and output."""
    warnings.simplefilter("ignore")  # JAX warns of fork
    sys.path.insert(0, str(CASES))
    importlib.import_module("numpy")  # the threads of its linear algebra know of fork
    before = threads()
    for module in (name, "anytensor", "caselib"):
        importlib.import_module(module)
    run_script = forked if threads() == before else fresh
    for line in sys.stdin:
        print(json.dumps(run_script(line.strip(), name)), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
    sys.exit()

import pytest  # noqa: E402
from frameworks import FOUND, installed  # noqa: E402

import anytensor as at  # noqa: E402


@pytest.fixture(scope="module")
def servers():
    """Processes by framework, started at first use."""
    running = {}
    yield running
    for process in running.values():
        process.stdin.close()
        process.wait(timeout=30)


def run(servers, name, script):
    if name not in servers:
        package = str(pathlib.Path(at.__file__).resolve().parent.parent)
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])}
        servers[name] = subprocess.Popen(
            [sys.executable, __file__, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )
    process = servers[name]
    print(script, file=process.stdin, flush=True)
    return json.loads(process.stdout.readline())


@pytest.mark.skipif(not CASES.is_dir(), reason=f"the folder {CASES} is not beside the repository")
@pytest.mark.parametrize("name", [name for name in FOUND if name in RUNS])
@pytest.mark.parametrize("number", WANTED)
def test_shared_case(number, name, servers):
    if ABOUT.get(number, name) != name:
        pytest.skip(f"about {ABOUT[number]} alone")
    if name == "torch" and number == 48 and installed("torch") < (2, 6):
        pytest.skip("torch.compile in one graph, from 2.6 on")
    if name == "numpy" and number == 7 and not importlib.util.find_spec("ml_dtypes"):
        pytest.skip("no bfloat16 in NumPy without ml_dtypes")
    script = next(CASES.glob(f"c{number:02}_*.py"))
    status, text = run(servers, name, script)
    assert text.strip().splitlines()[-1:] == ["ok"] and status == 0, f"exit status {status}\n{text}"
