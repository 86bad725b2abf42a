"""Dynamo learns of the functions when it is loaded, in whatever order things are imported, and not before."""

import subprocess
import sys
import textwrap

import pytest
from torch_calls import COMPILES


def run(program):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


CALL = """
def job(x):
    return at.segment_sum(at.exp(x), torch.tensor([0, 1, 0]), at.shape(x)[0])

x = torch.tensor([1.0, 2.0, 3.0])
def same(y):
    print(torch.allclose(y, job(x)))
"""
COMPILE = """
same(torch.compile(job, fullgraph=True, backend="eager")(x))
torch._dynamo.reset()
same(torch.compile(job, fullgraph=True, backend="eager")(x))
"""
EXPORT = """
class Job(torch.nn.Module):
    def forward(self, x):
        return job(x)

for strict in (False, True):
    same(torch.export.export(Job(), (x,), strict=strict).module()(x))
"""
THREADS = """
import threading

@torch.compile(fullgraph=True, backend="eager")
def decorated(x):
    return job(x)

threads = [threading.Thread(target=lambda: same(decorated(x))) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
"""
AFTER = """
import torch
torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
import anytensor as at
"""


@COMPILES
@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        pytest.param("import torch, anytensor as at" + CALL + COMPILE, id="torch-first-then-compile"),
        pytest.param("import anytensor as at, torch" + CALL + EXPORT, id="torch-last-then-export"),
        pytest.param("import torch, anytensor as at" + CALL + THREADS, id="decorator-used-by-threads"),
        pytest.param(AFTER + CALL + COMPILE, id="after-another-compilation"),
    ],
)
def test_functions_are_known_in_any_order(program):
    assert run(program) == ["True", "True"]


@COMPILES
@pytest.mark.slow
def test_nothing_is_imported_and_eager_calls_do_not_load_dynamo():
    out = run(
        """
        import sys, anytensor as at
        print("torch" in sys.modules)
        import torch
        at.segment_softmax(torch.ones(3), torch.tensor([0, 0, 1]), 2)
        print("torch._dynamo" in sys.modules)
        torch.compiler.config.cache_key_tag = "mine"
        import torch._dynamo
        print(torch.compiler.config.cache_key_tag.startswith("mine;anytensor-2"))
        from anytensor import _loaded
        print("torch._dynamo" in _loaded._waiting)
        print(type(torch._dynamo.__spec__.loader).__module__.startswith("anytensor"))
        """
    )
    assert out == ["False", "False", "True", "False", "False"]


def test_module_if_loaded_waits_for_a_module(tmp_path):
    """Queued callbacks run once, in order, after an import that succeeded; those that they queue run too."""
    (tmp_path / "late.py").write_text("import os\nif os.environ.get('BROKEN'): raise ValueError('broken')\n")
    out = run(
        f"""
        import os, sys
        sys.path.insert(0, {str(tmp_path)!r})
        from anytensor import module_if_loaded
        print(module_if_loaded("late") is None)
        sys.modules["late"] = None
        print(module_if_loaded("late") is None)
        del sys.modules["late"]
        said = []
        def second(module):
            said.append(2)
        def first(module):
            said.append(1)
            module_if_loaded("late", second)
        try:
            module_if_loaded("late", first, raises=True)
        except RuntimeError as error:
            print(str(error) == "late is not imported")
        sys.meta_path[:] = [f for f in sys.meta_path if f.__module__ != "anytensor._loaded" if hasattr(f, "__module__")]
        module_if_loaded("late", lambda module: said.append(3))
        os.environ["BROKEN"] = "1"
        try:
            import late
        except ValueError:
            print(said == [])
        del os.environ["BROKEN"]
        import late
        print(said == [1, 3, 2])
        print(module_if_loaded("late", lambda module: said.append(4)) is late, said[-1] == 4)
        import importlib
        importlib.reload(late)
        print(said == [1, 3, 2, 4])
        """
    )
    assert out == ["True"] * 8
