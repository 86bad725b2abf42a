"""torch.export, strict and not, with dynamic sizes: a graph of torch's own operators that works at other sizes."""

import io

import pytest
import torch
from torch_calls import CALLS, COMPILES, FEW, arguments, check, eager, program, tensor_names

import anytensor as at

pytestmark = COMPILES

# torch.export cannot reshape a dynamic (n, 3) to (3, n): tests/xfail/torch.txt
SWAP = "layout-14"


class Program(torch.nn.Module):
    def __init__(self, calls):
        super().__init__()
        self.run = program(calls)

    def forward(self, *tensors):
        return self.run(None, None, *tensors)


def export(calls, strict):
    names, (_, _, tensors) = tensor_names(calls), arguments(calls)
    edges, nodes = torch.export.Dim("edges", min=5), torch.export.Dim("nodes", min=3)
    sizes = tuple(
        None if x.ndim == 0 or name == "places" else {0: nodes if name in ("nodes", "counts") else edges}
        for name, x in zip(names, tensors, strict=True)
    )
    return torch.export.export(Program(calls), tuple(tensors), dynamic_shapes=(sizes,), strict=strict)


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "loose"])
@pytest.mark.parametrize("family", CALLS)
def test_export(family, strict):
    calls = tuple(call for call in CALLS[family] if call.name != SWAP)
    exported = export(calls, strict)
    targets = {str(node.target) for node in exported.graph.nodes if node.op == "call_function"}
    assert not [name for name in targets if "anytensor" in name or "_core" in name]
    module = exported.module()
    for size in ((7, 4), (11, 6), (29, 9)):
        check(calls, module(*arguments(calls, *size)[2]), eager(calls, *size), where=f" of {size[0]} rows")


def test_what_stands_aside_fails_in_torch_alone():
    """When torch has learned it, this fails: then the line in tests/xfail/torch.txt can go."""

    class Swap(torch.nn.Module):
        def forward(self, x):
            return torch.reshape(x, (x.shape[1], x.shape[0]))

    with pytest.raises(Exception, match="Constraints violated"):
        torch.export.export(Swap(), (torch.rand(7, 3),), dynamic_shapes=({0: torch.export.Dim("n", min=5)},))


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "loose"])
def test_export_of_a_fixed_size(strict):
    calls = FEW["layout"] + FEW["partition"]
    exported = torch.export.export(Program(calls), tuple(arguments(calls)[2]), strict=strict)
    check(calls, exported.module()(*arguments(calls)[2]), eager(calls))


def test_an_exported_program_is_saved_and_decomposed():
    calls = FEW["segment_softmax"] + FEW["segment_max"] + FEW["partition"]
    exported = export(calls, strict=False)
    file = io.BytesIO()
    torch.export.save(exported, file)
    file.seek(0)
    for again in (torch.export.load(file), exported.run_decompositions()):
        check(calls, again.module()(*arguments(calls, 11, 6)[2]), eager(calls, 11, 6))


def test_no_sum_of_counts_is_exported():
    """partition_ids checks counts it can read; an exported graph must not."""

    class Ids(torch.nn.Module):
        def forward(self, counts, x):
            return at.partition_ids(counts, at.shape(x)[0])

    exported = torch.export.export(Ids(), (torch.tensor([1, 0, 2]), torch.zeros(3)))
    targets = [str(node.target) for node in exported.graph.nodes]
    assert not [t for t in targets if t.startswith(("aten.sum", "aten.item", "aten._local_scalar"))], targets
    assert exported.module()(torch.tensor([1, 1, 0]), torch.zeros(3)).tolist() == [0, 1, 3]


def test_gradients_flow_through_an_exported_program():
    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(1.5))

        def forward(self, x, ids):
            return at.sum(at.segment_softmax(x * self.scale, ids, 3) * x)

    x, ids = torch.tensor([1.0, 2.0, float("inf"), 4.0]), torch.tensor([0, 0, -1, 2])
    model = Loss()
    x[2] = 0.5
    exported = torch.export.export(model, (x, ids)).module()
    model(x, ids).backward()
    exported(x, ids).backward()
    assert torch.equal(exported.scale.grad, model.scale.grad)
