"""anytensor.tree in Python, for torch.compile alone: Dynamo inlines these where a compiled function calls the builtins.

The same rules as in src/python/pytree*.c, held to them by one list of tests. A structure is a TreeDef of this file and
lives inside the compiled function; of the registries, only torch's is asked.
"""

import sys
from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce as _fold

from ._hook import no_type_check
from .tree import DictKey, GetAttrKey, SequenceKey

_UNSET = object()
_DICTS = {dict: "dict", OrderedDict: "ordereddict", defaultdict: "defaultdict"}


class TreeDef:
    """What PyTreeDef is outside."""

    @no_type_check
    def __init__(self, kind, metadata, children):
        self.kind, self.metadata, self.children = kind, metadata, children

    @property
    @no_type_check
    def num_leaves(self):
        return sum([child.num_leaves for child in self.children]) if self.kind != "leaf" else 1

    @no_type_check
    def __eq__(self, other):
        return (
            isinstance(other, TreeDef)
            and self.kind == other.kind
            and self.metadata == other.metadata
            and len(self.children) == len(other.children)
            and not [1 for mine, its in zip(self.children, other.children, strict=True) if mine != its]
        )

    __hash__ = None

    @no_type_check
    def unflatten(self, leaves):
        return unflatten(self, leaves)


@no_type_check
def _sorted(keys):
    try:
        return sorted(keys)
    except TypeError as error:
        raise TypeError(
            f"tree only supports dicts with sortable keys. These cannot be ordered: {list(keys)}"
        ) from error


@no_type_check
def _fields(cls):
    """Names, keywords and the number of children, as __tree_fields__ has them."""
    if not hasattr(cls, "__attrs_attrs__"):
        return cls.__tree_fields__[1:]
    fields = cls.__attrs_attrs__
    keywords = [(getattr(f, "alias", None) or f.name) if getattr(f, "init", True) else None for f in fields]
    return tuple([f.name for f in fields]), tuple(keywords), len(fields)


@no_type_check
def _is_namedtuple(cls):
    names = getattr(cls, "_fields", None)
    return (
        issubclass(cls, tuple)
        and isinstance(names, tuple)
        and not [1 for name in names if not isinstance(name, str)]
    )


@no_type_check
def _torch_node(cls):
    torch = sys.modules.get("torch.utils._pytree")
    return torch.SUPPORTED_NODES.get(cls) if torch is not None else None


@no_type_check
def _is_array(x):
    return hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, (Mapping, Sequence))


@no_type_check
def _open_dict(x, cls):
    keys = tuple(x.keys()) if cls is OrderedDict else tuple(_sorted(x.keys()))
    meta = (x.default_factory, keys) if cls is defaultdict else keys
    return _DICTS[cls], meta, [DictKey(key) for key in keys], [x[key] for key in keys]


@no_type_check
def _open_fields(x, cls, kind):
    names, _, count = _fields(cls)
    rest = tuple([getattr(x, name) for name in names[count:]])
    names = names[:count]
    keys, children = [GetAttrKey(name) for name in names], [getattr(x, name) for name in names]
    return kind, cls if kind == "attrs" else (cls, rest), keys, children


@no_type_check
def _numbered(kind, meta, children):
    return kind, meta, [SequenceKey(i) for i in range(len(children))], list(children)


@no_type_check
def _open(x):
    """(kind, metadata, keys, children) of an object, or None for a leaf."""
    cls = type(x)
    if x is None:
        return "none", None, [], []
    if hasattr(cls, "__tree_flatten__") and hasattr(cls, "__tree_unflatten__"):
        children, aux = x.__tree_flatten__()[:2]  # optree's have a third item
        return _numbered("magic", (cls, aux), tuple(children))
    if cls in _DICTS:
        return _open_dict(x, cls)
    if _is_namedtuple(cls):
        return "namedtuple", cls, [GetAttrKey(name) for name in cls._fields], list(x)
    if cls is list or cls is tuple:
        return _numbered("list" if cls is list else "tuple", None, x)
    if hasattr(cls, "__attrs_attrs__"):
        return _open_fields(x, cls, "attrs")
    if getattr(cls, "__tree_fields__", (None,))[0] is cls:
        return _open_fields(x, cls, "dataclass")
    if _is_array(x) or isinstance(x, (int, float, complex, str, bytes)):
        return None
    node = _torch_node(cls)
    if node is None:
        return None
    children, context = node.flatten_fn(x)
    return _numbered("registered", (cls, "torch.utils._pytree", context), children)


@no_type_check
def _rebuild(treedef, children):
    kind, meta = treedef.kind, treedef.metadata
    if kind == "none":
        return None
    if kind == "list" or kind == "tuple":
        return list(children) if kind == "list" else tuple(children)
    if kind == "dict":
        return dict(zip(meta, children, strict=True))
    if kind == "ordereddict":
        return OrderedDict(zip(meta, children, strict=True))
    if kind == "defaultdict":
        return defaultdict(meta[0], zip(meta[1], children, strict=True))
    if kind == "namedtuple":
        return meta(*children)
    if kind == "magic":
        return meta[0].__tree_unflatten__(meta[1], tuple(children))
    if kind == "registered":
        return _torch_node(meta[0]).unflatten_fn(children, meta[2])
    return (
        _rebuild_fields(meta, children)
        if kind == "attrs"
        else _rebuild_fields(meta[0], [*children, *meta[1]])
    )


@no_type_check
def _rebuild_fields(cls, values):
    names, keywords, _ = _fields(cls)
    made = cls(**{k: value for k, value in zip(keywords, values, strict=True) if k is not None})
    for name, keyword, value in zip(names, keywords, values, strict=True):
        if keyword is None:
            object.__setattr__(made, name, value)
    return made


@no_type_check
def _walk(x, is_leaf, path, into, hook=None):
    """Puts (path, leaf) pairs into a list; the TreeDef."""
    leaf = (is_leaf is not None and is_leaf(x)) or (hook is not None and hasattr(type(x), hook))
    opened = None if leaf else _open(x)
    if opened is None:
        into.append((path, x))
        return TreeDef("leaf", None, ())
    kind, meta, keys, children = opened
    below = [_walk(c, is_leaf, (*path, key), into, hook) for key, c in zip(keys, children, strict=True)]
    return TreeDef(kind, meta, tuple(below))


@no_type_check
def _build(treedef, leaves):
    """leaves is a list in reverse, which is used up."""
    if treedef.kind == "leaf":
        return leaves.pop()
    return _rebuild(treedef, [_build(child, leaves) for child in treedef.children])


@no_type_check
def flatten_with_path(tree, is_leaf=None):
    pairs = []
    treedef = _walk(tree, is_leaf, (), pairs)
    return pairs, treedef


@no_type_check
def flatten(tree, is_leaf=None):
    pairs, treedef = flatten_with_path(tree, is_leaf)
    return [leaf for _, leaf in pairs], treedef


@no_type_check
def unflatten(treedef, leaves):
    leaves = list(leaves)
    if len(leaves) != treedef.num_leaves:
        size = "few" if len(leaves) < treedef.num_leaves else "many"
        raise ValueError(f"Too {size} leaves for PyTreeDef; expected {treedef.num_leaves}, got {len(leaves)}")
    return _build(treedef, leaves[::-1])


@no_type_check
def leaves_with_path(tree, is_leaf=None):
    return flatten_with_path(tree, is_leaf)[0]


@no_type_check
def leaves(tree, is_leaf=None):
    return flatten(tree, is_leaf)[0]


@no_type_check
def structure(tree, is_leaf=None):
    return flatten(tree, is_leaf)[1]


@no_type_check
def _rest(treedef, rest, is_leaf):
    """The leaves of further trees, which must have the same structure."""
    flat = [flatten(other, is_leaf) for other in rest]
    if [1 for _, its in flat if its != treedef]:
        raise ValueError("pytree structure error: trees must have the same structure.")
    return [one for one, _ in flat]


@no_type_check
def map(f, tree, *rest, is_leaf=None):
    first, treedef = flatten(tree, is_leaf)
    columns = [first, *_rest(treedef, rest, is_leaf)]
    return unflatten(treedef, [f(*column) for column in zip(*columns, strict=True)])


@no_type_check
def map_with_path(f, tree, *rest, is_leaf=None):
    pairs, treedef = flatten_with_path(tree, is_leaf)
    columns = [[path for path, _ in pairs], [leaf for _, leaf in pairs], *_rest(treedef, rest, is_leaf)]
    return unflatten(treedef, [f(*column) for column in zip(*columns, strict=True)])


@no_type_check
def all(tree, *, is_leaf=None):
    for leaf in leaves(tree, is_leaf):
        if not leaf:
            return False
    return True


@no_type_check
def reduce(function, tree, initializer=_UNSET, is_leaf=None):
    flat = leaves(tree, is_leaf)
    if initializer is not _UNSET:
        return _fold(function, flat, initializer)
    if not flat:
        raise TypeError("reduce() of an empty tree with no initial value")
    return _fold(function, flat)


@no_type_check
def _along(treedef, x, first, into):
    """Leaves of a tree along the structure of another, whose leaves come one by one from `first`."""
    if treedef.kind == "leaf" and hasattr(type(first.pop()), "__tree_batch__"):
        into.append(x)  # the hook takes whatever comes
        return True
    opened = None if hasattr(type(x), "__tree_batch__") else _open(x)
    if opened is None:
        into.append(x)
        return treedef.kind == "leaf"
    kind, meta, _, children = opened
    if kind != treedef.kind or meta != treedef.metadata or len(children) != len(treedef.children):
        return False
    for child, object_ in zip(treedef.children, children, strict=True):
        if not _along(child, object_, first, into):
            return False
    return True


@no_type_check
def _columns(trees):
    pairs = []
    treedef = _walk(trees[0], None, (), pairs, "__tree_batch__")
    first = [leaf for _, leaf in pairs]
    columns = [first]
    for other in trees[1:]:
        columns.append([])
        if not _along(treedef, other, first[::-1], columns[-1]):
            raise ValueError("pytree structure error: trees must have the same structure.")
    return [list(column) for column in zip(*columns, strict=True)], treedef


@no_type_check
def _whole(tree):
    pairs = []
    treedef = _walk(tree, None, (), pairs, "__tree_unbatch__")
    return [leaf for _, leaf in pairs], treedef


EQUIVALENTS = {
    "flatten": flatten,
    "flatten_with_path": flatten_with_path,
    "unflatten": unflatten,
    "leaves": leaves,
    "leaves_with_path": leaves_with_path,
    "structure": structure,
    "map": map,
    "map_with_path": map_with_path,
    "all": all,
    "reduce": reduce,
    "_columns": _columns,
    "_whole": _whole,
}
