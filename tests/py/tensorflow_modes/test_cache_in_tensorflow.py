"""at.cache within TensorFlow's graphs (SEMANTICS 20): layers share structure inside one graph, and nothing keeps it.

Accuses src/python/backends/tensorflow_state.c (pf_trace), src/python/cache_value.c (places).
"""

import gc
import weakref

import pytest

import anytensor as at

tf = pytest.importorskip("tensorflow")
cache = at.cache


@pytest.fixture(autouse=True)
def off_before_and_after():
    cache.disable()
    yield
    cache.disable()


def two_layers(x, senders, made):
    for _ in range(2):
        kept = cache.lookup("layer", senders)
        if kept is None:
            made.append(1)
            kept = {"ids": senders, "degree": [at.segment_count(senders, 3)]}
            cache.store("layer", senders, kept)
        x = x / at.take(at.astype(kept["degree"][0], "float32"), kept["ids"])
    return x


@pytest.fixture
def x():
    return tf.range(4.0)


@pytest.fixture
def ids():
    return tf.constant([0, 0, 1, 2])


WANT = [0.0, 0.25, 2.0, 3.0]


@pytest.mark.parametrize("xla", [False, True])
def test_stacked_layers_share_structure_inside_one_graph(x, ids, xla):
    made = []
    f = tf.function(lambda x, ids: two_layers(x, ids, made), autograph=False, jit_compile=xla)
    with cache():
        assert f(x, ids).numpy().tolist() == WANT
        assert made == [1]
        assert two_layers(x, ids, made).numpy().tolist() == WANT and made == [1, 1]


def test_partition_ids_are_shared_inside_one_graph(x):
    parts = tf.constant([1, 3])

    def f(x, parts):
        ids = at.partition_ids(parts, 4)
        if "partition" in cache:
            assert at.partition_ids(parts, 4) is ids
        return at.partition_sum(x, parts, 4) + at.partition_max(x, parts, 4)

    def operations():
        graph = tf.function(f, autograph=False).get_concrete_function(x, parts).graph
        return len(graph.get_operations())

    plain = operations()
    with cache():
        shared = operations()
        assert tf.function(f, autograph=False)(x, parts).numpy().tolist() == [0.0, 9.0]
    assert shared < plain - 4


def test_graph_tensors_are_not_kept_under_an_eager_key(x):
    parts = tf.constant([1, 3])

    @tf.function(autograph=False)
    @cache
    def f(x):
        cache.store("ns", parts, [x, 1])
        cache.store("ns", parts, "fine", (1,))
        return at.partition_sum(x, parts, 4)

    assert f(x).numpy().tolist() == [0.0, 6.0]
    assert cache.lookup("ns", parts) is None and cache.lookup("ns", parts, (1,)) == "fine"
    assert at.partition_ids(parts, 4).numpy().tolist() == [0, 1, 1, 1]
    kept = at.partition_ids(parts, 4)
    assert f(x + 1).numpy().tolist() == [1.0, 9.0] and at.partition_ids(parts, 4) is kept


def test_a_branch_is_a_graph_of_its_own(x, ids):
    made = []

    @tf.function(autograph=False)
    def f(x, ids):
        return tf.cond(x[0] > -1.0, lambda: two_layers(x, ids, made), lambda: two_layers(x, ids, made) * 2.0)

    with cache():
        assert f(x, ids).numpy().tolist() == WANT


def test_nothing_keeps_a_graph_while_the_cache_stays_on(x, ids):
    graphs = []

    @cache
    def f(x, ids):
        graphs.append(weakref.ref(x.graph))
        return two_layers(x, ids, [])

    function = tf.function(f, autograph=False)
    assert function(x, ids).numpy().tolist() == WANT
    assert len(cache["layer"]) == 1  # as long as the graph lives
    del function
    gc.collect()
    assert [graph() for graph in graphs] == [None] and cache["layer"] == {}


def test_gradients_pass_through_kept_structure(x, ids):
    with cache(), tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(two_layers(x, ids, []))
    assert tape.gradient(y, x).numpy().tolist() == [0.25, 0.25, 1.0, 1.0]


def test_variables_are_keys_of_their_own():
    parts = tf.Variable([1, 2])
    with cache():
        cache.store("ns", parts, "kept")
        assert cache.lookup("ns", parts) == "kept"
        assert at.partition_ids(parts, 3) is at.partition_ids(parts, 3)
        tf.function(lambda: cache.store("ns", parts, tf.zeros(3)), autograph=False)()
        assert cache.lookup("ns", parts) is None
