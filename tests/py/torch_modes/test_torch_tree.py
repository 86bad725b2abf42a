"""Trees in one full graph: what torch.compile inlines gives what the builtins give; types registered with torch.

Accuses python/anytensor/_tree_dynamo.py, _dynamo.py and src/python/pytree_registries.c.
"""

import collections
import dataclasses
import pickle
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from frameworks import installed
from tree_nests import Equal, Field, Magic, Point, Typed

import anytensor as at
from anytensor import tree

if installed("torch") < (2, 6):
    pytest.skip("torch's registry of trees is private, and Dynamo takes no builtins", allow_module_level=True)


@tree.register_dataclass(meta=("tag",))
@dataclasses.dataclass
class Half:
    x: Any
    y: Any
    tag: str


class OneField(Equal):
    __attrs_attrs__ = (Field("_x", alias="x"),)

    def __init__(self, x):
        self._x = x


X = torch.arange(6.0).reshape(3, 2)
NESTS = {
    "leaf": X,
    "dict": {"b": X, "a": [X, (X, None)], "c": {3: X, 1: X}},
    "OrderedDict": collections.OrderedDict(b=X, a=X),
    "defaultdict": collections.defaultdict(list, {"b": X, "a": X}),
    "namedtuple": Typed(Point(X, [X]), None),
    "magic": Magic(X, {"k": X}),
    "attrs": OneField(X),
    "dataclass": Half(X, [X], "kept"),
    "deque": collections.deque([X, X]),
}


def flatten_and_unflatten(nest):
    leaves, treedef = tree.flatten(nest)
    return tree.unflatten(treedef, [x + 1 for x in leaves]), treedef.unflatten(leaves), treedef.num_leaves


def compare_structures(nest):
    same = tree.structure(nest) == tree.structure(tree.map(lambda x: 2 * x, nest))
    return same, tree.structure(nest) == tree.structure([nest]), X + 1


PROGRAMS = {
    "map": lambda nest: tree.map(lambda x: 2 * x + 1, nest),
    "map of two": lambda nest: tree.map(lambda x, y: x + y, nest, nest),
    "leaves": lambda nest: sum(tree.leaves(nest)),
    "is_leaf": lambda nest: tree.leaves([nest, [X]], is_leaf=lambda x: isinstance(x, torch.Tensor)),
    "reduce": lambda nest: tree.reduce(lambda x, y: x + 2 * y, nest, 0.0),
    "reduce without a start": lambda nest: tree.reduce(lambda x, y: x + 2 * y, nest),
    "flatten and unflatten": flatten_and_unflatten,
    "paths": lambda nest: tree.map_with_path(lambda path, x: x + len(path), nest),
    "structures": compare_structures,
    "batch": lambda nest: tree.batch([nest, nest]),
    "unbatch": lambda nest: tree.unbatch(nest),
}


def assert_same(one, other):
    assert type(one) is type(other) and tree.structure(one) == tree.structure(other)
    tree.map(assert_same_leaf, one, other)


def assert_same_leaf(x, y):
    assert type(x) is type(y)
    assert torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y


def every_program(nest):
    return [program(nest) for program in PROGRAMS.values()]


@pytest.mark.parametrize("nest", NESTS)
def test_programs_run_in_one_graph(nest):
    got = torch.compile(every_program, fullgraph=True, backend="eager")(NESTS[nest])
    assert_same(got, every_program(NESTS[nest]))


def test_gradients_go_through_a_compiled_map():
    nest = {"a": X.clone().requires_grad_(), "b": [X.clone().requires_grad_()]}

    def loss(nest):
        return tree.reduce(lambda x, y: x + y, tree.map(lambda x: (x * x).sum(), nest))

    torch.compile(loss, fullgraph=True, backend="aot_eager")(nest).backward()
    assert torch.equal(nest["a"].grad, 2 * X) and torch.equal(nest["b"][0].grad, 2 * X)


def test_a_nest_of_another_structure_is_compiled_anew():
    run = torch.compile(PROGRAMS["map"], fullgraph=True, backend="eager")
    for nest in ({"a": X}, {"a": X, "b": [X]}, [X], {"a": X}):
        assert_same(run(nest), PROGRAMS["map"](nest))


class Joins:
    """Joins and splits itself."""

    def __init__(self, x):
        self.x = x

    @classmethod
    def __tree_batch__(cls, objects, axis):
        return cls(at.concatenate([one.x for one in objects], axis=axis))

    def __tree_unbatch__(self):
        return [Joins(part) for part in at.split(self.x, 6)]


def test_hooks_of_batches_run_in_one_graph():
    def run(x):
        both = tree.batch([{"j": Joins(x)}, {"j": Joins(x)}])
        return both["j"].x, [part["j"].x for part in tree.unbatch(both)]

    assert_same(torch.compile(run, fullgraph=True, backend="eager")(X), run(X))


def test_a_treedef_may_come_from_outside():
    @torch.compile(fullgraph=True, backend="eager")
    def run(treedef, x):
        return tree.unflatten(treedef, [x, x + 1])

    for nest in ([0, 1], (0, 1), {"a": 0, "b": [1]}, [0, 1], Point(0, 1)):
        treedef = tree.structure(nest)
        closed = torch.compile(
            lambda x, d=treedef: tree.unflatten(d, [x, x + 1]), fullgraph=True, backend="eager"
        )
        for got in (run(treedef, X), closed(X)):
            assert_same(got, tree.unflatten(treedef, [X, X + 1]))


class Mine(Equal):
    def __init__(self, x, y):
        self.x, self.y = x, y


pytree.register_pytree_node(
    Mine,
    lambda one: ([one.x], one.y),
    lambda children, context: Mine(*children, context),
    serialized_type_name="anytensor.tests.Mine",
)


def test_types_registered_with_torch_are_nodes_and_compare_by_their_context():
    leaves, treedef = tree.flatten({"m": Mine([1, None], "out")})
    assert leaves == [1] and treedef.unflatten([3]) == {"m": Mine([3, None], "out")}
    assert tree.structure(Mine(1, "a")) != tree.structure(Mine(1, "b"))
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    got = torch.compile(PROGRAMS["map"], fullgraph=True, backend="eager")(Mine(X, "kept"))
    assert torch.equal(got.x, 2 * X + 1) and got.y == "kept"
