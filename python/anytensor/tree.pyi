from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar, final, overload

_T = TypeVar("_T")
_Class = TypeVar("_Class", bound=type)
_IsLeaf: TypeAlias = Callable[[Any], object] | None

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
    idx: int

class DictKey(NamedTuple):
    key: Any

class GetAttrKey(NamedTuple):
    name: str

_Path: TypeAlias = tuple[SequenceKey | DictKey | GetAttrKey, ...]

@final
class PyTreeDef:
    def __new__(
        cls,
        kind: str,
        metadata: Any,
        children: Iterable[PyTreeDef],
        restore: Callable[[list[Any]], Any] | None = None,
    ) -> PyTreeDef: ...
    @property
    def kind(self) -> str: ...
    @property
    def metadata(self) -> Any: ...
    @property
    def children(self) -> tuple[PyTreeDef, ...]: ...
    @property
    def num_leaves(self) -> int: ...
    def unflatten(self, leaves: Iterable[Any], /) -> Any: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: Any, /) -> bool: ...
    def __le__(self, other: Any, /) -> bool: ...
    def __gt__(self, other: Any, /) -> bool: ...
    def __ge__(self, other: Any, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

def flatten(tree: Any, is_leaf: _IsLeaf = None) -> tuple[list[Any], PyTreeDef]: ...
def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any: ...
def leaves(tree: Any, is_leaf: _IsLeaf = None) -> list[Any]: ...
def structure(tree: Any, is_leaf: _IsLeaf = None) -> PyTreeDef: ...
def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: _IsLeaf = None) -> Any: ...
def flatten_with_path(tree: Any, is_leaf: _IsLeaf = None) -> tuple[list[tuple[_Path, Any]], PyTreeDef]: ...
def leaves_with_path(tree: Any, is_leaf: _IsLeaf = None) -> list[tuple[_Path, Any]]: ...
def map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: _IsLeaf = None) -> Any: ...
def all(tree: Any, *, is_leaf: _IsLeaf = None) -> bool: ...
def reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = ..., is_leaf: _IsLeaf = None
) -> Any: ...
def batch(trees: Iterable[_T], axis: int = 0) -> _T: ...
def unbatch(structure: _T, axis: int = 0) -> list[_T]: ...
@overload
def register_dataclass(cls: _Class, /, *, meta: Sequence[str] = ()) -> _Class: ...
@overload
def register_dataclass(cls: None = None, /, *, meta: Sequence[str] = ()) -> Callable[[_Class], _Class]: ...

tree_flatten = flatten
tree_unflatten = unflatten
tree_leaves = leaves
tree_structure = structure
tree_map = map
tree_flatten_with_path = flatten_with_path
tree_map_with_path = map_with_path
