"""Types that jax, torch or optree know, through stand-ins for them in sys.modules.

Accuses src/python/pytree_registries.c. The real ones: optree here, jax_modes/test_jax_tree.py,
torch_modes/test_torch_tree.py.
"""

import copy
import pickle
import sys
import types

import pytest
from tree_nests import Equal

from anytensor import tree

try:  # here, not in the test: imported anew without its submodules, it would lack them as attributes
    import optree as OPTREE
except ImportError:
    OPTREE = None

NAMES = ("jax.tree_util", "torch.utils._pytree", "optree")


class Pair(Equal):
    def __init__(self, x, y, aux=0):
        self.x, self.y, self.aux = x, y, aux


class Spec(Equal):
    """The structure that a registry gives, of one level."""

    def __init__(self, aux):
        self.aux = aux

    def unflatten(self, children):
        return Pair(*children, self.aux)


def by_flatten(asked):
    def tree_flatten(obj, is_leaf=None):
        assert is_leaf is not None and not is_leaf(obj) and is_leaf(obj)
        asked.append(obj)
        return ([obj.x, obj.y], Spec(obj.aux)) if type(obj) is Pair else ([obj], None)

    return types.SimpleNamespace(tree_flatten=tree_flatten)


def by_class(asked):
    def flatten(obj):
        asked.append(obj)
        return [obj.x, obj.y], obj.aux

    entry = types.SimpleNamespace(flatten_fn=flatten, unflatten_fn=lambda children, aux: Pair(*children, aux))
    return types.SimpleNamespace(SUPPORTED_NODES={Pair: entry})


STAND_INS = dict(zip(NAMES, (by_flatten, by_class, by_flatten), strict=True))


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch):
    for name in NAMES:
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.fixture(params=NAMES)
def registry(request, monkeypatch):
    """What a registry was asked for, and its name."""
    asked = []
    monkeypatch.setitem(sys.modules, request.param, STAND_INS[request.param](asked))
    return asked, request.param


def test_a_registered_type_is_a_node(registry):
    asked, name = registry
    nest = {"p": Pair([1, None], Pair(2, 3, "inner"), "outer")}
    leaves, treedef = tree.flatten(nest)
    assert leaves == [1, 2, 3] and treedef.unflatten(leaves) == nest and len(asked) == 2
    child = treedef.children[0]
    assert child.kind == "registered" and child.metadata[:2] == (Pair, name)
    assert repr(treedef) == "PyTreeDef({'p': Pair([*, None], Pair(*, *))})"
    assert tree.map(lambda x, y: x + y, nest, nest) == {"p": Pair([2, None], Pair(4, 6, "inner"), "outer")}
    assert tree.leaves_with_path(Pair(1, 2)) == [((tree.SequenceKey(0),), 1), ((tree.SequenceKey(1),), 2)]


def test_metadata_of_a_registered_type_compares(registry):
    assert tree.structure(Pair(1, 2)) == tree.structure(Pair(3, 4))
    assert tree.structure(Pair(1, 2)) != tree.structure(Pair(1, 2, "other"))
    with pytest.raises(ValueError, match="same structure"):
        tree.map(lambda x, y: x, Pair(1, 2), Pair(1, 2, "other"))
    assert pickle.loads(pickle.dumps(tree.structure(Pair(1, 2)))) == tree.structure(copy.deepcopy(Pair(1, 2)))


def test_registries_are_not_asked_about_what_is_known(registry):
    asked, _ = registry
    tree.leaves([1, 2.0, "a", b"b", None, 1j, {"a": (1,)}, int])
    assert asked in ([], [int])


def test_a_type_without_its_registry_is_a_leaf_and_a_treedef_says_so(registry, monkeypatch):
    treedef = tree.structure(Pair(1, 2))
    monkeypatch.delitem(sys.modules, registry[1])
    assert tree.leaves(Pair(1, 2)) == [Pair(1, 2)]
    with pytest.raises(ValueError, match=f"{registry[1]}.*not loaded"):
        treedef.unflatten([1, 2])


def test_the_first_registry_that_knows_a_type_has_it(monkeypatch):
    for name in NAMES:
        monkeypatch.setitem(sys.modules, name, STAND_INS[name]([]))
    for name in NAMES:
        assert tree.structure(Pair(1, 2)).metadata[1] == name
        monkeypatch.delitem(sys.modules, name)


def fails(*args, **kwargs):
    raise RuntimeError("mine")


BROKEN = {
    "empty": types.SimpleNamespace(),
    "None": None,
    "half": types.SimpleNamespace(SUPPORTED_NODES=None),
    "list": types.SimpleNamespace(SUPPORTED_NODES=[]),
    "no functions": types.SimpleNamespace(
        SUPPORTED_NODES={Pair: types.SimpleNamespace(flatten_fn=None, unflatten_fn=None)}
    ),
    "fails": types.SimpleNamespace(tree_flatten=fails),
    "nonsense": types.SimpleNamespace(tree_flatten=lambda *a, **k: 3),
    "no function": types.SimpleNamespace(tree_flatten=3),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_registry_knows_nothing(monkeypatch, how, name):
    monkeypatch.setitem(sys.modules, name, BROKEN[how])
    assert tree.leaves([Pair(1, 2)]) == [Pair(1, 2)]


def test_errors_of_a_function_that_torch_has_for_a_type_come_through(monkeypatch):
    for bad in (fails, lambda obj: 3, lambda obj: (3, 4)):
        entry = types.SimpleNamespace(flatten_fn=bad, unflatten_fn=fails)
        monkeypatch.setitem(sys.modules, NAMES[1], types.SimpleNamespace(SUPPORTED_NODES={Pair: entry}))
        with pytest.raises((RuntimeError, TypeError)):
            tree.leaves(Pair(1, 2))


def test_an_array_by_attributes_of_its_own_is_not_asked_about(registry):
    asked, _ = registry
    array = Pair(1, 2)
    array.shape, array.dtype = (2,), "float32"
    assert tree.leaves(array) == [array] and asked == []


def test_types_of_optree(monkeypatch):
    if OPTREE is None:
        pytest.skip("optree is not installed")
    optree = OPTREE
    monkeypatch.setitem(sys.modules, "optree", optree)

    class Mine(Pair):
        pass

    register = optree.register_pytree_node
    register(
        Mine, lambda m: ((m.x, m.y), m.aux), lambda aux, xs: Mine(*xs, aux), namespace=everywhere(optree)
    )
    leaves, treedef = tree.flatten([Mine([1, None], 2, "aux")])
    assert leaves == [1, 2] and treedef.unflatten([3, 4]) == [Mine([3, None], 4, "aux")]
    assert treedef != tree.structure([Mine([1, None], 2, "other")])


def everywhere(optree):
    """optree's name for all namespaces."""
    return vars(optree.registry)["__GLOBAL_NAMESPACE"]
