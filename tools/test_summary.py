"""Prints, for each name given, the last line of build/<name>.log (pytest's counts), then one line with their sum.

    python3 tools/test_summary.py numpy-tests py-tests-torch py-tests-rest

Exit status 1 if a log is missing, has no counts, or tells of a failure. Needs nothing but Python.
"""

import collections
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS = ("failed", "error", "passed", "skipped", "xfailed", "xpassed")
BAD = ("failed", "error", "xpassed")


def counts(line):
    """{'passed': 12, 'failed': 1} of pytest's last line; empty if it is none."""
    found = re.findall(rf"(\d+) ({'|'.join(WORDS)})s?\b", line)
    return collections.Counter({word: int(number) for number, word in found})


def text(numbers):
    return ", ".join(f"{numbers[word]} {word}" for word in WORDS if numbers[word])


def main(names, folder=ROOT / "build"):
    total, fine = collections.Counter(), True
    width = max(map(len, names), default=0)
    for name in names:
        log = folder / f"{name}.log"
        lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        last = lines[-1].strip("= ") if lines else "no log"
        numbers = counts(last)
        fine = fine and bool(numbers) and not any(numbers[word] for word in BAD)
        total += numbers
        print(f"{name:{width}}  {last}" + ("" if numbers else "  (not finished)"))
    print(f"{'all':{width}}  {text(total) or 'nothing ran'}" + ("" if fine else "  (there are failures)"))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
