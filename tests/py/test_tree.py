"""anytensor.tree: kinds of nodes, paths, treedefs, batches. Accuses src/python/pytree*.c, treedef.c, tree.py.

What torch.compile inlines instead (_tree_dynamo.py) runs here too, as `impl`, without a compiler.
"""

import collections
import copy
import functools
import gc
import inspect
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest
from test_imports import python
from tree_nests import DIFFERENT, LEAVES, NESTS, Attrs, Data, Equal, Field, Magic, Point, S

import anytensor as at
from anytensor import _tree_dynamo, tree

IMPLEMENTATIONS = {"C": tree, "Python": _tree_dynamo}


@pytest.fixture(params=IMPLEMENTATIONS)
def impl(request):
    return IMPLEMENTATIONS[request.param]


nests = pytest.mark.parametrize("nest", NESTS)


# --- one tree


@nests
def test_leaves_come_in_order(impl, nest):
    given, leaves, _ = NESTS[nest]
    assert impl.leaves(given) == leaves
    assert impl.flatten(given)[0] == leaves


@nests
def test_flatten_then_unflatten_is_the_same_tree(impl, nest):
    given, leaves, _ = NESTS[nest]
    treedef = impl.flatten(given)[1]
    assert treedef == impl.structure(given) and treedef.num_leaves == len(leaves)
    for again in (impl.unflatten(treedef, leaves), treedef.unflatten(iter(leaves))):
        assert again == given and type(again) is type(given)


@nests
def test_map_calls_the_function_with_each_leaf(impl, nest):
    given, leaves, _ = NESTS[nest]
    seen = []
    mapped = impl.map(lambda x: seen.append(x) or (x,), given, is_leaf=None)
    assert seen == leaves and type(mapped) is type(given) or not isinstance(given, (dict, list, tuple))
    assert impl.leaves(mapped) == leaves  # tuples are nodes: the leaves are below


@nests
def test_paths_lead_to_the_leaves(impl, nest):
    given, leaves, paths = NESTS[nest]
    assert impl.leaves_with_path(given) == list(zip(paths, leaves, strict=True))
    pairs, treedef = impl.flatten_with_path(given)
    assert pairs == impl.leaves_with_path(given) and treedef == impl.structure(given)
    assert impl.leaves(impl.map_with_path(lambda path, leaf: {"path": path}, given)) == [
        key for path in paths for key in path_fields(path)
    ]


def path_fields(path):
    """A path is a tuple of namedtuples: a tree itself."""
    return [part for key in path for part in (key[0] if isinstance(key[0], tuple) else key)]


@pytest.mark.parametrize("name", LEAVES)
def test_everything_else_is_a_leaf(impl, name):
    with_registries = {"jax.tree_util", "torch.utils._pytree", "optree"} & set(sys.modules)
    if name in ("range", "dict view") and with_registries:
        pytest.skip("a registry that is loaded may know it")
    leaves, treedef = impl.flatten([LEAVES[name]])
    assert leaves[0] is LEAVES[name] and len(leaves) == 1
    assert treedef.unflatten(leaves)[0] is LEAVES[name]


def test_leaves_of_equal_dicts_are_equal_whatever_the_order_of_insertion(impl):
    one, other = {"w": 8, "c": 5, "m": 6}, {"m": 6, "w": 8, "c": 5}
    assert impl.leaves(one) == impl.leaves(other) == [5, 6, 8]
    assert impl.structure(one) == impl.structure(other)
    assert list(impl.map(lambda x: x, one)) == ["c", "m", "w"]


def test_a_moved_key_of_an_ordered_dict_is_where_it_was_moved(impl):
    given = collections.OrderedDict(a=1, b=2, c=3)
    given.move_to_end("a")
    assert impl.leaves(given) == [2, 3, 1]
    assert list(impl.map(lambda x: x, given)) == ["b", "c", "a"]


def test_the_factory_of_a_defaultdict_is_kept(impl):
    mapped = impl.map(lambda x: x, collections.defaultdict(list, {"w": 8}))
    assert type(mapped) is collections.defaultdict and mapped.default_factory is list


def test_is_leaf_is_asked_first_of_everything(impl):
    assert impl.leaves([4, None], is_leaf=lambda x: x is None) == [4, None]
    leaves, treedef = impl.flatten([[1, 2], {"k": [3]}], is_leaf=lambda x: x == [1, 2])
    assert leaves == [[1, 2], 3] and treedef.unflatten(leaves) == [[1, 2], {"k": [3]}]
    seen = []
    impl.leaves((1, [2]), is_leaf=lambda x: seen.append(x))
    assert seen == [(1, [2]), 1, [2], 2]


def test_is_leaf_holds_for_every_tree_of_a_map(impl):
    both = impl.map(lambda x, y: (x, y), [None, (1,)], [(7,), (2,)], is_leaf=lambda x: x is None or x == (7,))
    assert both == [(None, (7,)), ((1, 2),)]
    with pytest.raises(ValueError, match="same structure"):
        impl.map(lambda x, y: x, [1], [[2]], is_leaf=lambda x: x == [[2]])


def test_map_takes_further_trees(impl):
    assert impl.map(
        lambda *xs: sum(xs), {"a": 1, "b": [2]}, {"a": 10, "b": [20]}, {"a": 100, "b": [200]}
    ) == {
        "a": 111,
        "b": [222],
    }
    assert impl.map(lambda *xs: len(xs), [0], *[[0]] * 20) == [21]
    assert impl.map_with_path(lambda path, *xs: (path, *xs), [1], [2], [3]) == [(S(0), 1, 2, 3)]
    assert impl.map(lambda x: None, [1]) == [None]


@pytest.mark.parametrize("name", DIFFERENT)
def test_trees_of_different_structures_are_refused_before_any_call(impl, name):
    calls = []
    for one, other in (DIFFERENT[name], DIFFERENT[name][::-1]):
        for function in (impl.map, impl.map_with_path):
            with pytest.raises(ValueError, match="trees must have the same structure"):
                function(lambda *xs: calls.append(xs), one, other)
        with pytest.raises(ValueError, match="trees must have the same structure"):
            impl.map(lambda *xs: calls.append(xs), one, one, other)
        assert impl.structure(one) != impl.structure(other)
        with pytest.raises(ValueError, match="same structure"):
            impl._columns((one, other))
    assert not calls


def test_the_error_says_where_two_trees_differ():
    with pytest.raises(ValueError) as caught:
        tree.map(
            max,
            {"z": [1, Point(2, {"q": 3})]},
            {"z": [1, Point(2, {"r": 3})]},
            {"z": [1, Point(2, {"q": 3})]},
        )
    assert "Tree 0 and tree 1 differ at tree['z'][1].a: dict ('q',) beside dict ('r',)" in str(caught.value)
    with pytest.raises(ValueError, match=r"tree 2 differ at tree: a list of 1 beside None"):
        tree.map(max, [1], [1], None)


def test_all_and_reduce(impl):
    assert impl.all({"a": True, "b": [1]}) is True and impl.all([1, 0]) is False and impl.all([]) is True
    assert impl.all([1, [0]], is_leaf=lambda x: type(x) is list and len(x) == 1) is True
    assert impl.reduce(lambda x, y: [x, y], {"b": 3, "a": (1, 2)}) == [[1, 2], 3]
    assert impl.reduce(lambda x, y: (x, y), [1], 0) == (0, 1)
    assert impl.reduce(lambda x, y: (x, y), [1], None) == (None, 1)
    assert impl.reduce(max, None, None) is None and impl.reduce(max, [5]) == 5
    assert impl.reduce(lambda x, y: x, [None], is_leaf=lambda x: x is None) is None
    with pytest.raises(TypeError, match="empty tree"):
        impl.reduce(max, [])


@pytest.mark.parametrize(("count", "word"), [(0, "few"), (1, "few"), (3, "many"), (9, "many")])
def test_too_few_or_too_many_leaves(impl, count, word):
    with pytest.raises(ValueError, match=f"Too {word} leaves for PyTreeDef; expected 2, got"):
        impl.unflatten(impl.structure({"a": 1, "b": [2]}), range(count))


def test_of_endless_leaves_no_more_are_taken_than_are_needed():
    taken = []

    def endless():
        while True:
            taken.append(1)
            yield 1

    with pytest.raises(ValueError, match="Too many"):
        tree.unflatten(tree.structure([1, 2]), endless())
    assert len(taken) == 3


def test_the_names_are_those_of_the_surface():
    short = "flatten unflatten leaves structure map flatten_with_path map_with_path".split()
    rest = "all batch leaves_with_path reduce register_dataclass unbatch".split()
    classes = ["DictKey", "GetAttrKey", "PyTreeDef", "SequenceKey"]
    assert set(tree.__all__) == {*short, *rest, *classes, *(f"tree_{name}" for name in short)}
    for name in tree.__all__:
        if name.startswith("tree_"):
            assert getattr(tree, name) is getattr(tree, name.removeprefix("tree_"))


SIGNATURES = {
    "flatten": "(tree, is_leaf=None)",
    "unflatten": "(treedef, leaves)",
    "leaves": "(tree, is_leaf=None)",
    "structure": "(tree, is_leaf=None)",
    "map": "(f, tree, *rest, is_leaf=None)",
    "flatten_with_path": "(tree, is_leaf=None)",
    "leaves_with_path": "(tree, is_leaf=None)",
    "map_with_path": "(f, tree, *rest, is_leaf=None)",
    "all": "(tree, *, is_leaf=None)",
    "reduce": "(function, tree, initializer=Ellipsis, is_leaf=None)",
    "batch": "(trees, axis=0)",
    "unbatch": "(structure, axis=0)",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_function_has_a_signature_a_docstring_and_pickles(name):
    function = getattr(tree, name)
    assert str(inspect.signature(function)) == SIGNATURES[name]
    assert function.__module__ == "anytensor.tree" and function.__name__ == name and function.__doc__
    assert pickle.loads(pickle.dumps(function)) is function


def test_arguments_may_be_named():
    assert tree.flatten(tree=[1], is_leaf=None)[0] == tree.leaves(tree=[1]) == [1]
    assert tree.map(f=abs, tree=[-1]) == [1] and tree.map(abs, tree=[-1]) == [1]
    assert tree.reduce(function=max, tree=[1], initializer=3, is_leaf=None) == 3
    assert tree.unflatten(treedef=tree.structure(1), leaves=[2]) == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: tree.flatten(),
        lambda: tree.flatten([1], None, 3),
        lambda: tree.flatten([1], nonsense=1),
        lambda: tree.flatten([1], tree=[1]),
        lambda: tree.flatten([1], is_leaf=3),
        lambda: tree.map(abs),
        lambda: tree.map(3, [1]),
        lambda: tree.all([1], None),
        lambda: tree.reduce(max),
        lambda: tree.unflatten([1], [1]),
        lambda: tree.unflatten(tree.structure(1), 3),
        lambda: tree.batch(3),
        lambda: tree.PyTreeDef(),
        lambda: tree.PyTreeDef(3, None, ()),
        lambda: tree.PyTreeDef("list", None, [3]),
        lambda: tree._from_nodes([("leaf", 0, None, None)]),
        lambda: tree._from_nodes((3,)),
        lambda: tree._columns(()),
        lambda: at._core._tree["_set_keys"]((1, 2, 3)),
    ],
)
def test_bad_arguments_are_type_errors(call):
    with pytest.raises(TypeError):
        call()


# --- keys that cannot be sorted (SEMANTICS 23)


class NoOrder:
    pass


@pytest.mark.parametrize(
    "keys", [["node", 3, (2, "rel")], [None, "q"], [NoOrder(), NoOrder()], [1j, 2j], [b"a", "a"]]
)
@pytest.mark.parametrize("make", [dict, functools.partial(collections.defaultdict, int)])
def test_keys_that_cannot_be_ordered_are_named(impl, make, keys):
    with pytest.raises(TypeError, match="only supports dicts with sortable keys") as caught:
        impl.leaves([make(dict.fromkeys(keys, 1))])
    assert repr(keys[0]) in str(caught.value) and isinstance(caught.value.__cause__, TypeError)


def test_a_class_of_optree_has_the_same_hooks_and_a_third_item(impl):
    class Mine(Magic):
        def __tree_flatten__(self):
            return (self.x, self.y), self.aux, ("x", "y")

    assert impl.map(lambda x: x + 1, Mine(1, 2)) == Mine(2, 3)


def test_one_key_needs_no_order(impl):
    assert impl.leaves({None: 1}) == [1]


def test_sets_as_keys_have_no_total_order_and_are_never_mixed_up():
    one = {frozenset("a"): 1, frozenset("b"): 2}
    other = dict(reversed(one.items()))
    try:
        assert tree.map(lambda x, y: x == y, one, other) == dict.fromkeys(one, True)
    except ValueError as error:
        assert "same structure" in str(error)


# --- dataclasses and attrs


def test_a_dataclass_is_rebuilt_with_what_is_no_child(impl):
    doubled = impl.map(lambda x: 2 * x, Data(1, 2, tag="kept"))
    assert (doubled.x, doubled.y, doubled.tag, doubled.late) == (2, 4, "kept", 18)


def test_registering_what_is_no_dataclass_is_refused():
    with pytest.raises(TypeError):
        tree.register_dataclass(NoOrder)
    for meta in ("x", ("nonsense",)):
        with pytest.raises(TypeError, match="names of fields"):
            tree.register_dataclass(meta=meta)(Data)


def test_attrs_fields_go_by_keyword(impl):
    attr = pytest.importorskip("attr")

    @attr.s(frozen=True)
    class Mine:
        a = attr.ib()
        _b = attr.ib(default=2)
        c = attr.ib(init=False, default=3)

    assert impl.map(lambda x: x + 1, Mine(1)) == impl.unflatten(impl.structure(Mine(0)), [2, 3, 4])
    assert vars(impl.map(lambda x: x + 1, Mine(1))) == {"a": 2, "_b": 3, "c": 4}


def test_a_class_that_changes_is_asked_anew():
    class Late:
        def __init__(self, x):
            self.x = x

    assert len(tree.leaves([Late(1), Late(2)])) == 2
    assert type(tree.leaves(Late(1))[0]) is Late
    Late.__tree_flatten__ = lambda self: ((self.x, self.x), None)
    Late.__tree_unflatten__ = classmethod(lambda cls, aux, children: cls(children[0]))
    assert tree.leaves(Late(1)) == [1, 1]
    del Late.__tree_flatten__
    assert type(tree.leaves(Late(1))[0]) is Late


def test_classes_that_come_and_go_are_never_mixed_up():
    for k in range(600):
        body = {
            "__tree_flatten__": lambda self: ((1, 2), None),
            "__tree_unflatten__": classmethod(lambda *_: 3),
        }
        made = type(f"Made{k}", (), body if k % 2 else {})()
        for _ in range(2):
            assert tree.leaves(made) == ([1, 2] if k % 2 else [made])
        del made
        if k % 50 == 0:
            gc.collect()


# --- treedefs


@nests
def test_a_treedef_hashes_pickles_and_copies(nest):
    given = NESTS[nest][0]
    treedef = tree.structure(given)
    assert hash(treedef) == hash(tree.structure(copy.deepcopy(given)))
    for again in (*[pickle.loads(pickle.dumps(treedef, p)) for p in range(6)], copy.deepcopy(treedef)):
        assert again == treedef and hash(again) == hash(treedef) and repr(again) == repr(treedef)
        assert again.unflatten(NESTS[nest][1]) == given
    assert len({treedef, tree.structure(given)}) == 1


@nests
def test_a_treedef_is_made_of_its_parts(nest):
    def remade(t):
        return tree.PyTreeDef(t.kind, t.metadata, [remade(child) for child in t.children])

    treedef = tree.structure(NESTS[nest][0])
    assert remade(treedef) == treedef and remade(treedef).unflatten(NESTS[nest][1]) == NESTS[nest][0]
    assert treedef.num_leaves == sum(c.num_leaves for c in treedef.children) + (treedef.kind == "leaf")


def test_a_child_of_a_treedef_is_one_by_itself():
    a, b = tree.structure({"b": 1, "a": [2, {"k": 3}]}).children
    assert a == tree.structure([2, {"k": 3}]) and b == tree.structure(1) and a != b
    assert a.children[1].unflatten([7]) == {"k": 7} and hash(a.children[0]) == hash(b)
    assert pickle.loads(pickle.dumps(a)) == a and a.children[1].children == (b,)


KINDS = {
    "None": ("none", None),
    "int": ("leaf", None),
    "list": ("list", None),
    "tuple": ("tuple", None),
    "dict": ("dict", ("a", "b")),
    "OrderedDict": ("ordereddict", ("b", "a")),
    "defaultdict": ("defaultdict", (list, ("a", "b"))),
    "namedtuple": ("namedtuple", Point),
    "magic": ("magic", (Magic, "aux")),
    "attrs": ("attrs", Attrs),
    "dataclass": ("dataclass", (Data, ("t",))),
}


@pytest.mark.parametrize("nest", KINDS)
def test_kind_and_metadata(impl, nest):
    treedef = impl.structure(NESTS[nest][0])
    assert (treedef.kind, treedef.metadata) == KINDS[nest]


PRINTED = {
    "None": "PyTreeDef(None)",
    "int": "PyTreeDef(*)",
    "list": "PyTreeDef([*, [*, *]])",
    "tuple": "PyTreeDef((*, (), (*,)))",
    "dict": "PyTreeDef({'a': [*], 'b': *})",
    "OrderedDict": "PyTreeDef(OrderedDict({'b': *, 'a': *}))",
    "defaultdict": "PyTreeDef(defaultdict(list, {'a': *, 'b': *}))",
    "namedtuple": "PyTreeDef(Point(b=*, a=[*]))",
    "magic": "PyTreeDef(Magic['aux']([*], *))",
    "attrs": "PyTreeDef(Attrs(x=*, _y={'k': *}, late=*))",
    "dataclass": "PyTreeDef(Data[('t',)](x=*, y=[*], late=*))",
}


@pytest.mark.parametrize("nest", PRINTED)
def test_a_treedef_prints_its_keys(nest):
    assert repr(tree.structure(NESTS[nest][0])) == PRINTED[nest]


def test_treedefs_compare_with_treedefs_alone():
    assert tree.structure(1).__eq__(3) is NotImplemented and tree.structure(1) != 3
    with pytest.raises(TypeError):
        tree.structure(1) < tree.structure(1)  # noqa: B015
    assert hash(tree.structure([None])) != hash(tree.structure([()]))


def test_a_treedef_with_metadata_that_does_not_hash_does_not_hash():
    treedef = tree.structure(Magic(1, 2, aux=[]))
    assert treedef == tree.structure(Magic(3, 4, aux=[]))
    with pytest.raises(TypeError, match="unhashable"):
        hash(treedef)


def test_a_treedef_cannot_be_changed_and_can_be_watched():
    treedef = tree.structure([1])
    with pytest.raises(AttributeError):
        treedef.kind = "tuple"
    gone = weakref.ref(treedef)
    child = treedef.children[0]
    del treedef
    assert gone() is not None  # the child lies in it
    del child
    assert gone() is None


@pytest.mark.parametrize(
    ("kind", "metadata", "children"),
    [
        ("nonsense", None, 0),
        ("leaf", None, 1),
        ("leaf", 3, 0),
        ("none", None, 1),
        ("list", 3, 0),
        ("dict", None, 0),
        ("dict", ["a"], 1),
        ("dict", ("a", "b"), 1),
        ("ordereddict", ("a",), 0),
        ("defaultdict", ("a",), 1),
        ("defaultdict", (int, ["a"]), 1),
        ("namedtuple", int, 1),
        ("namedtuple", None, 0),
        ("magic", Magic, 0),
        ("magic", (3, None), 0),
        ("attrs", 3, 0),
        ("dataclass", (Data, 3), 1),
    ],
)
def test_treedefs_of_nonsense_are_refused(kind, metadata, children):
    leaf = tree.structure(1)
    with pytest.raises(ValueError, match="PyTreeDef"):
        tree.PyTreeDef(kind, metadata, [leaf] * children)
    with pytest.raises(ValueError):
        tree._from_nodes(((kind, children, metadata, None), *(("leaf", 0, None, None),) * children))


@pytest.mark.parametrize("arities", [(), (1,), (0, 0), (2, 0), (-1,), (1, 0, 0), (10**18,)])
def test_rows_that_make_no_tree_are_refused(arities):
    with pytest.raises(ValueError):
        tree._from_nodes(tuple(("list" if n else "leaf", n, None, None) for n in arities))


def test_a_registered_treedef_can_be_made_with_a_function_that_restores():
    leaf = tree.structure(1)
    treedef = tree.PyTreeDef("registered", set, (leaf, leaf), restore=set)
    assert treedef.unflatten([1, 2]) == {1, 2} and repr(treedef) == f"PyTreeDef(registered[{set!r}](*, *))"
    assert pickle.loads(pickle.dumps(treedef)).unflatten([1, 2]) == {1, 2}
    assert treedef == tree.PyTreeDef("registered", set, (leaf, leaf))
    with pytest.raises(ValueError, match="restore"):
        tree.PyTreeDef("registered", set, (leaf, leaf)).unflatten([1, 2])


# --- depth

DEEP = 100_000


def deep(levels, make=lambda x: [x]):
    nest = 1
    for _ in range(levels):
        nest = make(nest)
    return nest


MAKERS = {
    "list": lambda x: [x],
    "tuple": lambda x: (x,),
    "dict": lambda x: {"a": x},
    "OrderedDict": lambda x: collections.OrderedDict(a=x),
    "namedtuple": lambda x: Point(0, x),
    "magic": lambda x: Magic(0, x),
    "dataclass": lambda x: Data(x),
}


@pytest.mark.parametrize("maker", ["list", "tuple", "dict", "namedtuple"])
def test_a_nest_that_is_too_deep_is_an_error_that_names_the_tree(maker):
    nest = deep(DEEP, MAKERS[maker])
    for call in (
        tree.flatten,
        tree.leaves,
        tree.structure,
        tree.leaves_with_path,
        tree.all,
        functools.partial(tree.map, abs),
        functools.partial(tree.reduce, max),
        tree.unbatch,
        lambda x: tree.batch([x, x]),
    ):
        with pytest.raises(RecursionError, match="anytensor.tree"):
            call(nest)
    assert tree.leaves([1, 2]) == [1, 2]


@pytest.mark.parametrize("maker", MAKERS)
def test_a_nest_of_hundreds_of_levels_is_walked(maker):
    nest = deep(300, MAKERS[maker])
    leaves, treedef = tree.flatten(nest)
    assert max(len(path) for path, _ in tree.leaves_with_path(nest)) == 300
    again = tree.unflatten(treedef, leaves)
    assert tree.structure(again) == treedef and hash(treedef) == hash(tree.structure(again))
    assert pickle.loads(pickle.dumps(treedef)) == treedef and repr(treedef).count("*") == len(leaves)
    assert tree.leaves(tree.map(lambda x, y: y, nest, again)) == leaves


def test_depth_is_bounded_whatever_the_recursion_limit():
    python("""
        import sys
        from anytensor import tree
        sys.setrecursionlimit(10**7)
        nest = 1
        for _ in range(100_000):
            nest = [nest]
        for call in (tree.flatten, lambda x: tree.map(abs, x, x), tree.leaves_with_path):
            try:
                call(nest)
            except RecursionError as error:
                assert "anytensor.tree" in str(error), error
            else:
                raise AssertionError("no error")
        ok = tree.leaves([1, [2]])
        def deep(levels):
            nest = 1
            for _ in range(levels):
                nest = [nest]
            return nest
        treedef = tree.structure(deep(1000))
        assert treedef == tree.structure(deep(1000)) and treedef.unflatten([1]) == deep(1000)
        assert repr(treedef).count("[") == 1000 and hash(treedef)
        try:
            tree.structure(deep(1001))
        except RecursionError:
            pass
        else:
            raise AssertionError("no error")
    """)


def test_treedefs_in_treedefs_end_in_an_error_too():
    leaf = treedef = tree.structure(1)
    with pytest.raises(RecursionError, match="anytensor.tree"):
        for _ in range(DEEP):
            treedef = tree.PyTreeDef("list", None, [treedef])
    assert treedef.unflatten([1])  # the deepest that there is
    with pytest.raises(RecursionError, match="anytensor.tree"):
        tree._from_nodes((*(("list", 1, None, None),) * DEEP, ("leaf", 0, None, None)))
    chains = []
    for _ in range(2):  # one is the metadata of the next
        treedef = leaf
        for _ in range(DEEP):
            treedef = tree.PyTreeDef("magic", (int, treedef), ())
        chains.append(treedef)
    for call in (hash, repr, pickle.dumps, chains[1].__eq__, copy.deepcopy):
        with pytest.raises(RecursionError):
            call(chains[0])
    del treedef, chains  # one ends the next, without recursion


def test_deep_trees_in_a_thread_with_a_small_stack():
    python("""
        import threading
        from anytensor import tree
        nest = 1
        for _ in range(100_000):
            nest = [nest]
        def run():
            for call in (tree.flatten, lambda x: tree.map(abs, x), tree.structure):
                try:
                    call(nest)
                except RecursionError as error:
                    seen.append(error)
            fine = nest
            for _ in range(99_200):
                fine = fine[0]
            treedef = tree.structure(fine)
            seen.append(treedef.unflatten([1]) == fine and repr(treedef))
        seen = []
        threading.stack_size(512 * 1024)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert len(seen) == 4, seen
    """)


# --- user code that means harm


class Answers:
    """A node whose answer is what it is given."""

    def __init__(self, answer):
        self.answer = answer

    def __tree_flatten__(self):
        return self.answer() if callable(self.answer) else self.answer

    @classmethod
    def __tree_unflatten__(cls, aux, children):
        return cls((children, aux))


def raises(error):
    def run(*args, **kwargs):
        raise error

    return run


@pytest.mark.parametrize("answer", [None, 3, (), (1,), ([], 1, 2, 3), "ab", (3, None), (None, None), {1: 2}])
def test_answers_that_are_no_children_and_aux_are_refused(answer):
    with pytest.raises((TypeError, ValueError)) as caught:
        tree.leaves([Answers(answer)])
    assert "__tree_flatten__" in str(caught.value)


def spiteful(*bases):
    """An object that cannot be compared."""
    return type("Spiteful", bases, {"__lt__": raises(KeyError("mine")), "__hash__": object.__hash__})()


@pytest.mark.parametrize(
    "nest",
    [
        lambda: Answers(raises(KeyError("mine"))),
        lambda: Answers((iter(raises(KeyError("mine")), None), None)),
        lambda: {spiteful(): 1, spiteful(): 2},
        lambda: {spiteful(str): 1, spiteful(str): 2},
    ],
)
def test_what_user_code_raises_comes_through(nest):
    for call in (tree.flatten, tree.leaves_with_path, functools.partial(tree.map, abs), tree.unbatch):
        with pytest.raises(KeyError, match="mine"):
            call([nest()])


@pytest.mark.parametrize("where", ["f", "is_leaf", "unflatten", "leaves", "aux"])
def test_exceptions_of_every_callback_come_through(where):
    mine = KeyError("mine")
    calls = {
        "f": lambda: tree.map(raises(mine), [1]),
        "is_leaf": lambda: tree.map(abs, [1], is_leaf=raises(mine)),
        "unflatten": lambda: tree.map(abs, type("M", (Magic,), {"__tree_unflatten__": raises(mine)})(1, 2)),
        "leaves": lambda: tree.unflatten(tree.structure([1, 2]), iter(raises(mine), None)),
        "aux": lambda: tree.map(
            max, *[Magic(1, 2, type("A", (), {"__eq__": raises(mine)})()) for _ in range(2)]
        ),
    }
    with pytest.raises(KeyError, match="mine"):
        calls[where]()


def test_a_container_that_changes_while_it_is_walked_is_an_error():
    for nest in ([[0], 1, 2], {"a": [0], "b": 1}, collections.OrderedDict(a=[0], b=1)):

        def clears(x, nest=nest):
            if x == [0]:
                nest.clear()
            return False

        with pytest.raises(RuntimeError, match="changed while it was walked"):
            tree.leaves(nest, is_leaf=clears)
    swapped = {"a": [0], "b": 1}

    def swaps(x):
        if x == [0]:
            del swapped["b"]
            swapped["c"] = 2
        return False

    with pytest.raises(RuntimeError, match="changed while it was walked"):
        tree.leaves(swapped, is_leaf=swaps)


def test_a_key_that_empties_the_dict_while_it_is_compared():
    class Key:
        def __lt__(self, other):
            nest.clear()
            return True

        def __hash__(self):
            return 1

    nest = {Key(): 1, Key(): 2}
    with pytest.raises(RuntimeError, match="changed"):
        tree.leaves(nest)


def test_a_node_that_holds_itself_is_too_deep():
    nest = []
    nest.append(nest)
    with pytest.raises(RecursionError, match="anytensor.tree"):
        tree.flatten(nest)
    nest.clear()


def test_leaves_that_change_the_list_they_come_in():
    leaves = [1, 2, 3]

    class Clears(Magic):
        @classmethod
        def __tree_unflatten__(cls, aux, children):
            leaves.clear()
            return children

    treedef = tree.structure([Clears(1, 2), 3])
    assert tree.unflatten(treedef, leaves) == [(1, 2), 3]


def test_hooks_that_walk_trees_themselves_at_any_depth():
    class Again(Equal):
        def __init__(self, level):
            self.level = level

        def __tree_flatten__(self):
            if self.level == 0:
                return (), None
            inside = deep(200, lambda x: [x, Again(self.level - 1)] if x == 1 else [x])
            return tree.leaves(inside), None

        @classmethod
        def __tree_unflatten__(cls, aux, children):
            return cls(0)

    assert tree.leaves(Again(3)) == [1, 1, 1]
    with pytest.raises(RecursionError):
        tree.leaves(Again(10_000))


def test_a_namedtuple_that_lies_about_its_fields():
    class Liar(Point):
        _fields = ("one", "two", "three")

    with pytest.raises(ValueError, match="_fields"):
        tree.leaves(Liar(1, 2))


def test_attrs_that_lie():
    class Liar:
        __attrs_attrs__ = (Field("x"),)

    with pytest.raises(AttributeError):
        tree.leaves(Liar())
    for nonsense in (3, (3,), ("x",)):
        Liar.__attrs_attrs__ = nonsense
        with pytest.raises((TypeError, AttributeError)):
            tree.leaves(Liar())


# --- memory


def left_behind(call, count):
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(count):
        try:
            call()
        except Exception:
            pass
    gc.collect()
    return sys.getallocatedblocks() - before


BIG = {"z": [1, None, Point(2, (3,)), {k: k for k in range(50)}], "y": Magic(4, Data([5])), "x": Attrs(1, 2)}
CALLS = {
    "flatten": lambda: tree.flatten(BIG),
    "flatten and unflatten": lambda: tree.unflatten(*tree.flatten(BIG)[::-1]),
    "map": lambda: tree.map(lambda x, y: (x, y), BIG, BIG),
    "map that fails": lambda: tree.map(lambda x: 1 / (x - 4), BIG),
    "map of different trees": lambda: tree.map(max, BIG, {**BIG, "x": 3}),
    "map with path": lambda: tree.map_with_path(lambda p, x: p, BIG),
    "paths": lambda: tree.flatten_with_path(BIG),
    "reduce": lambda: tree.reduce(max, BIG),
    "reduce that fails": lambda: tree.reduce(lambda x, y: x / y, [1, 0, BIG]),
    "all": lambda: tree.all(BIG),
    "is_leaf that fails": lambda: tree.leaves(BIG, is_leaf=lambda x: 1 / (x != 3)),
    "bad keys": lambda: tree.leaves([BIG, {1: 2, "a": 3}]),
    "bad answer": lambda: tree.leaves([BIG, Answers(3)]),
    "bad argument": lambda: tree.flatten(BIG, nonsense=3),
    "too deep": lambda: tree.flatten(DEEP_NEST),
    "too few": lambda: tree.unflatten(tree.structure(BIG), [1]),
    "too many": lambda: tree.unflatten(tree.structure([1]), range(9)),
    "rebuild that fails": lambda: tree.unflatten(tree.structure([BIG, {"a": Answers(([1], 2))}]), range(99)),
    "children": lambda: tree.structure(BIG).children[1].children,
    "print": lambda: repr(tree.structure(BIG)),
    "hash": lambda: hash(tree.structure(BIG)),
    "compare": lambda: tree.structure(BIG) == tree.structure({**BIG, "z": 3}),
    "pickle": lambda: pickle.loads(pickle.dumps(tree.structure(BIG))),
    "make": lambda: tree.PyTreeDef("list", None, [tree.structure(BIG)] * 3),
    "make that fails": lambda: tree.PyTreeDef("dict", ("a",), [tree.structure(BIG)] * 3),
    "nonsense rows": lambda: tree._from_nodes((("list", 3, None, None), ("leaf", 0, None, None))),
    "batch": lambda: tree.batch([BATCH, BATCH]),
    "batch that fails": lambda: tree.batch([BATCH, {"a": 1}]),
    "unbatch": lambda: tree.unbatch(BATCH),
}
DEEP_NEST = deep(5000)
BATCH = {"a": np.ones((2, 3)), "b": [np.ones(2), None]}


@pytest.mark.parametrize("name", CALLS)
def test_calls_leave_nothing_behind(name):
    left_behind(CALLS[name], 50)
    for _ in range(6):
        left = left_behind(CALLS[name], 200)
        if left <= 20:
            return
    raise AssertionError(f"{left} blocks")


def test_references_of_leaves_and_keys_are_kept_right():
    leaf, key, aux = object(), "a key that is not interned", object()
    nest = [{key: leaf}, Magic(leaf, leaf, aux), (leaf,)]
    before = [sys.getrefcount(x) for x in (leaf, key, aux)]
    for _ in range(50):
        leaves, treedef = tree.flatten(nest)
        tree.unflatten(treedef, leaves)
        tree.map(lambda x, y: x, nest, nest)
        tree.leaves_with_path(nest)
        pickle.dumps(tree.structure({"a": 1}))
    del leaves, treedef
    assert [sys.getrefcount(x) for x in (leaf, key, aux)] == before


def test_a_cycle_through_a_treedef_is_collected():
    class Aux:
        pass

    aux = Aux()
    aux.treedef = tree.structure([Magic(1, 2, aux)])
    aux.child = aux.treedef.children[0]
    gone = weakref.ref(aux)
    assert gc.is_tracked(aux.treedef)
    del aux
    gc.collect()
    assert gone() is None


def test_threads_walk_the_same_tree():
    nest = [{f"k{i}": (i, None, Point(i, Magic(i, i)))} for i in range(200)]
    leaves, treedef = tree.flatten(nest)
    errors = []

    def run():
        for _ in range(30):
            got, its = tree.flatten(nest)
            if got != leaves or its != treedef or tree.unflatten(its, got) != nest:
                errors.append(got)

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(switch)
    assert not errors


# --- arrays


def nest_of(fw, k=0):
    return {
        "w": fw.array([[1.0 + k, 2.0], [3.0, 4.0]], "float32"),
        "b": [fw.array([5 + k, 6], "int32"), None],
    }


def test_arrays_of_every_framework_are_leaves(fw):
    x = fw.array([1.0], "float32")
    assert len(tree.leaves({"a": x, "b": (x, [x])})) == 3
    assert tree.leaves([x])[0] is x


def test_batch_concatenates_and_unbatch_splits(fw):
    whole = tree.batch([nest_of(fw), nest_of(fw, 10)])
    assert fw.numpy(whole["w"]).tolist() == [[1, 2], [3, 4], [11, 2], [3, 4]]
    assert fw.numpy(whole["b"][0]).tolist() == [5, 6, 15, 6] and whole["b"][1] is None
    assert fw.is_array(whole["w"])
    parts = tree.unbatch(whole)
    assert len(parts) == 4 and parts[2]["b"][1] is None
    assert fw.numpy(parts[2]["w"]).tolist() == [[11, 2]] and fw.numpy(parts[2]["b"][0]).tolist() == [15]
    again = tree.batch(parts)
    assert fw.numpy(again["w"]).tolist() == fw.numpy(whole["w"]).tolist()


def test_the_axis_may_be_another_one(fw):
    x = fw.array([[1.0, 2.0, 3.0]], "float32")
    for axis in (1, -1):
        assert [fw.numpy(p["x"]).tolist() for p in tree.unbatch({"x": x}, axis)] == [
            [[1.0]],
            [[2.0]],
            [[3.0]],
        ]
        assert fw.numpy(tree.batch([[x], [x]], axis=axis)[0]).tolist() == [[1, 2, 3, 1, 2, 3]]


def test_leaves_of_unequal_size_are_refused(fw):
    with pytest.raises(ValueError, match="different sizes.*2, 3"):
        tree.unbatch([fw.array([1, 2], "int32"), fw.array([1, 2, 3], "int32")])
    with pytest.raises(IndexError):
        tree.unbatch(fw.array(1, "int32"))
    with pytest.raises(IndexError):
        tree.unbatch({"x": fw.array([1], "int32")}, axis=1)


def test_batches_of_different_structures_are_refused(fw):
    x = fw.array([1.0], "float32")
    for one, other in [(x, None), ([x], (x,)), ({"a": x}, {"a": x, "b": x}), (None, x), ([x], [x, x])]:
        with pytest.raises(ValueError, match="same structure"):
            tree.batch([one, other])


def test_what_is_no_array_is_not_batched():
    for leaf in ("a string", object()):
        with pytest.raises(TypeError):
            tree.batch([[leaf], [leaf]])
        with pytest.raises(TypeError):
            tree.unbatch([leaf])
    with pytest.raises(ValueError, match="at least one"):
        tree.batch([])
    with pytest.raises(ValueError, match="Cannot unbatch None"):
        tree.unbatch(None)
    with pytest.raises((ValueError, IndexError)):
        tree.batch([np.float64(1), np.float64(2)])


def test_batches_of_nothing():
    assert tree.batch([None, None]) is None and tree.batch([[], []]) == [] and tree.batch(iter([{}])) == {}
    assert tree.unbatch({}) == tree.unbatch({"a": None}) == tree.unbatch(np.zeros((0, 2))) == []


class Packed:
    """Joins and splits itself; notes how it was asked."""

    def __init__(self, values, note=None):
        self.values, self.note = list(values), note

    @classmethod
    def __tree_batch__(cls, objects, axis):
        return cls([v for one in objects for v in getattr(one, "values", [one])], axis)

    def __tree_unbatch__(self, axis):
        return iter([Packed([v], axis) for v in self.values])

    def __tree_flatten__(self):
        raise AssertionError("children are not walked")

    __tree_unflatten__ = None


class NoAxis(Packed):
    @classmethod
    def __tree_batch__(cls, objects):
        return super().__tree_batch__(objects, "none")

    def __tree_unbatch__(self):
        return super().__tree_unbatch__("none")


class AnyKeyword(Packed):
    @classmethod
    def __tree_batch__(cls, objects, **kwargs):
        return super().__tree_batch__(objects, **kwargs)

    def __tree_unbatch__(self, **kwargs):
        return super().__tree_unbatch__(**kwargs)


class Decorated(Packed):
    @classmethod
    @functools.wraps(Packed.__tree_batch__.__func__)
    def __tree_batch__(*args, **kwargs):
        return Packed.__tree_batch__.__func__(*args, **kwargs)

    __tree_unbatch__ = functools.partialmethod(Packed.__tree_unbatch__)


@pytest.mark.parametrize("cls", [Packed, NoAxis, AnyKeyword, Decorated])
def test_a_class_with_hooks_joins_and_splits_itself(cls):
    note = "none" if cls is NoAxis else 1
    whole = tree.batch([{"p": cls([1])}, {"p": cls([2, 3])}], axis=1)["p"]
    assert (type(whole), whole.values, whole.note) == (cls, [1, 2, 3], note)
    parts = tree.unbatch([whole], axis=1)
    assert [(p[0].values, p[0].note) for p in parts] == [([1], note), ([2], note), ([3], note)]
    assert tree.batch([cls([1])]).values == [1]


def test_the_first_one_s_hook_takes_whatever_comes():
    assert tree.batch([[Packed([1])], [None], [[2]]])[0].values == [1, None, [2]]
    with pytest.raises(ValueError, match="same structure"):
        tree.batch([None, Packed([1])])


def test_parts_of_hooks_and_arrays_must_be_as_many():
    with pytest.raises(ValueError, match="different sizes"):
        tree.unbatch([np.ones(2), Packed([1, 2, 3])])


def test_batches_keep_gradients(torch):
    x = torch.ones(2, requires_grad=True)
    whole = tree.batch([{"x": x}, {"x": x}])["x"]
    sum(part * k for k, part in enumerate(tree.unbatch(whole))).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
