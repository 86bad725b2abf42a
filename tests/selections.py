"""Which tests belong together: those of one framework, run in processes that import no other, and the rest.

`make test` runs one pytest per selection. A test belongs to exactly one (tests/tools/test_selections.py): its
framework is that of the parameter `fw`, `peer` or `name`, of a fixture called like a framework, of a folder
`<framework>_modes`, or what a file about one says as SELECTION; a test without one, NumPy's, or one of several
frameworks belongs to the rest.
"""

import pathlib

# Selection: the rows of py/frameworks.py that it has. The rest has NumPy's and every test of no row.
ROWS = {
    "torch": ("torch",),
    "jax": ("jax", "jax32"),
    "jax_modes": (),  # apart from "jax", for which make turns XLA's optimisation off: most of its time is compiling
    "tensorflow": ("tensorflow",),
    "array_api_strict": ("array_api_strict",),
    "rest": ("numpy", "native"),
}
HOME = {row: selection for selection, rows in ROWS.items() for row in rows}


def wanted(found, only):
    """Of the rows found, those of a selection; all without one."""
    return [row for row in found if only is None or HOME[row] == only]


def of_folder(path):
    """The selection that everything in a folder belongs to, or None."""
    for folder in pathlib.Path(path).parts:
        if folder in ROWS:
            return folder
        if folder.endswith("_modes") and folder.removesuffix("_modes") in HOME:
            return HOME[folder.removesuffix("_modes")]
    return None


def owner(item):
    """The selection that a collected test belongs to; None for the blank that stands for no parameters."""
    whole = of_folder(item.path) or getattr(getattr(item, "module", None), "SELECTION", None)
    if whole:
        return whole
    params = getattr(getattr(item, "callspec", None), "params", {})
    for parameter in ("fw", "peer", "name"):
        row = params.get(parameter, "")
        if not isinstance(row, str):
            return None
        if row in HOME:
            return HOME[row]
    for fixture in getattr(item, "fixturenames", ()):
        if fixture in ROWS:
            return fixture
    return "rest"
