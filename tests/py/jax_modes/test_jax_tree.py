"""anytensor.tree beside jax.tree: the same leaves, trees and paths of random nests; types registered with jax.

Accuses src/python/pytree*.c.
"""

import collections
import pickle
import random

import jax
import pytest
from tree_nests import Equal, Point

import anytensor as at
from anytensor import tree


def random_nest(rng, depth):
    """A nest of builtins, with keys of one kind in each dict."""
    kind = rng.randrange(9 if depth else 2)
    if kind < 2:
        return rng.choice([1, 2.5, "a", None])
    count = rng.randrange(4)
    below = [random_nest(rng, depth - 1) for _ in range(count)]
    keys = rng.sample(
        rng.choice([["b", "a", "c", "z"], [3, 1, 2, 10], [(1, "a"), (0, "b"), (1,), ()]]), count
    )
    pairs = list(zip(keys, below, strict=True))
    makers = [
        list,
        tuple,
        lambda _: dict(pairs),
        lambda _: collections.OrderedDict(pairs),
        lambda _: collections.defaultdict(int, pairs),
        lambda _: Point(below, 1),
        list,
    ]
    return makers[kind - 2](below)


@pytest.mark.parametrize("seed", range(20))
def test_random_nests_are_walked_as_jax_walks_them(seed):
    rng = random.Random(seed)
    for _ in range(50):
        nest = random_nest(rng, 4)
        is_leaf = rng.choice([None, lambda x: x is None, lambda x: isinstance(x, tuple)])
        leaves, treedef = tree.flatten(nest, is_leaf)
        theirs, their_def = jax.tree.flatten(nest, is_leaf)
        assert leaves == theirs and treedef.num_leaves == their_def.num_leaves
        assert treedef.unflatten(range(len(leaves))) == their_def.unflatten(range(len(leaves)))
        assert tree.map(str, nest, is_leaf=is_leaf) == jax.tree.map(str, nest, is_leaf=is_leaf)
        ours = tree.leaves_with_path(nest, is_leaf) if hasattr(jax.tree, "leaves_with_path") else []
        # (older JAX walks dictionaries with paths in another order than without)
        assert not ours or [tuple(map(repr, path)) for path, _ in ours] == [
            tuple(map(in_our_words, path)) for path, _ in jax.tree_util.tree_leaves_with_path(nest, is_leaf)
        ]
        other = random_nest(rng, 2)
        same = jax.tree.structure(other) == jax.tree.structure(nest)
        assert (tree.structure(other) == tree.structure(nest)) == same


def in_our_words(key):
    return f"{type(key).__name__}({', '.join(f'{name}={getattr(key, name)!r}' for name in fields(key))})"


def fields(key):
    return {"SequenceKey": ["idx"], "DictKey": ["key"], "GetAttrKey": ["name"]}[type(key).__name__]


@jax.tree_util.register_pytree_node_class
class Mine(Equal):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def tree_flatten(self):
        return (self.x,), self.y

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children, aux)


def test_types_registered_with_jax_are_nodes_and_compare_by_their_aux():
    leaves, treedef = tree.flatten({"m": Mine([1, None, Mine(2, "in")], "out")})
    assert leaves == [1, 2]
    assert treedef.unflatten([3, 4]) == {"m": Mine([3, None, Mine(4, "in")], "out")}
    assert tree.structure(Mine(1, "a")) != tree.structure(Mine(1, "b"))
    assert hash(tree.structure(Mine(1, "a"))) == hash(tree.structure(Mine(2, "a")))
    again = pickle.loads(pickle.dumps(treedef))
    assert again == treedef and again.unflatten([1, 2]) == treedef.unflatten([1, 2])


def test_an_object_that_is_all_that_it_holds_is_a_leaf():
    mine = Mine(None, 0)
    mine.x = mine
    assert tree.leaves(mine)[0] is mine
    mine.x = [mine]
    with pytest.raises(RecursionError):
        tree.leaves(mine)


def test_batches_are_traced_and_have_gradients():
    x = jax.numpy.arange(6.0).reshape(3, 2)

    def loss(nest):
        parts = tree.unbatch(tree.batch([nest, nest]))
        return sum(
            k * tree.reduce(lambda a, b: a + b, tree.map(at.sum, part)) for k, part in enumerate(parts)
        )

    nest = {"a": x, "b": [x, None]}
    assert jax.jit(loss)(nest) == loss(nest)
    assert tree.map(lambda g: g[:, 0].tolist(), jax.jit(jax.grad(loss))(nest)) == {
        "a": [3.0, 5.0, 7.0],
        "b": [[3.0, 5.0, 7.0], None],
    }
