"""Prints a dependency group of pyproject.toml, `dev` if none is named, one line, quoted for a shell.

pip learnt `--group` in 25.1 only; Debian 12 has 23.0. Runs on any Python 3.10, before anything is installed,
where tomllib (3.11) may be missing: the group is a plain list of strings, so it is read as Python.
"""

import ast
import re
import shlex
import sys
from pathlib import Path

text = (Path(__file__).parent.parent / "pyproject.toml").read_text()
name = sys.argv[1] if len(sys.argv) > 1 else "dev"
group = re.search(rf"^{name} = (\[.*?^\])", text, re.M | re.S)
print(" ".join(shlex.quote(item) for item in ast.literal_eval(group.group(1))))
