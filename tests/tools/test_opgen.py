"""tools/opgen: signatures and docstrings of known functions, what it refuses, and that drift is seen."""

import ast
import importlib.util
import inspect
import re
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
loader = SourceFileLoader("anytensor_opgen", str(ROOT / "tools" / "opgen"))
spec = importlib.util.spec_from_loader(loader.name, loader)
opgen = importlib.util.module_from_spec(spec)
sys.modules[loader.name] = opgen  # dataclasses look their module up
loader.exec_module(opgen)

TABLE = (ROOT / opgen.TABLE).read_text()
HEADER = (ROOT / opgen.HEADER).read_text()
OPS = {op.name: op for op in opgen.python_ops(TABLE, HEADER)}
BUILTINS = {one.name: one for path in opgen.METHODS for one in opgen.read_builtins((ROOT / path).read_text())}

SMALL_TABLE = """
/* --- signatures: P(argument, role, default, how) --- */
#define ATI_SIG_UNARY(P) P(x, DATA, , POS)
#define ATI_SIG_LONG(P)          \\
    P(start, VALUE, , FIRST)     \\
    P(stop, VALUE, None, POS) P(like, LIKE, None, KW)
#ifndef UNARY
#define UNARY(...) OP(UNARY, __VA_ARGS__)
#endif
/* --- first: a note --- */
UNARY(exp, PRIMITIVE, FLOAT, PYTHON, "Not(Or(A, B))", 13, "2.0") /* UNARY(no, row) */
UNARY(hidden, PRIMITIVE, FLOAT, LIBRARY, "A", 13, "2.0")
/* --- second --- */
LONG(arange, PRIMITIVE, FREE, PYTHON, "Range", 11, "2.1")
"""
SMALL_HEADER = """
/** Sizes. Symbols belong to f. */
AT_API at_status at_shape_of(at_frame *f, at_array x, at_shape *out);
/** A first sentence, on
 *  two lines. A second one (in C: at_hidden() of it).
 *  Shapes   x (...) -> (...)                 NaN      stays "NaN".
 *  Errors   AT_ESHAPE lengths differ; AT_EDTYPE ids not
 *           integral. */
AT_API at_array at_exp(at_frame *f, at_array x);
AT_API at_array at_hidden(at_frame *f, at_array x);
/** Values; nil does nothing. */
AT_API at_array at_arange(at_frame *f, at_array start, at_array stop,
                          at_array like);
"""


def small(header=SMALL_HEADER, table=SMALL_TABLE):
    return {op.name: op for op in opgen.python_ops(table, header)}


# ---- the real table
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("exp", "x"),
        ("shape", "x"),
        ("clip", "x, min=None, max=None"),
        ("sum", "x, axes=None, *, keepdims=False"),
        ("repeat", "x, repeats, *, total_repeat_length=None, axis=None"),
        ("arange", "start, /, stop=None, step=1, *, dtype=None, like=None, device=None"),
        ("segment_sum", "x, segment_ids, num_segments, sorted=False"),
        ("segment_max_or_constant", "x, segment_ids, num_segments, constant=0.0, sorted=False"),
        ("partition_softmax", "logits, partitions, total_length"),
    ],
)
def test_signature_of_known_function(name, arguments):
    assert opgen.signature(OPS[name].params) == arguments


def test_functions_of_the_library_alone_are_left_out():
    assert not {"add", "slot_sum", "stop_gradient"} & set(OPS)


def test_segment_sum_docstring_has_its_fields_one_below_the_other():
    lines = opgen.docstring(OPS["segment_sum"].doc).split("\n")
    assert lines[:2] == ["Sum of the rows of x per segment.", ""]
    assert [w for w in (line[:9].strip() for line in lines[2:]) if w] == [
        *("Shapes", "Dtypes", "Empty", "NaN", "Ids", "Errors", "Cost")
    ]
    assert "Shapes   x (E, ...), segment_ids (E) -> (num_segments, ...)" in lines
    assert any(line.startswith("Errors   ValueError: ") for line in lines)
    assert any(line.startswith("         TypeError: ") for line in lines)


def test_no_docstring_speaks_c_or_is_too_wide():
    for op in OPS.values():
        text = opgen.docstring(op.doc)
        assert op.doc.summary, op.name
        assert not re.search(r"\b(at_|AT_|nil\b|NULL\b)|belongs to f", text), op.name
        assert max(map(len, text.split("\n"))) <= opgen.WIDTH, op.name


def test_docs_header_holds_a_text_signature_for_every_function(tmp_path):
    out = tmp_path / "new" / "op_docs.h"
    assert opgen.main(["docs-header", str(out)]) == 0
    macros = out.read_text().split("#define ATI_DOC_")[1:]
    assert [m.split()[0] for m in macros] == list(OPS)
    for macro in macros:
        text = "".join(ast.literal_eval(s) for s in re.findall(r'^ +("(?:\\.|[^"\\])*")', macro, re.M))
        head, _, doc = text.partition("\n--\n\n")
        assert doc == opgen.docstring(OPS[head.split("(")[0]].doc)
        ast.parse(f"def {head.replace('$', '')}: pass")  # what inspect.signature does
        assert "($module, " in head


def test_stubs_parse_and_have_the_same_arguments():
    for node in ast.parse(opgen.stubs(OPS.values())).body:
        if isinstance(node, ast.FunctionDef) and node.name in OPS:
            a, op = node.args, OPS[node.name]
            names = [x.arg for x in a.posonlyargs + a.args + a.kwonlyargs]
            assert names == [p.name for p in op.params]
            assert node.returns and all(x.annotation for x in a.posonlyargs + a.args + a.kwonlyargs)


@pytest.mark.skipif(not importlib.util.find_spec("ruff"), reason="ruff is not installed")
def test_stubs_are_as_ruff_formats_them(tmp_path):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "_core.pyi").write_text(opgen.stubs(OPS.values(), BUILTINS.values()))
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--no-cache", "_core.pyi"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_extension_has_these_signatures_and_docstrings():
    core = pytest.importorskip("anytensor._core")
    assert {*OPS, *BUILTINS} == {*core.ops, *core.facts}
    for name, one in BUILTINS.items():
        function = getattr(core, name)
        assert str(inspect.signature(function)) == f"({one.signature})"
        assert function.__doc__ == one.doc
    for name, op in OPS.items():
        function = getattr(core, name)
        assert str(inspect.signature(function)) == f"({opgen.signature(op.params)})"
        assert function.__doc__ == opgen.docstring(op.doc)


# ---- functions that are no rows
METHODS = r"""
#define PA_DOC_align_arrays                                        \
    "align_arrays($module, /, *arrays, copy=None, fallback=None)\n--\n\n" \
    "A first sentence,\n"                                         \
    "on two lines. And \"more\".\n\nErrors    many,\n          many."
"""


def test_functions_that_are_no_rows_are_read_from_the_extension():
    (one,) = opgen.read_builtins(METHODS)
    assert one.signature == "*arrays, copy=None, fallback=None"
    assert one.doc.startswith('A first sentence,\non two lines. And "more".')
    stub = "\n".join(opgen.builtin_stub(one))
    assert "copy: bool | None = None," in stub and '"""A first sentence, on two lines."""' in stub
    assert "- **Errors**: many, many." in opgen.builtin_reference(one)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("copy=None", "copies=None", "has no types for align_arrays"),
        ("align_arrays($", "align($", "does not begin with"),
        ("--", "==", "does not begin with"),
    ],
)
def test_a_faulty_docstring_of_the_extension_is_refused(old, new, message):
    with pytest.raises(opgen.Fault, match=message):
        opgen.stubs([], opgen.read_builtins(METHODS.replace(old, new)))


# ---- a small table
def test_rows_are_read_with_group_and_version():
    ops = small()
    assert list(ops) == ["shape", "exp", "arange"]
    assert (ops["exp"].group, ops["arange"].group) == ("first: a note", "second")
    assert (ops["exp"].since, ops["arange"].since) == ("2.0", "2.1")
    assert opgen.signature(ops["arange"].params) == "start, /, stop=None, *, like=None"


def test_c_words_are_translated():
    ops = small()
    assert ops["exp"].doc.summary == "A first sentence, on two lines. A second one."
    assert ops["exp"].doc.first_sentence == "A first sentence, on two lines."
    assert ops["shape"].doc.summary == "Sizes."
    assert ops["arange"].doc.summary == "Values; None does nothing."
    assert ops["exp"].doc.fields == {
        "Shapes": "x (...) -> (...)",
        "NaN": 'stays "NaN".',
        "Errors": "ValueError lengths differ; TypeError ids not integral.",
    }
    assert opgen.docstring(ops["exp"].doc).endswith(
        "Errors   ValueError: lengths differ\n         TypeError: ids not integral"
    )


def test_quotes_survive_in_the_c_header():
    assert r'"NaN      stays \"NaN\".\n" \ '.strip() in opgen.docs_header(small().values())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Shapes ", "Shape  ", "unknown field Shape"),
        ("NaN  ", "Nans ", "unknown field Nans"),
        ("AT_ESHAPE", "AT_ESHAPES", "at_exp: AT_ESHAPES means nothing"),
        ("at_exp(at_frame *f, at_array x)", "at_exp(at_frame *f, at_array y)", "has arguments"),
        ("AT_API at_array at_hidden(", "AT_API at_array at_other(", "at_hidden has no prototype"),
    ],
)
def test_a_faulty_header_is_refused(old, new, message):
    with pytest.raises(opgen.Fault, match=re.escape(message)):
        small(header=SMALL_HEADER.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("UNARY(exp", "BINARY(exp", "has no ATI_SIG_BINARY"),
        ("P(x, DATA, , POS)", "P(x, DATA, POS)", "is not a row of"),
        (
            "P(start, VALUE, , FIRST)",
            "P(start, VALUE, 0, FIRST) P(y, VALUE, , POS)",
            "is no Python signature",
        ),
        ("None, POS)", "None, FIRST) P(z, VALUE, , FIRST)", "is no Python signature"),
    ],
)
def test_a_faulty_table_is_refused(old, new, message):
    with pytest.raises(opgen.Fault, match=re.escape(message)):
        small(table=SMALL_TABLE.replace(old, new, 1))


# ---- the check
@pytest.fixture
def copy(tmp_path):
    """A small repository whose generated files are up to date."""
    for path, text in ((opgen.TABLE, SMALL_TABLE), (opgen.HEADER, SMALL_HEADER)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert opgen.main(["--write"], tmp_path) == 0
    return tmp_path


def test_the_committed_files_are_up_to_date(capsys):
    assert opgen.main([]) == 0, capsys.readouterr().out


def test_writing_twice_changes_nothing(copy):
    before = (copy / opgen.STUBS).read_text()
    assert opgen.main(["--write"], copy) == 0 and opgen.main([], copy) == 0
    assert (copy / opgen.STUBS).read_text() == before


@pytest.mark.parametrize("path", [opgen.STUBS, opgen.CHECKED, opgen.REFERENCE])
def test_an_edited_or_missing_file_is_drift(copy, capsys, path):
    there = "return _core.exp" if path == opgen.CHECKED else "A first"
    (copy / path).write_text((copy / path).read_text().replace(there, "Another"))
    assert opgen.main([], copy) == 1
    out = capsys.readouterr().out
    assert f"--- {path}" in out and "Another" in out and there in out
    (copy / path).unlink()
    assert opgen.main([], copy) == 1


def test_a_new_row_is_drift_until_written(copy, capsys):
    table = SMALL_TABLE.replace("LIBRARY", "PYTHON")
    (copy / opgen.TABLE).write_text(table)
    assert opgen.main([], copy) == 1
    assert "+def hidden(x: _ArrayT) -> _ArrayT:" in capsys.readouterr().out
    assert opgen.main(["--write"], copy) == 0


def test_a_long_diff_is_cut(copy, capsys):
    (copy / opgen.REFERENCE).write_text("")
    assert opgen.main([], copy) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[-1] == "..." and len(out) <= 21


PACKAGE = """\
from typing import TYPE_CHECKING

import unseen
from ._core import (
    old,
)
from ._hidden import _hidden, kept as also
from . import module

if TYPE_CHECKING:
    from announced import later

__all__ = [
    "old",
]
newaxis = None
_private = 1


def function():
    pass
"""


def test_the_package_imports_and_exports_what_the_table_has(copy):
    (copy / opgen.PACKAGE).write_text(PACKAGE)
    assert opgen.main([], copy) == 1
    assert opgen.main(["--write"], copy) == 0 and opgen.main([], copy) == 0
    text = (copy / opgen.PACKAGE).read_text()
    assert "import (\n    __version__,\n    arange,\n    exp,\n    shape,\n)" in text
    names = ["__version__", "also", "arange", "exp", "function", "later", "module", "newaxis", "shape"]
    assert "__all__ = [\n" + "".join(f'    "{name}",\n' for name in names) + "]\nnewaxis" in text


def test_a_package_without_the_lists_is_refused(copy, capsys):
    (copy / opgen.PACKAGE).write_text("from ._core import exp\n")
    assert opgen.main([], copy) == 1
    assert "__init__.py: no `from ._core import (` with a name on each line" in capsys.readouterr().out


# ---- the axes in annotations
def test_axes_are_those_of_the_doc_block():
    assert opgen.axes(OPS["segment_sum"]) == {
        "x": "E ...",
        "segment_ids": "E",
        "return": "num_segments ...",
    }
    assert opgen.axes(OPS["segment_softmax"])["return"] == "E ..."
    assert opgen.axes(OPS["segment_count"])["return"] == "num_segments"
    assert opgen.axes(OPS["partition_softmax"]) == {
        "logits": "total_length ...",
        "partitions": "N",
        "return": "total_length ...",
    }
    assert opgen.axes(OPS["take"]) == opgen.axes(OPS["exp"]) == {}


@pytest.mark.parametrize("name", [op.name for op in OPS.values() if any(p.role == "SIZE" for p in op.params)])
def test_every_function_of_segments_says_its_axes(name):
    """The field Shapes is read by a program: each array of rows or ids has its axes there, and the result."""
    op = OPS[name]
    arrays = [p.name for p in op.params if p.role in ("DATA", "INDEX")]
    assert {*arrays, "return"} <= set(opgen.axes(op)), op.doc.fields.get("Shapes")
    assert all(re.fullmatch(r"\w+( \.\.\.)?|\.\.\.", text) for text in opgen.axes(op).values())


def test_a_checked_function_passes_on_what_it_is_given():
    lines = opgen.checked_def(OPS["sum"])
    assert lines[2:] == [
        "@steps_aside",
        "def sum(x: Data, axes: Axes = None, *, keepdims: Flag = False) -> Array:",
        "    return _core.sum(x, axes, keepdims=keepdims)",
    ]
    assert "@steps_aside" in opgen.checked(OPS.values())
    ast.parse(opgen.checked(OPS.values()))


def test_a_fault_is_printed_not_raised(copy, capsys):
    (copy / opgen.HEADER).write_text(SMALL_HEADER.replace("at_exp(", "at_exponent("))
    assert opgen.main([], copy) == 1
    assert "at_exp has no prototype" in capsys.readouterr().out


# ---- several results, other names
def test_several_results_come_in_the_container_of_the_row():
    assert "-> list[_ArrayT]:" in "\n".join(opgen.stub(OPS["split"]))
    assert "-> tuple[_ArrayT, _ArrayT]:" in "\n".join(opgen.stub(OPS["fill_nan_mask"]))


def test_other_names_stand_in_stubs_and_reference():
    assert OPS["is_nan"].aliases == ("isnan",)
    assert opgen.stub(OPS["is_nan"])[-1].strip() == "isnan = is_nan"
    assert "Also called `isnan`." in opgen.reference([OPS["is_nan"]])
    names = "from ._core import (\n    is_nan,\n)\n__all__ = [\n]\n"
    assert '    "isnan",\n' in opgen.package(names, [OPS["is_nan"]])


def test_another_name_of_nothing_is_refused():
    with pytest.raises(opgen.Fault, match="hidden"):
        small(table=SMALL_TABLE + "ALIAS(seen, hidden)\n")
