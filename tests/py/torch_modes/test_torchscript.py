"""torch.jit.script takes functions of segments and partitions as operators, with their derivatives.

Accuses python/anytensor/torchscript.py.
"""

import inspect
import io
import subprocess
import sys

import pytest
import torch
from frameworks import needs

import anytensor as at
from anytensor import segment

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
SCRIPTED = [name for name in at._core.ops if name.startswith(("segment_", "partition_"))]
X = torch.arange(12.0).reshape(6, 2).sin()
IDS = torch.tensor([0, 2, 2, -1, 0, 7])
COUNTS = torch.tensor([1, 0, 5])


def source(name):
    """A program that calls the function with all its arguments, as TorchScript reads it."""
    names = list(inspect.signature(getattr(at._core, name)).parameters)
    typed = {"num_segments": "int", "total_length": "int", "sorted": "bool", "constant": "float"}
    words = [f"{p}: {typed.get(p, 'torch.Tensor')}" for p in names]
    return f"def run({', '.join(words)}):\n    return at.{name}({', '.join(names)})\n"


def arguments(name):
    given = {
        "x": X,
        "logits": X,
        "values": X,
        "segment_ids": IDS,
        "num_segments": 3,
        "partitions": COUNTS,
        "total_length": 6,
    }
    given |= {"constant": 0.5, "sorted": False}
    return [given[p] for p in inspect.signature(getattr(at._core, name)).parameters]


def scripted(name, tmp_path, monkeypatch):
    """TorchScript reads the source of a function, which must stand in a file."""
    (tmp_path / f"of_{name}.py").write_text(f"import torch\nimport anytensor as at\n\n\n{source(name)}")
    monkeypatch.syspath_prepend(tmp_path)
    return torch.jit.script(__import__(f"of_{name}").run)


@pytest.mark.parametrize("name", SCRIPTED)
def test_every_function_of_segments_can_be_scripted(name, tmp_path, monkeypatch):
    script = scripted(name, tmp_path, monkeypatch)
    assert f"anytensor::script_{name}" in str(script.graph)
    assert torch.equal(script(*arguments(name)), getattr(at, name)(*arguments(name)))


@pytest.mark.parametrize(
    "name", ["segment_sum", "segment_min", "segment_max", "segment_softmax", "partition_softmax"]
)
def test_derivatives_of_a_script(name, tmp_path, monkeypatch):
    """First and second order, also once the profiling executor has compiled it."""
    script, direct = scripted(name, tmp_path, monkeypatch), getattr(at, name)
    others = arguments(name)[1:]

    def derivatives(run):
        x = X.clone().requires_grad_()
        (first,) = torch.autograd.grad(run(x, *others).sin().sum(), x, create_graph=True)
        return first, torch.autograd.grad(first.pow(2).sum(), x)[0]

    for _ in range(4):
        for got, want in zip(derivatives(script), derivatives(direct), strict=True):
            assert torch.allclose(got, want) and want.any()


def pooled(x: torch.Tensor, ids: torch.Tensor, n: int):
    if n > 2:
        return at.segment_mean(x, ids, n)
    return segment.segment_sum(x, ids, n) + at.segment_max(x, ids, num_segments=n)


class Pool(torch.nn.Module):
    def forward(self, x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        return pooled(x, ids, int(ids.max()) + 1) if len(ids) > 0 else x


def test_scripted_modules_and_control_flow():
    script = torch.jit.script(Pool())
    for ids in (torch.tensor([0, 1, 1, 0, 1, 0]), torch.tensor([0, 1, 2, 3, 0, 0])):
        assert torch.equal(script(X, ids), Pool()(X, ids))


def test_a_saved_script_can_be_loaded():
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(pooled), file)
    file.seek(0)
    assert torch.equal(torch.jit.load(file)(X, IDS, 3), pooled(X, IDS, 3))


def test_a_trace_has_no_such_operator():
    trace = torch.jit.trace(lambda x, ids: at.segment_sum(x, ids, 3), (X, IDS))
    assert "anytensor::" not in str(trace.graph)
    assert torch.equal(trace(X[:4], IDS[:4]), at.segment_sum(X[:4], IDS[:4], 3))


def test_a_wrong_call_is_refused_by_the_script_compiler():
    def wrong(x: torch.Tensor, ids: torch.Tensor):
        return at.segment_sum(x, ids, 2.5)

    with pytest.raises(RuntimeError, match="num_segments"):
        torch.jit.script(wrong)


@needs("torch", "2.6", "an operator of Python keeps its message in a script")
def test_wrong_values_are_told_by_the_function():
    with pytest.raises(Exception, match="segment_mean: .*6.*5"):
        torch.jit.script(pooled)(X, IDS[:5], 3)


def test_it_is_on_and_switching_it_on_again_does_nothing():
    assert at.enable_torchscript() is True is at.enable_torchscript()


@pytest.mark.parametrize("order", ["anytensor, torch", "torch, anytensor"])
def test_it_waits_for_torch(order, tmp_path):
    program = f"""
import {order.split(", ")[0]}
import anytensor as at, sys
before = at.enable_torchscript()
assert before is ("torch" in sys.modules), before
import torch
assert at.enable_torchscript() is True
def run(x: torch.Tensor, ids: torch.Tensor):
    return at.segment_sum(x, ids, 2)
assert torch.jit.script(run)(torch.ones(3), torch.tensor([0, 1, 1])).tolist() == [1, 2]
for name in [name for name in sys.modules if name.startswith("anytensor")]:
    del sys.modules[name]  # another copy of the library, and the operators of the first
import gc, anytensor as at
gc.collect()
def again(x: torch.Tensor, ids: torch.Tensor):
    return at.segment_sum(x, ids, 2)
assert torch.jit.script(again)(torch.ones(3), torch.tensor([0, 1, 1])).tolist() == [1, 2]
"""
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
