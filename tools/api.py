#!/usr/bin/env python3
"""The public names and signatures, and whether they may change as they did (semantic versioning).

    tools/api.py            checks docs/api.txt against the package, and against the same file at the last tag
    tools/api.py --write    writes docs/api.txt

Within a major version a public name may not go, and a call that was right must stay right: parameters may be added
at the end or by keyword, with defaults; none may go, move, lose its default or become positional only.
"""

import argparse
import inspect
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = "docs/api.txt"
MODULES = ["anytensor", "anytensor.lengths", "anytensor.native", "anytensor.tree"]
HEAD = "# Public names and signatures, written by tools/api.py --write."


def surface(modules=MODULES):
    """One line per name: `module.name(signature)`, or the name alone of what has none."""
    import importlib

    lines = []
    for path in modules:
        module = importlib.import_module(path)
        lines += [f"{path}.{name}{signature(getattr(module, name))}" for name in sorted(module.__all__)]
    return lines


def signature(thing):
    """Without annotations, which refuse no call; "" of what is another library's, or has none."""
    ours = str(getattr(thing, "__module__", "")).startswith("anytensor")
    if not callable(thing) or not ours:
        return ""
    try:
        found = inspect.signature(thing)
    except ValueError:
        return ""
    plain = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    text = str(found.replace(parameters=plain, return_annotation=found.empty))
    return re.sub(r" at 0x[0-9a-f]+", "", text)


# ---- comparing two lists
def parameters(text):
    """[(name, kind, has a default)] of a signature as text."""
    scope = {}
    plain = re.sub(r"<[^<>]*>", "None", re.sub(r"->.*$", "", text))
    exec(f"def f{plain}: pass", scope)
    kinds = inspect.Parameter
    return [
        (p.name, p.kind, p.default is not kinds.empty)
        for p in inspect.signature(scope["f"]).parameters.values()
    ]


def breaks(old, new):
    """Why calls that were right may now be wrong; None when they are not."""
    if old == new or not old.startswith("("):
        return None
    if not new.startswith("("):
        return "can no longer be called"
    before, after = parameters(old), parameters(new)
    names = {name: (kind, optional) for name, kind, optional in after}
    for name, kind, optional in before:
        if name not in names:
            return f"parameter {name} is gone"
        if names[name][0] != kind and kind is not inspect.Parameter.KEYWORD_ONLY:
            return f"parameter {name} is passed in another way"
        if optional and not names[name][1]:
            return f"parameter {name} has lost its default"
    places = [name for name, kind, _ in before if kind < inspect.Parameter.VAR_POSITIONAL]
    if [name for name, kind, _ in after if kind < inspect.Parameter.VAR_POSITIONAL][: len(places)] != places:
        return "parameters have moved"
    fresh = [name for name, kind, optional in after if not optional and kind not in (2, 4)]
    added = [name for name in fresh if name not in {n for n, _, _ in before}]
    return f"parameter {added[0]} is required" if added else None


def split(lines):
    return dict(
        re.match(r"([\w.]+)(.*)", line).groups() for line in lines if line and not line.startswith("#")
    )


def complaints(old, new):
    old, new = split(old), split(new)
    found = [f"{name} is gone" for name in old if name not in new]
    changed = ((name, breaks(old[name], new[name])) for name in old if name in new)
    return found + [f"{name}{new[name]}: {why}" for name, why in changed if why]


# ---- versions
def last_tag(root):
    """(tag, its list), or None while nothing is tagged."""
    tag = git(root, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
    text = git(root, "show", f"{tag}:{LIST}") if tag else None
    return (tag, text.splitlines()) if text else None


def git(root, *args):
    run = subprocess.run(["git", *args], cwd=root, capture_output=True, text=True)
    return run.stdout.strip() if run.returncode == 0 else None


def major(version):
    return re.match(r"v?(\d+)", version).group(1)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args(argv).write
    import anytensor

    lines, file = surface(), ROOT / LIST
    if write:
        file.write_text("\n".join([HEAD, *lines, ""]))
    known = file.read_text().splitlines() if file.exists() else []
    found = (
        [] if [HEAD, *lines] == known else [f"{LIST} is not what the package has: run tools/api.py --write"]
    )
    released = last_tag(ROOT)
    if released and major(released[0]) == major(anytensor.__version__):
        found += [f"since {released[0]}: {text}" for text in complaints(released[1], lines)]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
