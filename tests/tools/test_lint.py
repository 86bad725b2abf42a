"""tools/lint.py on small made-up sources: what it finds, and what it leaves alone."""

import importlib.util
from pathlib import Path

import pytest

LINT = Path(__file__).resolve().parents[2] / "tools" / "lint.py"
spec = importlib.util.spec_from_file_location("anytensor_lint", LINT)
lint = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lint)

GOOD = """
at_array at_a(at_frame *up, at_array x)
{
    if (!x.p) return AT_NIL; /* before the frame opens */
    at_frame frame, *f = at_enter(&frame, up);
    at_array y = at_exp(f, at_neg(f, x));
    return at_leave(f, y);
}
"""


def lines(found):
    return [line for line, _ in found]


@pytest.mark.parametrize(
    ("path", "include", "allowed"),
    [
        ("src/python/args.c", "<Python.h>", True),
        ("src/core/frame.c", "<Python.h>", False),
        ("include/anytensor.h", "<Python.h>", False),
        ("src/ops/segment.c", "<numpy/arrayobject.h>", False),
        ("src/kernels/sum.c", "<math.h>", True),
        ("src/kernels/sum.c", '"anytensor/types.h"', True),
        ("src/kernels/sum.c", '"kernels/own.h"', True),
        ("src/kernels/sum.c", '"own.h"', True),
        ("src/kernels/sum.c", '"core/own.h"', False),
        ("src/kernels/sum.c", '"anytensor/frame.h"', False),
        ("src/kernels/sum.c", '"other.h"', False),
        ("src/ops/segment.c", '"anytensor/backend.h"', True),
        ("src/ops/segment.c", '"backends/native/native.h"', False),
        ("src/core/frame.c", '"core/dispatch.h"', True),
        ("src/core/frame.c", '"ops/slots.h"', False),
        ("tests/c/test_x.c", '"kernels/own.h"', True),
    ],
)
def test_folders_include_only_what_they_may(path, include, allowed):
    found = list(lint.folder_rule(path, f"/* one */\n#include {include}\n", {"own.h"}))
    assert lines(found) == ([] if allowed else [2])


def test_an_include_in_a_comment_is_no_include():
    assert not list(lint.folder_rule("src/core/a.c", "/*\n#include <Python.h>\n*/\n"))


def test_a_good_frame_is_left_alone():
    assert not list(lint.frame_rule(GOOD))
    assert not list(lint.order_rule(GOOD))


def test_an_early_return_inside_a_frame_is_found_at_its_line():
    bad = GOOD.replace("    at_array y", "    if (at_failed(f)) return AT_NIL;\n    at_array y")
    assert lines(lint.frame_rule(bad)) == [6]


@pytest.mark.parametrize("line", ["at_leave(f, y);", "at_frame more, *g = at_enter(&more, f);"])
def test_a_second_enter_or_leave_is_found(line):
    assert lines(
        lint.frame_rule(GOOD.replace("    return at_leave", f"    {line}\n    return at_leave"))
    ) == [5]


def test_a_missing_leave_is_found():
    assert lines(lint.frame_rule(GOOD.replace("at_leave(f, y)", "y"))) == [5]


def test_a_macro_that_stamps_functions_is_read_too():
    good = (
        "#define STAMP(n) at_array n(at_frame *up) \\\n"
        "{ at_frame a, *f = at_enter(&a, up); return at_leave(f, g(f)); }\n"
    )
    assert not list(lint.frame_rule(good))
    assert lines(lint.frame_rule(good.replace("return at_leave", "return x; at_leave"))) == [2]


def test_a_frame_opened_through_a_helper_is_read_too():
    helper = """
static at_frame *begin(at_frame *frame, at_frame *up)
{
    at_enter(frame, up);
    return frame;
}
"""
    assert not list(lint.frame_rule(helper))
    bad = GOOD.replace("at_enter(", "begin(").replace("return at_leave(f, y)", "return y")
    assert lines(lint.frame_rule(helper + bad)) == [11]


def test_the_outermost_frame_is_closed_not_left():
    assert not list(
        lint.frame_rule("int main(void)\n{ at_frame root, *f = at_open(&root, cx); return 0; }\n")
    )


def test_frames_of_two_functions_do_not_mix():
    assert not list(lint.frame_rule(GOOD + GOOD))


@pytest.mark.parametrize(
    "call",
    [
        "at_add(f, at_exp(f, x), at_log(f, x))",
        "at_add(f, wrap(at_exp(f, x)), -at_log(f, x))",
        "at_where(f, m, ati_a(f, x), (y, ati_b(f, y)))",
        "at_stack(f, (at_array[]){at_exp(f, x), at_log(f, x)}, 2)",
    ],
)
def test_two_nested_op_calls_are_found(call):
    assert lines(lint.order_rule(f"void g(void)\n{{\n    x = {call};\n}}\n")) == [3]


@pytest.mark.parametrize(
    "statement",
    [
        "x = at_add(f, x, at_exp(f, at_log(f, x)));",
        "if (a) { x = at_exp(f, x); y = at_log(f, y); }",
        'x = at_add(f, g("at_exp(f, x)"), at_log(f, x)); /* h(at_a(f), at_b(f)) */',
        "g(at_dtype_of(f, x), at_dtype_of(f, y));",
    ],
)
def test_what_has_one_order_is_left_alone(statement):
    assert not list(lint.order_rule(f"void g(void)\n{{\n    {statement}\n}}\n"))


def test_host_callbacks_are_found_in_code_and_not_in_c_comments():
    assert lines(lint.callback_rule("src/python/a.c", '\nresolve("pure_callback");\n')) == [2]
    assert lines(lint.callback_rule("python/anytensor/a.py", "tf.py_function(f)\n")) == [1]
    assert not list(lint.callback_rule("src/python/a.c", "/* never pure_callback */\n"))


def test_two_files_of_one_name_are_found():
    paths = ["src/ops/segment.c", "src/kernels/segment.c", "README.md", "docs/README.md"]
    assert [path for path, _ in lint.name_rule(paths)] == ["src/ops/segment.c"]


def test_this_repository_has_no_findings():
    assert list(lint.lint(list(lint.files()))) == []
