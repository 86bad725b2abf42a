"""Trees as data: kinds of nodes, their leaves, their paths, for the builtins and for what torch.compile inlines."""

import collections
import dataclasses
from typing import Any, NamedTuple

from anytensor import tree
from anytensor.tree import DictKey, GetAttrKey, SequenceKey

Point = collections.namedtuple("Point", "b a")


class SubPoint(Point):
    pass


class Typed(NamedTuple):
    x: Any
    y: Any = None


class Equal:
    """Objects that are equal if their attributes are."""

    def __eq__(self, other):
        return type(other) is type(self) and vars(self) == vars(other)

    __hash__ = None


class Magic(Equal):
    def __init__(self, x, y, aux="aux"):
        self.x, self.y, self.aux = x, y, aux

    def __tree_flatten__(self):
        return (self.x, self.y), self.aux

    @classmethod
    def __tree_unflatten__(cls, aux, children):
        assert type(children) is tuple
        return cls(*children, aux)


class Field:
    """What attrs keeps of a field, as far as trees read it."""

    def __init__(self, name, init=True, alias=None):
        self.name, self.init, self.alias = name, init, alias


class Attrs(Equal):
    __attrs_attrs__ = (Field("x"), Field("_y", alias="y"), Field("late", init=False))

    def __init__(self, x, y):
        self.x, self._y, self.late = x, y, 0


@tree.register_dataclass(meta=("tag",))
@dataclasses.dataclass(frozen=True)
class Data:
    x: Any
    y: Any = 1
    tag: str = "t"
    late: Any = dataclasses.field(init=False, default=9)


@dataclasses.dataclass
class Unregistered:
    x: int


class SubData(Data):
    pass


class MyDict(dict):
    pass


class MyList(list):
    pass


class Boxed:
    """Has a shape, and a dtype."""

    shape, dtype = (2,), "float32"


def S(*way):
    return tuple(SequenceKey(one) for one in way)


def D(*way):
    return tuple(DictKey(one) for one in way)


def A(*way):
    return tuple(GetAttrKey(one) for one in way)


# name: (tree, leaves in order, their paths)
NESTS = {
    "None": (None, [], []),
    "int": (3, [3], [()]),
    "bool": (True, [True], [()]),
    "str": ("ab", ["ab"], [()]),
    "bytes": (b"ab", [b"ab"], [()]),
    "list": ([1, [2, 3]], [1, 2, 3], [S(0), S(1, 0), S(1, 1)]),
    "tuple": ((1, (), (2,)), [1, 2], [S(0), S(2, 0)]),
    "empty": ([], [], []),
    "dict": ({"b": 1, "a": [2]}, [2, 1], [D("a") + S(0), D("b")]),
    "dict of ints": ({10: "x", 9: "y"}, ["y", "x"], [D(9), D(10)]),
    "dict of floats and ints": ({2.5: 1, 2: 0, True: 3}, [3, 0, 1], [D(True), D(2), D(2.5)]),
    "dict of tuples": (
        {("b", "r", "a"): 2, ("a", "r", "b"): 1},
        [1, 2],
        [D(("a", "r", "b")), D(("b", "r", "a"))],
    ),
    "OrderedDict": (collections.OrderedDict([("b", 1), ("a", 2)]), [1, 2], [D("b"), D("a")]),
    "defaultdict": (collections.defaultdict(list, {"b": 1, "a": 2}), [2, 1], [D("a"), D("b")]),
    "namedtuple": (Point(1, [2]), [1, 2], [A("b"), A("a") + S(0)]),
    "subclass of a namedtuple": (SubPoint(1, 2), [1, 2], [A("b"), A("a")]),
    "NamedTuple": (Typed(1), [1], [A("x")]),
    "magic": (Magic([1], 2), [1, 2], [S(0, 0), S(1)]),
    "attrs": (Attrs(1, {"k": 2}), [1, 2, 0], [A("x"), A("_y") + D("k"), A("late")]),
    "dataclass": (Data(1, [2]), [1, 2, 9], [A("x"), A("y") + S(0), A("late")]),
    "nested": (
        {"z": (1, None, {"q": Point(2, 3)}), "y": Magic(4, Data(5))},
        [4, 5, 1, 9, 1, 2, 3],
        [
            D("y") + S(0),
            D("y") + S(1) + A("x"),
            D("y") + S(1) + A("y"),
            D("y") + S(1) + A("late"),
            D("z") + S(0),
            D("z") + S(2) + D("q") + A("b"),
            D("z") + S(2) + D("q") + A("a"),
        ],
    ),
}

# Objects that are leaves, whole.
LEAVES = {
    "set": {1, 2},
    "range": range(3),
    "dict view": {"a": 1}.keys(),
    "subclass of dict": MyDict(a=1),
    "subclass of list": MyList([1]),
    "Counter": collections.Counter("ab"),
    "dataclass": Unregistered(1),
    "subclass of a registered dataclass": SubData(1),
    "object": object(),
    "class": int,
    "function": len,
    "array": Boxed(),
    "complex": 1j,
}

# name: two trees that differ in structure
DIFFERENT = {
    "list and tuple": ([1], (1,)),
    "lengths": ([1, 2], [1]),
    "leaf and list": (1, [1]),
    "leaf and None": ([1, {"k": 7}], [1, {"k": None}]),
    "None and leaf": ([1, {"k": None}], [1, {"k": 7}]),
    "None and nothing": ([None], [()]),
    "keys": ({"a": 1}, {"b": 1}),
    "more keys": ({"a": 1}, {"a": 1, "b": 2}),
    "dict and OrderedDict": ({"a": 1}, collections.OrderedDict(a=1)),
    "orders": (collections.OrderedDict(a=1, b=2), collections.OrderedDict([("b", 2), ("a", 1)])),
    "factories": (collections.defaultdict(int, a=1), collections.defaultdict(list, a=1)),
    "dict and defaultdict": ({"a": 1}, collections.defaultdict(int, a=1)),
    "namedtuple and tuple": (Point(1, 2), (1, 2)),
    "namedtuple and its subclass": (Point(1, 2), SubPoint(1, 2)),
    "aux": (Magic(1, 2), Magic(1, 2, "other")),
    "tag": (Data(1), Data(1, tag="other")),
    "below": ({"z": [1, (2, {"q": 3})]}, {"z": [1, (2, {"r": 3})]}),
}
