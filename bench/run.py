"""Measures ours against the frameworks and the reference, prints the figures, writes bench/RESULTS.md.

    python bench/run.py [--reference PYTHON] [--ours PYTHON] [--only REGEX] [--rounds N] [--output FILE | -]

Ratios and differences of one run, never a test. Each framework and each of the two packages has a process of
its own (worker.py); they take turns figure by figure, in several rounds, so that noise hits both sides. What is
measured stands in figures.py, what is made of the times in report.py.
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import report
from figures import ASKED, TOLD
from large import HEAD

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
IMPORTS = 15  # fresh processes per package
TOLD_ROUNDS = 2  # for functions without a target: there are many, and JAX and TensorFlow are slow


def environment(role):
    """A PYTHONPATH may lead to ours (a build in the tree); the reference must not see it."""
    hidden = {"PYTHONPATH"} if role == "reference" else set()
    return {name: value for name, value in os.environ.items() if name not in hidden}


class Worker:
    """worker.py under one Python; answers one figure at a time."""

    def __init__(self, role, python, framework):
        self.process = subprocess.Popen(
            [python, str(BENCH / "worker.py"), framework],
            env=environment(role),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, figure):
        try:
            self.process.stdin.write(figure.key + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError):
            return {"error": f"the process ended with status {self.process.wait()}"}

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


def printed(role, python, code, cwd=None):
    """What a fresh process prints; nothing if it fails."""
    command = [python, "-c", code]
    return subprocess.run(command, env=environment(role), cwd=cwd, capture_output=True, text=True).stdout


def measure(figures, pythons, rounds):
    """{figure: {role: answers of all rounds}}; the roles alternate."""
    found = {figure: {role: [] for role in pythons} for figure in figures}
    for framework in dict.fromkeys(figure.framework for figure in figures):
        workers = {role: Worker(role, python, framework) for role, python in pythons.items()}
        for figure in [f for _ in range(rounds) for f in figures if f.framework == framework]:
            for role, worker in workers.items():
                found[figure][role].append(worker.ask(figure))
        for worker in workers.values():
            worker.close()
    return found


def import_times(pythons):
    """{role: answers}, a loop being one fresh process that imports anytensor and one that imports numpy."""
    code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    found = {role: [] for role in pythons}
    with tempfile.TemporaryDirectory() as empty:
        for turn in range(IMPORTS + 1):  # the first one warms the disk's cache and writes .pyc files
            for role, python in pythons.items():
                pair = [printed(role, python, code.format(p), empty) for p in ("anytensor", "numpy")]
                if turn and all(pair):
                    found[role].append(list(map(float, pair)))
    return {role: [{"loops": loops}] for role, loops in found.items()}


# ---- facts about the run
def versions(role, python):
    code = (
        "import importlib.metadata as m, platform\n"
        "print('python', platform.python_version())\n"
        "for name in ('anytensor', 'numpy', 'torch', 'jax', 'tensorflow', 'tensorflow-cpu'):\n"
        "    try: print(name.removesuffix('-cpu'), m.version(name))\n"
        "    except m.PackageNotFoundError: pass"
    )
    return dict(line.split() for line in printed(role, python, code).splitlines())


def unlisted(role, python):
    """Functions of the package that no figure measures."""
    ops = printed(role, python, "import anytensor._core as c; print(*c.ops)").split()
    return [op for op in ops if op not in {figure.function.split(".")[-1] for figure in ASKED + TOLD}]


def cpu():
    with contextlib.suppress(OSError):
        model = re.search(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(), re.M)
        if model:
            return model.group(1)
    return platform.processor() or platform.machine()


def facts(role_versions, argv):
    command = ["python", "bench/run.py", *(arg.replace(f"{ROOT}/", "") for arg in argv)]
    load = "/".join(f"{x:.1f}" for x in os.getloadavg())
    return {
        "date": datetime.date.today().isoformat(),
        "CPU": f"{cpu()}, {os.cpu_count()} cores; load {load} at the end",
        **{role: ", ".join(f"{n} {v}" for n, v in names.items()) for role, names in role_versions.items()},
        "command": f"`{shlex.join(command)}`",
    }


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    reference = ROOT / ".venv-reference" / "bin" / "python"
    parser.add_argument("--reference", default=str(reference), help="Python that has the reference")
    parser.add_argument("--ours", default=sys.executable, help="Python that has ours")
    parser.add_argument("--only", default="", metavar="REGEX", help="some figures, by `framework: name`")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument(
        "--output", help="file to write; - for none (default: bench/RESULTS.md, - with --only)"
    )
    args = parser.parse_args(argv)
    if args.output is None:
        args.output = "-" if args.only else str(BENCH / "RESULTS.md")
    return args


def main(argv):
    args = parse(argv)
    pythons = {"ours": args.ours, "reference": args.reference}
    if not Path(args.reference).exists():
        print(f"no reference at {args.reference}: its column stays empty", file=sys.stderr)
        del pythons["reference"]
    if missing := unlisted("ours", args.ours):
        print(f"figures.py does not list {', '.join(missing)}", file=sys.stderr)
    role_versions = {role: versions(role, python) for role, python in pythons.items()}

    def chosen(figures):
        here = [f for f in figures if f.framework in role_versions["ours"]]
        return [f for f in here if re.search(args.only, f"{f.framework}: {f.name}")]

    asked = measure(chosen(ASKED), pythons, args.rounds)
    imports = import_times(pythons) if re.search(args.only, "import") else {}
    told = measure(chosen(TOLD), pythons, min(args.rounds, TOLD_ROUNDS))
    text = report.text(asked, told, imports, facts(role_versions, argv))
    print(text, end="")
    if args.output != "-":
        path = Path(args.output)
        large = path.read_text().partition(HEAD)[1:] if path.exists() else ()  # what large.py has written
        path.write_text("\n".join([text, "".join(large)]) if any(large) else text)


if __name__ == "__main__":
    main(sys.argv[1:])
