"""What importing the package imports, in which order frameworks may come, and types that come and go.

Accuses python/anytensor/__init__.py, src/python/registry.c, src/python/module.c. Each test is a process of its own.
"""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
from frameworks import FOUND, needs, read_xfail

import anytensor as at

FRAMEWORKS = (
    "torch",
    "jax",
    "tensorflow",
    "array_api_compat",
    "einops",
    "jaxtyping",
    "ml_dtypes",
    "cupy",
    "dask",
)
NEEDS_TORCH = pytest.mark.skipif("torch" not in FOUND, reason="torch is not installed")


def python(code):
    """Runs a program that prints `done` at its end."""
    package = str(pathlib.Path(at.__file__).resolve().parent.parent)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])}
    program = textwrap.dedent(code) + "\nprint('done')\n"
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program], capture_output=True, text=True, env=env
    )
    assert done.returncode == 0 and done.stdout.endswith("done\n"), (
        f"{done.returncode}\n{done.stdout}{done.stderr}"
    )
    return done


def test_importing_the_package_imports_no_framework():
    python(f"""
        import sys
        import anytensor
        loaded = [name for name in {FRAMEWORKS} if name in sys.modules]
        assert not loaded, loaded
    """)


def test_calls_on_numpy_import_no_framework():
    python(f"""
        import sys
        import numpy as np
        import anytensor as at
        at.segment_softmax(np.ones(3), np.array([0, 1, 1]), 2)
        at.zeros(3, dtype="float32")
        for bad in ("bfloat16", object()):
            try:
                at.zeros(3, dtype=bad)
            except TypeError:
                pass
        for x in (object(), [1], "abc", type, len, 1j):
            try:
                at.exp(x)
            except TypeError:
                pass
        loaded = [name for name in {FRAMEWORKS} if name in sys.modules]
        assert not loaded, loaded
    """)


@NEEDS_TORCH
@pytest.mark.parametrize("order", ["torch, anytensor", "anytensor, torch", "numpy, torch, anytensor"])
def test_torch_may_be_imported_before_or_after(order):
    python(f"""
        import {order}
        import anytensor as at, numpy as np, torch
        assert type(at.exp(torch.ones(2))) is torch.Tensor
        assert type(at.exp(np.ones(2))) is np.ndarray
        assert type(at.segment_sum(torch.ones(2), np.array([0, 0]), 1)) is torch.Tensor
    """)


@NEEDS_TORCH
def test_torch_may_be_imported_after_calls_and_failures():
    python("""
        import anytensor as at, numpy as np
        class Odd: pass
        at.exp(np.ones(2))
        try:
            at.exp(Odd())
        except TypeError:
            pass
        import torch
        assert type(at.exp(torch.ones(2))) is torch.Tensor
        assert type(at.zeros(2, like=torch.ones(1, dtype=torch.int8))) is torch.Tensor
    """)


@pytest.mark.parametrize(
    "module",
    [
        "types.ModuleType('torch')",
        "None",
        "object()",
        "types.SimpleNamespace(Tensor=5)",
        "types.SimpleNamespace(Tensor=object, SymInt=int)",
        "types.SimpleNamespace()",
    ],
)
def test_half_imported_modules_do_not_break_numpy(module):
    python(f"""
        import sys, types
        import numpy as np
        import anytensor as at
        for name in ("torch", "jax", "tensorflow"):
            sys.modules[name] = {module}
        class Mine(np.ndarray): pass
        for _ in range(3):
            assert at.segment_sum(np.ones(2), np.array([0, 0]), 1).tolist() == [2.0]
            assert at.maximum(np.ones(2), 2).tolist() == [2.0, 2.0]
            assert at.exp(np.zeros(2).view(Mine)).tolist() == [1.0, 1.0]
            assert at.zeros(2, dtype="int8").dtype == np.int8
            try:
                at.exp(len)
            except (TypeError, RuntimeError):
                pass
            else:
                raise AssertionError("a function is no array")
    """)


@NEEDS_TORCH
def test_torch_works_after_a_half_imported_torch_was_seen():
    python("""
        import sys, types
        import anytensor as at
        sys.modules["torch"] = types.ModuleType("torch")
        class Odd: pass
        try:
            at.exp(Odd())
        except TypeError:
            pass
        del sys.modules["torch"]
        import torch
        assert type(at.exp(torch.ones(2))) is torch.Tensor
    """)


@NEEDS_TORCH
def test_types_that_come_and_go_never_get_a_wrong_backend():
    python("""
        import gc
        import numpy as np, torch
        import anytensor as at

        class Stranger: pass

        for k in range(2000):
            kind = k % 4
            if kind == 0:
                made = type(f"Array{k}", (np.ndarray,), {})
                got = at.maximum(np.zeros(2).view(made), 1.0)
                assert isinstance(got, np.ndarray), type(got)
            elif kind == 1:
                made = type(f"Tensor{k}", (torch.Tensor,), {})
                got = at.maximum(torch.zeros(2).as_subclass(made), 1.0)
                assert isinstance(got, torch.Tensor), type(got)
            elif kind == 2:
                made = type(f"Stranger{k}", (), {})
                try:
                    at.maximum(made(), 1.0)
                except TypeError as error:
                    assert f"Stranger{k}" in str(error)
                else:
                    raise AssertionError("a stranger is no array")
            else:
                made = type(f"Number{k}", (float,), {})
                assert at.maximum(made(2.0), np.zeros(1)).tolist() == [2.0]
            got = None
            del made
            if k % 100 == 99:
                gc.collect()
    """)


@pytest.mark.parametrize("base", ["np.ndarray", "float", "object"])
def test_types_that_come_and_go_on_numpy_alone(base):
    python(f"""
        import gc
        import numpy as np
        import anytensor as at
        for k in range(2000):
            made = type(f"T{{k}}", ({base},), {{}})
            x = np.zeros(2).view(made) if {base} is np.ndarray else made()
            try:
                got = at.maximum(x, np.ones(2))
                assert got.tolist() == [1.0, 1.0] and {base} is not object
            except TypeError:
                assert {base} is object
            del made, x
            got = None
        gc.collect()
        assert at.maximum(np.zeros(2), 1).tolist() == [1.0, 1.0]
    """)


def test_the_interpreter_exits_cleanly_with_results_alive():
    python("""
        import numpy as np
        import anytensor as at
        kept = [at.segment_sum(np.ones(2), np.array([0, 0]), 1), at.exp]
        import builtins
        builtins.kept = kept
    """)


def test_the_core_may_be_imported_anew():
    python("""
        import gc, sys, weakref
        import numpy as np
        for _ in range(5):
            import anytensor as at
            import anytensor._core as core
            assert at.segment_sum(np.ones(2), np.array([0, 0]), 1).tolist() == [2.0]
            for name in [name for name in sys.modules if name.startswith("anytensor")]:
                del sys.modules[name]
            old = at.segment_sum
            del at, core
            gc.collect()
            assert old(np.ones(2), np.array([0, 0]), 1).tolist() == [2.0]
    """)


def test_threads_may_call_at_the_same_time():
    python("""
        import threading
        import numpy as np
        import anytensor as at
        x, ids = np.random.default_rng(0).normal(size=(60000, 2)), np.arange(60000) % 7
        want = at.segment_softmax(x, ids, 7)
        wrong = []
        def work():
            for _ in range(10):
                if not np.array_equal(at.segment_softmax(x, ids, 7), want):
                    wrong.append(1)
        threads = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in threads]; [t.join() for t in threads]
        assert not wrong
    """)


@needs("torch", "2.6", "Dynamo takes builtins into its graph")
def test_importing_torch_registers_with_dynamo_without_importing_it_before():
    python("""
        import sys
        import anytensor
        assert "torch" not in sys.modules
        import torch
        import torch._dynamo
        x = torch.ones(3)
        compiled = torch.compile(lambda x: anytensor.maximum(x, 2.0), backend="eager", fullgraph=True)
        assert compiled(x).tolist() == [2.0] * 3
    """)


@pytest.mark.parametrize("name", [name for name in ("torch", "jax", "tensorflow") if name in FOUND])
def test_a_framework_that_is_too_old_is_refused_with_both_versions(name):
    make = {"torch": "f.ones(2)", "jax": "f.numpy.ones(2)", "tensorflow": "f.ones(2)"}[name]
    python(f"""
        import {name} as f
        import anytensor as at
        x, version = {make}, f.__version__
        for old in ("0.4.33", "0.4", "0"):
            f.__version__ = old
            try:
                at.exp(x)
            except RuntimeError as error:
                assert "{name}" in str(error) and "version" in str(error) and str(error).endswith(old), error
            else:
                raise AssertionError(old)
        f.__version__ = "2000.1rc1+cpu"
        at.exp(x)
    """)


@pytest.mark.parametrize("name", FOUND)
def test_each_gap_listed_for_a_framework_is_one_of_the_framework(name):
    """The program beside each line of tests/xfail/<name>.txt fails without this library."""
    for patterns, why, program in read_xfail(name):
        assert why and program and "anytensor" not in program, patterns
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert done.returncode != 0, f"{patterns}: {why}\nthe program works:\n{program}"
