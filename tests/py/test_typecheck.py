"""Run-time checks by jaxtyping: off by default; by its import hook or enable_typecheck(), on arrays of every framework.

Accuses python/anytensor/_typecheck.py, _checked.py (tools/opgen), src/python/checkable.c. Each program is a process of
its own, since the hook works on the first import. What is refused must be refused by jaxtyping: its TypeCheckError, not
an error of the library.
"""

import ast
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
from frameworks import COMPILES, FOUND, needs

import anytensor as at

pytest.importorskip("jaxtyping")
pytest.importorskip("beartype")
HERE = pathlib.Path(__file__).resolve().parent
PER_FRAMEWORK = pytest.mark.parametrize("name", [name for name in FOUND if name != "jax32"])
NEEDS_TORCH = pytest.mark.parametrize("name", [name for name in FOUND if name == "torch"])

HOOKED = """
from jaxtyping import install_import_hook
with install_import_hook("anytensor", "beartype.beartype"):
    import anytensor as at
"""
SWITCHED = """
import anytensor as at
plain = at.segment_sum
assert at.enable_typecheck() is None is at.enable_typecheck()
assert at.segment_sum is not plain
"""
PLAIN = "import anytensor as at\n"

# x, ids and refused() for a framework, and what refuses: `by(hook)` for what only the hook refuses
HEAD = """
import sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {here!r})
import numpy as np
from frameworks import framework
from jaxtyping import TypeCheckError
fw = framework({name!r})
x, ids = fw.array([1, 2, 4], "float32"), fw.array([0, 0, 1], "int32")
def refused(function, *arguments, **others):
    try:
        function(*arguments, **others)
    except TypeCheckError:
        return "jaxtyping"
    except Exception as error:
        return type(error).__name__
    return "accepted"
"""


def run(program, **environment):
    package = str(pathlib.Path(at.__file__).resolve().parent.parent)
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")]),
        **environment,
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program) + "\nprint('done')"],
        capture_output=True,
        text=True,
        env=env,
    )
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr


def program(start, name, body):
    return start + HEAD.format(here=str(HERE), name=name) + textwrap.dedent(body)


REFUSED = """
bad = {
    "sizes that differ": (x, ids[:2] if not fw.name == "native" else fw.array([0, 1], "int32"), 2),
    "2-D ids": (x, fw.array([[0, 0, 1]], "int32"), 2),
    "ids of floats": (x, fw.array([0, 0, 1], "float32"), 2),
    "ids of bool": (x, fw.array([False, False, True], "bool"), 2),
    "NumPy ids of another length": (x, np.array([0, 1]), 2),
    "rows without an axis": (fw.array(1, "float32"), ids, 2),
    "a list": ([1.0, 2.0, 4.0], ids, 2),
    "no array": (None, ids, 2),
    "a flag of text": (x, ids, 2, "yes"),
}
found = {kind: refused(at.segment_sum, *arguments) for kind, arguments in bad.items()}
assert found == dict.fromkeys(bad, "jaxtyping"), found
assert refused(at.sum, x, axes="rows") == "jaxtyping"
assert refused(at.exp, "text") == "jaxtyping"
assert refused(at.partition_softmax, x, fw.array([3.0], "float32"), 3) == "jaxtyping"
assert refused(at.segment_count, fw.array([[0]], "int32"), 2) == "jaxtyping"
# what it knows nothing of is refused by the library, as ever
assert refused(at.segment_sum, x, ids, None) == "TypeError"
assert refused(at.segment_sum, x, ids, -1) == "ValueError"
assert refused(at.segment_sum, x) in ("TypeError", "jaxtyping")
"""

ACCEPTED = """
def values(y):
    return fw.numpy(y).tolist()
host = np.array([0, 0, 1])
assert values(at.segment_sum(x, ids, 2)) == [3, 4]
assert values(at.segment_sum(x, host, np.int64(2), np.True_)) == [3, 4]
assert values(at.segment_sum(np.array([1, 2, 4], "float32"), ids, num_segments=2, sorted=True)) == [3, 4]
assert values(at.segment_sum(x, ids, fw.array(2, "int32"))) == [3, 4]
assert values(at.segment_sum(x, fw.array([0, 0, 1], "uint8"), at.shape(x)[0])) == [3, 4, 0]
assert values(at.segment_max_or_constant(x, ids, 3, fw.array(7, "float32"))) == [2, 4, 7]
assert values(at.segment_softmax(fw.array([[1], [1], [4]], "float32"), ids, 2)) == [[0.5], [0.5], [1]]
assert values(at.segment_count(ids, 2)) == [2, 1]
assert values(at.partition_sum(x, fw.array([2, 1], "int64"), 3)) == [3, 4]
assert values(at.partition_softmax(x, fw.array([0, 3, 0], "int64"), sum_partitions=3)) == values(
    at.partition_softmax(x, fw.array([0, 3, 0], "int64"), 3))
for y in (3.0, 3, True, np.float32(3), np.array(3.0, "float32"), fw.array(3, "float32")):
    assert max(values(at.maximum(x, y))) == 4, y
assert values(at.maximum(3, x)) == [3, 3, 4] and values(at.where(True, x, 0.0)) == [1, 2, 4]
assert values(at.clip(x, max=np.float32(2))) == [1, 2, 2] and values(at.clip(x, None, 2)) == [1, 2, 2]
assert values(at.sum(x, (0,), keepdims=True)) == [7] and values(at.sum(x, np.int64(0))) == 7
assert values(at.sum(x, [0])) == 7 and values(at.cumsum(x, axis=None)) == [1, 3, 7]
assert values(at.take(x, 1)) == 2 and values(at.take(x, host)) == [1, 1, 2]
assert values(at.repeat(x, 2, axis=0)) == [1, 1, 2, 2, 4, 4]
assert values(at.concatenate((x, np.ones(1, "float32")))) == [1, 2, 4, 1]
assert values(at.reshape(x, -1)) == [1, 2, 4] and at.shape(x) == (3,)
assert values(at.full((2,), 3.0, like=x)) == [3, 3] and values(at.arange(2, like=x)) == [0, 1]
assert values(at.astype(x, "int8")) == [1, 2, 4] and values(at.zeros_like(x)) == [0, 0, 0]
assert at.exp(1.0).shape == () and at.zeros(2).tolist() == [0, 0]
if fw.name == "torch":
    import torch
    assert values(at.segment_sum(torch.nn.Parameter(x), ids, 2)) == [3, 4]
    assert values(torch.vmap(lambda x: at.segment_sum(x, ids, 2))(torch.stack([x, x]))) == [[3, 4], [3, 4]]
if fw.name == "tensorflow":
    assert values(at.segment_sum(fw.tf.Variable(x), fw.tf.Variable(ids), 2)) == [3, 4]
if fw.name == "jax":
    import jax
    assert values(jax.jit(at.segment_sum, static_argnums=2)(x, ids, 2)) == [3, 4]
    assert values(jax.vmap(lambda x: at.exp(x * 0))(x)) == [1, 1, 1]
    assert values(jax.grad(lambda x: at.segment_sum(x, ids, 2)[0])(x)) == [1, 1, 0]
    assert refused(jax.jit(at.segment_sum, static_argnums=2), x, ids[:2], 2) == "jaxtyping"
"""


@PER_FRAMEWORK
def test_under_the_hook_what_is_wrong_is_refused_by_jaxtyping(name):
    run(program(HOOKED, name, REFUSED + ACCEPTED))


@pytest.mark.parametrize("name", [name for name in FOUND if name in ("numpy", "torch")])
def test_after_enable_typecheck_what_is_wrong_is_refused_by_jaxtyping(name):
    body = """
    assert plain is at._core.segment_sum
    assert refused(plain, x, fw.array([0, 1], "int32"), 2) not in ("jaxtyping", "accepted")  # taken out before
    import anytensor.segment
    assert anytensor.segment.segment_sum is at.segment_sum
    """
    run(program(SWITCHED, name, textwrap.dedent(body) + REFUSED + (ACCEPTED if name == "numpy" else "")))


def test_a_plain_import_refuses_nothing_by_jaxtyping():
    """Else these tests would say nothing about the hook."""
    body = """
    assert at.segment_sum is at._core.segment_sum and "anytensor._checked" not in sys.modules
    assert refused(at.segment_sum, x, ids[None], 2) == "ValueError"
    assert refused(at.segment_sum, x, ids[:2], 2) == "ValueError"
    assert refused(at.segment_sum, x, ids, 2, "yes") == "accepted"
    """
    run(program(PLAIN, "numpy", body))


def test_a_plain_import_loads_no_checker():
    run("""
        import sys
        import anytensor
        assert not {"jaxtyping", "beartype", "anytensor._checked", "anytensor.typing"} & set(sys.modules)
    """)


@pytest.mark.parametrize("start", [HOOKED, PLAIN + "at.enable_typecheck()\n"], ids=["hook", "enable"])
def test_jaxtyping_disable_wins(start):
    body = """
    assert at.segment_sum is at._core.segment_sum
    assert refused(at.segment_sum, x, ids[:2], 2) == "ValueError"
    """
    run(program(start, "numpy", body), JAXTYPING_DISABLE="1")


def test_the_hook_of_another_package_changes_nothing():
    run("""
        from jaxtyping import install_import_hook
        with install_import_hook(["another", "anytensors"], "beartype.beartype"):
            import anytensor as at
        assert at.segment_sum is at._core.segment_sum
    """)


def test_a_hook_without_a_checker_checks_nothing():
    run(
        program(
            HOOKED.replace('"beartype.beartype"', "None"),
            "numpy",
            """
        assert refused(at.segment_sum, x, ids[:2], 2) == "ValueError"
        assert at.segment_sum(x, ids, 2).tolist() == [3, 4]
    """,
        )
    )


def test_a_checker_that_is_not_there_is_an_import_error():
    run("""
        import anytensor as at
        try:
            at.enable_typecheck("no_such_checker.check")
        except ImportError as error:
            assert "no_such_checker" in str(error)
        else:
            raise AssertionError
        assert at.segment_sum is at._core.segment_sum
    """)


def test_the_message_names_function_argument_and_axis():
    run(
        program(
            HOOKED,
            "numpy",
            """
        try:
            at.segment_sum(x, ids[:2], 2)
        except TypeCheckError as error:
            text = str(error)
            assert "checking the parameters of anytensor._checked.segment_sum" in text, text
            assert "parameter 'segment_ids'" in text and "E=3" in text, text
    """,
        )
    )


def test_a_checked_function_looks_like_the_one_it_stands_for():
    run(
        program(
            SWITCHED,
            "numpy",
            """
        import inspect, pickle
        for name in at._core.ops:
            checked, plain = getattr(at, name), getattr(at._core, name)
            if name == "align_arrays":
                continue
            assert checked is not plain, name
            assert (checked.__name__, checked.__doc__) == (name, plain.__doc__)
            assert pickle.loads(pickle.dumps(checked)) is checked
            one, other = inspect.signature(checked), inspect.signature(plain)
            assert {p.name: (p.kind, p.default) for p in one.parameters.values()} == {
                p.name: (p.kind, p.default) for p in other.parameters.values()}, name
            assert all(p.annotation is not p.empty for p in one.parameters.values()), name
    """,
        )
    )


def test_every_function_of_the_table_has_a_checked_one():
    source = pathlib.Path(at.__file__).with_name("_checked.py").read_text()
    functions = {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    assert functions == set(at._core.ops) - {"align_arrays"}


@needs("jaxtyping", "0.3", "an import hook that leaves functions alone that ask for it")
def test_the_hook_wraps_nothing_that_a_compiler_has_to_read():
    """Public Python functions and methods are as they were written: Dynamo cannot see through jaxtyping's wrappers."""
    run(
        program(
            HOOKED,
            "numpy",
            """
        import types
        def code_of(one):
            one = getattr(one, "__func__", one)
            return one.__code__.co_filename if isinstance(one, types.FunctionType) else ""
        public = [getattr(at, name) for name in at.__all__]
        for one in public:
            if not str(getattr(one, "__module__", "")).startswith("anytensor"):
                continue
            parts = vars(one).values() if isinstance(one, type) else [one]
            assert not any("jaxtyping" in code_of(part) for part in parts), one
        from anytensor import _dynamo
        assert not any("jaxtyping" in code_of(one) for one in _dynamo._EQUIVALENTS.values())
    """,
        )
    )


@NEEDS_TORCH
@COMPILES
def test_checks_step_aside_while_torch_traces(name):
    run(
        program(
            HOOKED,
            name,
            """
        import torch
        def whole(x, ids):
            with at.promote_options(copy=True):
                rows = at.shape(x)[0]
            y = at.segment_sum(x, ids, rows) + at.sum(x, axes=(0,), keepdims=True)
            y = at.tree.map(at.maximum, *[at.tree.batch([{"y": [y, None]}])] * 2)["y"][0]
            return at.maximum(y, at.get_backend(x).ninf)
        for dynamic in (False, True):
            compiled = torch.compile(whole, fullgraph=True, dynamic=dynamic, backend="aot_eager")
            for k in (3, 5):
                given = torch.rand(k), torch.arange(k, dtype=torch.int32)
                assert torch.equal(compiled(*given), whole(*given))
        class Whole(torch.nn.Module):
            def forward(self, x, ids):
                return whole(x, ids)
        n = torch.export.Dim("n", min=2)
        for strict in (False, True):
            exported = torch.export.export(Whole(), (x, ids), dynamic_shapes=({0: n}, {0: n}), strict=strict)
            assert torch.equal(exported.module()(*given), whole(*given))  # the size stayed free
        trace = torch.jit.trace(lambda x, ids: at.segment_mean(x, ids, 3), (x, ids))
        assert torch.equal(trace(*given), at.segment_mean(*given, 3))
        assert "aten::eq" not in str(torch.jit.trace(lambda x: at.exp(x), (x,)).graph)
    """,
        )
    )


@pytest.mark.parametrize("name", [name for name in FOUND if name == "tensorflow"])
def test_checks_step_aside_in_a_graph(name):
    run(
        program(
            HOOKED,
            name,
            """
        tf = fw.tf
        def whole(x, ids):
            return at.segment_sum(x, ids, at.shape(x)[0])
        unknown = [tf.TensorSpec([None]), tf.TensorSpec([None], tf.int32)]
        for how in ({}, {"jit_compile": True}, {"autograph": False}):
            assert tf.function(whole, **how)(x, ids).numpy().tolist() == [3, 4, 0]
            assert tf.function(whole, input_signature=unknown, **how)(x, ids).numpy().tolist() == [3, 4, 0]
        any_rank = tf.function(lambda x: at.exp(x), input_signature=[tf.TensorSpec(None)])
        assert any_rank(x * 0).numpy().tolist() == [1, 1, 1]
        assert refused(tf.function(whole), x, ids[:2]) == "ValueError"  # the library's own
    """,
        )
    )


@NEEDS_TORCH
def test_checked_functions_can_be_scripted(name, tmp_path):
    file = tmp_path / "scripted.py"
    file.write_text(
        "import torch\nimport anytensor as at\nat.enable_typecheck()\n"
        "def run(x: torch.Tensor, ids: torch.Tensor):\n    return at.segment_sum(x, ids, 2)\n"
        "assert at.segment_sum is not at._core.segment_sum\n"
        "print(torch.jit.script(run)(torch.ones(3), torch.tensor([0, 1, 1])).tolist())\n"
    )
    package = str(pathlib.Path(at.__file__).resolve().parent.parent)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, env=env)
    assert done.stdout == "[1.0, 2.0]\n", done.stderr
