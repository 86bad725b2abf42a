"""Trees: nests of dicts, lists, tuples and other containers with arrays, or anything else, as leaves.

    leaves, treedef = tree.flatten({"w": w, "b": [b0, b1]})
    doubled = tree.map(lambda x: 2 * x, params)
    one = tree.batch([graph, graph])         # leaves are concatenated

The walking is done in C. docs/tree.md says what a node is and how a class becomes one.
"""

from typing import Any, NamedTuple

from . import _core
from ._hook import no_type_check

__all__ = [
    "DictKey",
    "GetAttrKey",
    "PyTreeDef",
    "SequenceKey",
    "all",
    "batch",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "register_dataclass",
    "structure",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_map",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "unbatch",
    "unflatten",
]


class SequenceKey(NamedTuple):
    """The way into a list, a tuple or a node of a class: the number of the child."""

    idx: int


class DictKey(NamedTuple):
    """The way into a dict."""

    key: Any


class GetAttrKey(NamedTuple):
    """The way into a namedtuple, an attrs class or a dataclass: the name of the field."""

    name: str


PyTreeDef = _core._tree["PyTreeDef"]
flatten = tree_flatten = _core._tree["flatten"]
unflatten = tree_unflatten = _core._tree["unflatten"]
leaves = tree_leaves = _core._tree["leaves"]
structure = tree_structure = _core._tree["structure"]
map = tree_map = _core._tree["map"]
flatten_with_path = tree_flatten_with_path = _core._tree["flatten_with_path"]
leaves_with_path = _core._tree["leaves_with_path"]
map_with_path = tree_map_with_path = _core._tree["map_with_path"]
all = _core._tree["all"]
reduce = _core._tree["reduce"]
_columns = _core._tree["_columns"]
_whole = _core._tree["_whole"]
_from_nodes = _core._tree["_from_nodes"]  # pickles of treedefs name it

_core._tree["_set_keys"]((SequenceKey, DictKey, GetAttrKey))


def register_dataclass(cls=None, /, *, meta=()):
    """Makes a dataclass a node: its fields are children, those named in meta are compared instead.

        @tree.register_dataclass
        @dataclass
        class Batch: ...

    The class is rebuilt by its own call, with keywords; fields with init=False are set afterwards. A subclass has to be
    registered by itself.
    Errors    TypeError: cls is no dataclass, or meta names what is no field of it.
    """
    if cls is None:
        return lambda cls: register_dataclass(cls, meta=meta)
    from dataclasses import fields

    found = {field.name: field.name if field.init else None for field in fields(cls)}
    if isinstance(meta, str) or not set(meta) <= set(found):
        raise TypeError(f"register_dataclass: meta must be names of fields of {cls.__name__}, not {meta!r}")
    names = (*(name for name in found if name not in meta), *meta)
    cls.__tree_fields__ = (cls, names, tuple(found[name] for name in names), len(found) - len(meta))
    return cls


@no_type_check
def _takes_axis(hook):
    """Whether a hook can be given axis=; one whose signature cannot be seen is taken to."""
    code = getattr(getattr(hook, "__func__", hook), "__code__", None)
    if code is not None and not hasattr(hook, "__wrapped__"):  # what torch.compile can see, too
        named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        return "axis" in named or bool(code.co_flags & 0x08)  # inspect.CO_VARKEYWORDS
    import inspect

    try:
        parameters = inspect.signature(hook).parameters
    except (TypeError, ValueError):
        return True
    return "axis" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


@no_type_check
def _by_hook(hook, *args, axis):
    return hook(*args, axis=axis) if _takes_axis(hook) else hook(*args)


@no_type_check
def _join(column, axis):
    hook = getattr(type(column[0]), "__tree_batch__", None)
    return _core.concatenate(column, axis=axis) if hook is None else _by_hook(hook, column, axis=axis)


@no_type_check
def batch(trees, axis=0):
    """One tree of several of the same structure: arrays at the same place are concatenated along the axis.

    A class with ``__tree_batch__(cls, objects, axis)`` joins its objects itself. None beside None stays None.
    Errors    ValueError: no trees, or trees of different structures; TypeError: leaves that are no arrays.
    """
    trees = tuple(trees)
    if not trees:
        raise ValueError("batch() requires at least one structure")
    columns, treedef = _columns(trees)
    return unflatten(treedef, [_join(column, axis) for column in columns])


@no_type_check
def _size(leaf, axis):
    shape = _core.shape(leaf)
    if not -len(shape) <= axis < len(shape):
        raise IndexError(f"unbatch(): axis {axis} of a leaf of shape {tuple(shape)}")
    if not isinstance(shape[axis], int):
        raise ValueError(f"unbatch(): the size of axis {axis} must be known, a compiler traces this one")
    return shape[axis]


@no_type_check
def unbatch(structure, axis=0):
    """The list of trees that a tree holds along an axis, each with leaves of size 1 there.

    A class with ``__tree_unbatch__(self, axis)`` is split by it. None stays None in each part.
    Errors    ValueError: None, or leaves of different sizes; IndexError: an axis that a leaf does not have.
    """
    if structure is None:
        raise ValueError("Cannot unbatch None")
    leaves, treedef = _whole(structure)
    hooks = [getattr(leaf, "__tree_unbatch__", None) for leaf in leaves]
    parts = [None if hook is None else list(_by_hook(hook, axis=axis)) for hook in hooks]
    sizes = [_size(leaf, axis) if own is None else len(own) for leaf, own in zip(leaves, parts, strict=True)]
    if len(set(sizes)) > 1:
        raise ValueError(f"unbatch(): leaves of different sizes along axis {axis}: {sizes}")
    columns = [
        _core.split(leaf, list(range(1, size)), axis) if own is None else own
        for leaf, own, size in zip(leaves, parts, sizes, strict=True)
        if size
    ]
    return [unflatten(treedef, row) for row in zip(*columns, strict=True)]
