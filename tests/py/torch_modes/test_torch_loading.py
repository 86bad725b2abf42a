"""Dynamo learns of the functions when it is loaded, in whatever order things are imported, and not before."""

import subprocess
import sys
import textwrap

import pytest


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
ORDERS = {
    "torch first": "import torch, anytensor as at",
    "torch last": "import anytensor as at, torch",
    "dynamo first": "import torch._dynamo, torch, anytensor as at",
    "dynamo last": "import anytensor as at, torch, torch._dynamo",
    "after a compilation": """
import torch
torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
import anytensor as at
""",
}
FIRST_USES = {
    "compile": "same(torch.compile(job, fullgraph=True, backend='aot_eager')(x))",
    "decorator": """
@torch.compile(fullgraph=True, backend="eager")
def decorated(x):
    return job(x)
same(decorated(x))
""",
    "export": """
class Job(torch.nn.Module):
    def forward(self, x):
        return job(x)
same(torch.export.export(Job(), (x,)).module()(x))
same(torch.export.export(Job(), (x,), strict=True).module()(x))
""",
}


@pytest.mark.parametrize("order", ORDERS)
def test_any_order_of_imports(order):
    assert run(ORDERS[order] + CALL + FIRST_USES["compile"]) == ["True"]


@pytest.mark.parametrize("use", ["decorator", "export"])
def test_any_first_use(use):
    assert set(run(ORDERS["torch last"] + CALL + FIRST_USES[use])) == {"True"}


def test_nothing_is_imported_and_eager_calls_do_not_load_dynamo():
    out = run(
        """
        import sys, anytensor as at
        print("torch" in sys.modules)
        import torch
        at.segment_softmax(torch.ones(3), torch.tensor([0, 0, 1]), 2)
        print("torch._dynamo" in sys.modules)
        import torch._dynamo
        from anytensor import _loaded
        print("torch._dynamo" in _loaded._waiting)
        print(type(torch._dynamo.__spec__.loader).__module__.startswith("anytensor"))
        """
    )
    assert out == ["False", "False", "False", "False"]


def test_a_reset_of_dynamo_forgets_nothing():
    out = run(
        ORDERS["torch first"] + CALL + FIRST_USES["compile"] + "\ntorch._dynamo.reset()\n" + FIRST_USES["compile"]
    )
    assert out == ["True", "True"]


def test_registration_happens_in_a_thread_too():
    out = run(
        ORDERS["torch first"]
        + CALL
        + """
import threading
def work():
    same(torch.compile(job, fullgraph=True, backend="eager")(x))
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
"""
    )
    assert out == ["True", "True"]


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
