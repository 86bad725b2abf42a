"""Compares what a shared library exports with a committed list: exports.py [--write] LIBRARY LIST.

Exit status 1 where they differ, or where a name does not begin with at_. --write rewrites the list.
"""

import argparse
import subprocess
import sys
from pathlib import Path

PREFIX = "at_"


def exported(library):
    """Names of the defined dynamic symbols, sorted."""
    lines = subprocess.run(
        ["nm", "-D", "--defined-only", "--format=posix", library], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return sorted({line.split()[0].partition("@")[0] for line in lines if line.strip()})


def differences(found, expected):
    yield from (
        f"{name} is exported but not public: it lacks the prefix {PREFIX}"
        for name in found
        if not name.startswith(PREFIX)
    )
    yield from (f"{name} is exported but not listed" for name in found if name not in expected)
    yield from (f"{name} is listed but not exported" for name in expected if name not in found)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="rewrite the list")
    parser.add_argument("library")
    parser.add_argument("list", type=Path)
    args = parser.parse_args(argv)

    found = exported(args.library)
    if args.write:
        args.list.write_text("".join(f"{name}\n" for name in found if name.startswith(PREFIX)))
    expected = args.list.read_text().split() if args.list.exists() else []
    faults = list(differences(found, expected))
    print(*faults, sep="\n", end="\n" if faults else "")
    if faults:
        print(f"If this is meant: {sys.argv[0]} --write {args.library} {args.list}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
