"""at.cache: what is kept, for how long, and who sees it (SEMANTICS 20).

Accuses src/python/cache.c, cache_value.c, the adapters' trace and watcher, python/anytensor/_cache.py.
"""

import asyncio
import collections
import contextvars
import gc
import inspect
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest

import anytensor as at

cache = at.cache
Pair = collections.namedtuple("Pair", "left right")


class Thing:
    """Takes weak references and attributes."""


@pytest.fixture(autouse=True)
def off_before_and_after():
    cache.disable()
    yield
    cache.disable()
    assert at._core._cache_has("partition") is False


# --- on and off -------------------------------------------------------------------------------------------


def test_it_is_off_to_begin_with_and_then_does_nothing():
    key = Thing()
    cache.store("ns", key, 1)
    assert cache.lookup("ns", key) is None and "ns" not in cache and "partition" not in cache
    cache.purge("ns", key)
    cache.disable()
    with pytest.raises(KeyError, match="ns"):
        cache["ns"]


@pytest.mark.parametrize("scope", [lambda: cache, lambda: cache()], ids=["cache", "cache()"])
def test_a_block_turns_it_on_and_its_end_off(scope):
    key = Thing()
    with scope():
        cache.store("ns", key, 1)
        with scope():  # the inner one sees what the outer has, and ends nothing
            assert cache.lookup("ns", key) == 1
            cache.store("ns", key, 2)
        assert cache.lookup("ns", key) == 2
        space = cache["ns"]
    assert "partition" not in cache and cache.lookup("ns", key) is None and space == {}


def test_a_block_ends_with_an_exception_too():
    with pytest.raises(ZeroDivisionError), cache():
        assert "partition" in cache
        1 / 0  # noqa: B018
    assert "partition" not in cache


def test_one_scope_object_may_be_entered_again():
    scope = cache()
    with scope:
        with scope:
            assert "partition" in cache
        assert "partition" in cache
    assert "partition" not in cache


def test_partition_is_there_from_the_start_and_others_after_their_first_use():
    with cache():
        assert "partition" in cache and "ns" not in cache
        assert cache.lookup("ns", Thing()) is None and "ns" not in cache
        assert cache["ns"] == {} and "ns" in cache and cache["ns"] is cache["ns"]


def test_enable_lasts_and_outlives_a_block():
    with cache():
        cache.enable()
        cache.enable()
    assert "partition" in cache
    with cache:
        pass
    assert "partition" in cache
    cache.disable()
    assert "partition" not in cache


def test_disable_within_a_block_empties_everything_and_the_end_of_the_block_is_harmless():
    key = Thing()
    with cache():
        cache.store("ns", key, 1)
        space = cache["ns"]
        cache.disable()
        assert space == {} and "partition" not in cache
        with cache():  # another one, which the end of the outer block leaves alone
            cache.store("ns", key, 2)
        cache.enable()
    assert "partition" in cache and cache.lookup("ns", key) is None


@pytest.mark.parametrize("decorate", [lambda f: cache(f), lambda f: cache()(f)], ids=["cache", "cache()"])
def test_a_decorated_function_turns_it_on_at_each_call_and_leaves_it_on(decorate):
    @decorate
    def f(x, *, y=2):
        """Words."""
        assert "partition" in cache
        return x + y

    assert "partition" not in cache
    assert f(1) == 3 and "partition" in cache
    cache.disable()
    assert f(1, y=1) == 2 and "partition" in cache
    assert f.__name__ == "f" and f.__doc__ == "Words." and str(inspect.signature(f)) == "(x, *, y=2)"
    assert inspect.isfunction(f)


def test_it_decorates_methods_and_keeps_exceptions():
    class Layer:
        @cache
        def call(self, fail):
            if fail:
                raise KeyError("inside")
            return self

    layer = Layer()
    assert layer.call(False) is layer
    with pytest.raises(KeyError, match="inside"):
        layer.call(True)


def test_functions_have_signatures_and_say_what_is_missing():
    assert list(inspect.signature(cache.lookup).parameters) == ["namespace", "obj", "extra"]
    assert list(inspect.signature(cache.store).parameters) == ["namespace", "obj", "value", "extra"]
    assert cache.purge is cache.purge_cache and "cache" in repr(cache)
    for bad in (
        lambda: cache.lookup("ns"),
        lambda: cache.store("ns", 1),
        lambda: cache.purge("ns", 1, 2),
        lambda: cache.lookup("ns", 1, key=2),
        lambda: cache.lookup("ns", 1, namespace="ns"),
    ):
        with pytest.raises(TypeError, match="(?i)cache"):
            bad()
    with cache(), pytest.raises(TypeError, match="hash"):
        cache.store("ns", Thing(), 1, extra=([],))


# --- keys -------------------------------------------------------------------------------------------------


def test_keywords_and_extra_are_part_of_the_key():
    key = Thing()
    with cache():
        cache.store(namespace="ns", obj=key, value="plain")
        cache.store("ns", key, "two", extra=(1, "a"))
        assert cache.lookup("ns", key) == "plain" and cache.lookup("ns", key, [1, "a"]) == "two"
        assert cache.lookup("ns", key, extra=(1,)) is None and cache.lookup("other", key) is None
        assert set(cache["ns"]) == {(id(key),), (id(key), 1, "a")}
        for ref, value in cache["ns"].values():
            assert ref() is key and value in ("plain", "two")


def test_arrays_of_every_framework_are_held_weakly(fw):
    x = fw.array([1, 2], "int64")
    with cache():
        cache.store("ns", x, "value")
        cache.store("ns", (x, "pinned"), "pair")
        assert cache.lookup("ns", x) == "value" and len(cache["ns"]) == 2
        same = fw.array([1, 2], "int64")
        assert cache.lookup("ns", same) is None  # identity, not value
        del x
        gc.collect()
        assert cache["ns"] == {}


def test_a_tuple_of_arrays_goes_with_the_first_of_them_that_dies(fw):
    a, b = fw.array([1], "int64"), fw.array([2], "int64")
    with cache():
        cache.store("ns", (a, b), "ab")
        assert cache.lookup("ns", (a, b)) == "ab"
        assert cache.lookup("ns", (b, a)) is None and cache.lookup("ns", a) is None
        assert cache.lookup("ns", Pair(a, b)) == "ab"
        ((ref, _),) = cache["ns"].values()
        assert ref()[0] is a and ref()[1] is b
        del b
        gc.collect()
        assert cache["ns"] == {} and ref() is None


def test_what_refuses_weak_references_is_pinned():
    class Slots:
        __slots__ = ("x", "__dict__")

    key = Slots()
    key.x = token = Thing()
    gone = weakref.ref(token)
    del token
    with cache():
        cache.store("ns", key, 1)
        assert cache.lookup("ns", key) == 1
        ((ref, _),) = cache["ns"].values()
        assert ref() is key
        del key, ref
        gc.collect()
        assert gone() is not None and len(cache["ns"]) == 1
    gc.collect()
    assert gone() is None


def test_an_address_that_is_used_again_is_no_hit():
    """An entry of another object at the same place is dropped."""
    one, two = Thing(), Thing()
    with cache():
        cache.store("ns", one, "one")
        space = cache["ns"]
        space[(id(two),)] = space.pop((id(one),))
        assert cache.lookup("ns", two) is None and space == {}


def test_a_dying_object_leaves_the_entry_of_its_successor_alone():
    one, two = Thing(), Thing()
    with cache():
        cache.store("ns", one, "one")
        place, first = next(iter(cache["ns"].items()))
        cache.store("ns", two, "two")
        cache["ns"][place] = cache["ns"].pop((id(two),))
        del one
        gc.collect()
        assert cache["ns"][place][1] == "two"
        del first


def test_purge_takes_all_entries_of_an_object_and_no_others():
    key, other = Thing(), Thing()
    with cache():
        for extra in ((), (1,), (2, 3)):
            cache.store("ns", key, extra, extra)
        cache.store("ns", (key, other), "both")
        cache.store("ns", (other, other), "others")
        cache.store("ns", other, "other")
        cache.store("more", key, "more")
        cache["ns"]["text"] = cache["ns"][7] = cache["ns"][()] = "a user's own"
        cache.purge("nowhere", key)
        cache.purge("ns", key)
        assert [cache.lookup("ns", key, extra) for extra in ((), (1,), (2, 3))] == [None] * 3
        assert cache.lookup("ns", (key, other)) is None and cache.lookup("more", key) == "more"
        assert cache.lookup("ns", other) == "other" and cache["ns"]["text"] == "a user's own"
        cache.purge_cache("ns", (other, other))
        assert cache.lookup("ns", (other, other)) is None and cache.lookup("ns", other) == "other"
        assert len(cache["ns"]) == 4


def test_writes_to_a_torch_tensor_make_its_entries_old(torch):
    x, y = torch.tensor([1, 2]), torch.tensor([3])
    with cache():
        cache.store("ns", x, "x")
        cache.store("ns", (y, x), "yx")
        assert cache.lookup("ns", x) == "x"
        x[0] = 5
        assert cache.lookup("ns", x) is None and cache.lookup("ns", (y, x)) is None
        assert cache["ns"] == {}
        with torch.inference_mode():
            z = torch.tensor([1])
            cache.store("ns", z, "z")  # which counts no writes
            assert cache.lookup("ns", z) == "z"


# --- values -------------------------------------------------------------------------------------------------


def test_a_value_comes_back_as_it_was(fw):
    x, y = fw.array([1], "int64"), fw.array([2.0], "float32")
    value = [Pair(y, {"a": (y, None)}), 3]
    with cache():
        cache.store("ns", x, value)
        assert cache.lookup("ns", x) is value


@pytest.mark.parametrize("of", [lambda x: x, lambda x: (x,)], ids=["object", "tuple"])
def test_a_value_never_keeps_its_own_key_alive(fw, of):
    x, y = fw.array([1, 2], "int64"), fw.array([1.0], "float32")
    kept = [y]
    with cache():
        cache.store("ns", of(x), Pair([x, 1, {"again": (x, y)}], kept))
        got = cache.lookup("ns", of(x))
        assert type(got) is Pair and got.left[0] is x and got.left[2]["again"][0] is x
        assert got.right is kept and got.left[2]["again"][1] is y
        del got
        cache.store("ns", of(x), x, extra=("alone",))
        assert cache.lookup("ns", of(x), ("alone",)) is x
        del x
        gc.collect()
        assert cache["ns"] == {}


def test_a_value_that_cannot_let_go_of_its_key_is_not_kept():
    x = np.arange(4)
    thing, odd = Thing(), collections.OrderedDict(x=x)
    thing.inner = [x]
    with cache():
        for value in (x[1:], x[1:][:1], [x.T], thing, (1, thing), odd, {"a": odd}):
            cache.store("ns", x, "old")
            cache.store("ns", x, value)
            assert cache.lookup("ns", x) is None, value
        cache.store("ns", x, x.copy())
        assert cache.lookup("ns", x).tolist() == [0, 1, 2, 3]
        del thing, odd, value
        gone = weakref.ref(x)
        del x
        gc.collect()
        assert gone() is None and cache["ns"] == {}


def test_a_view_of_a_torch_key_is_not_kept(torch):
    x = torch.arange(4)
    with cache():
        for value in (x[1:], x.view(2, 2), {"a": [x[:1]]}):
            cache.store("ns", x, value)
            assert cache.lookup("ns", x) is None
        cache.store("ns", x[1:], x)  # a key may be a view


def test_cyclic_and_deep_values_do_no_harm():
    key, loop, deep = Thing(), [], []
    loop.append(loop)
    for _ in range(100_000):
        deep = [deep]
    with cache():
        cache.store("ns", key, loop)
        assert cache.lookup("ns", key) is loop
        loop.append(key)
        with pytest.raises(RecursionError):
            cache.store("ns", key, loop)
        with pytest.raises(RecursionError):
            cache.store("ns", key, deep)
        assert cache.lookup("ns", key) is loop  # the old entry, still


def test_a_value_may_hold_anything_without_arrays():
    key = Thing()
    with cache():
        for value in (np.float32(1), "a", len, Thing, {1, 2}, frozenset(), object(), b"", 1j, range(3), np):
            cache.store("ns", key, value)
            assert cache.lookup("ns", key) is value


# --- ids of partitions ---------------------------------------------------------------------------------------


PARTITION = {
    "partition_sum": lambda x, parts: at.partition_sum(x, parts, 5),
    "partition_min": lambda x, parts: at.partition_min(x, parts, 5),
    "partition_max": lambda x, parts: at.partition_max(x, parts, 5),
    "partition_softmax": lambda x, parts: at.partition_softmax(x, parts, 5),
}


def test_partition_ids_are_made_once_per_vector(fw):
    parts, x = fw.array([2, 0, 3], "int32"), fw.array([1.0, 2.0, 3.0, 4.0, 5.0], "float32")
    plain = {op: fw.numpy(call(x, parts)).tolist() for op, call in PARTITION.items()}
    assert at.partition_ids(parts, 5) is not at.partition_ids(parts, 5)
    with cache():
        for op, call in PARTITION.items():
            assert fw.numpy(call(x, parts)).tolist() == plain[op], op
        ids = at.partition_ids(parts, 5)
        assert fw.numpy(ids).tolist() == [0, 0, 2, 2, 2]
        assert at.partition_ids(parts, total_length=np.int64(5)) is ids
        assert set(cache["partition"]) == {(id(parts),)}
        assert cache.lookup("partition", parts) is ids
        del parts
        gc.collect()
        assert cache["partition"] == {}
    assert fw.numpy(ids).tolist() == [0, 0, 2, 2, 2]


def test_every_partition_function_uses_ids_that_are_kept(fw):
    """Ids that nobody would compute, put there by hand."""
    parts, x = fw.array([2, 0, 3], "int64"), fw.array([1.0, 2.0, 3.0, 4.0, 5.0], "float32")
    with cache():
        kept = at.astype(fw.array([0, 0, 1, 1, 1], "int64"), fw.default("i"))
        cache.store("partition", parts, kept)
        assert at.partition_ids(parts, 5) is kept
        assert fw.numpy(at.partition_sum(x, parts, 5)).tolist() == [3.0, 12.0, 0.0]
        assert fw.numpy(at.partition_max(x, parts, 5)).tolist()[:2] == [2.0, 5.0]
        assert fw.numpy(at.partition_min(x, parts, 5)).tolist()[:2] == [1.0, 3.0]
        # repeat has another rule for a total, and counts of its own
        assert fw.numpy(at.repeat(fw.array([7, 8, 9], "int64"), parts, total_repeat_length=5)).tolist() == [
            *[7] * 2,
            *[9] * 3,
        ]


def test_kept_ids_of_another_length_are_purged_with_a_warning(fw):
    if not fw.mutable:
        pytest.skip("its arrays cannot be written to")
    parts = fw.array([2, 1], "int64")
    with cache():
        first = at.partition_ids(parts, 3)
        parts[0] = 3
        quiet = fw.name == "torch"  # which counts writes
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            second = at.partition_ids(parts, 4)
        assert [
            str(one.message) for one in seen if "cached partition ids length 3" in str(one.message)
        ] or quiet
        assert fw.numpy(second).tolist() == [0, 0, 0, 1] and fw.numpy(first).tolist() == [0, 0, 1]
        assert at.partition_ids(parts, 4) is second


def test_two_totals_of_one_vector_take_turns_where_counts_are_not_read(fw):
    if fw.reads_counts:
        pytest.skip("it refuses a total that is not the sum")
    parts = fw.array([2, 1], "int64")
    with cache():
        at.partition_ids(parts, 3)
        for total in (4, 3, 4):
            with pytest.warns(UserWarning, match=f"!= total_length {total}"):
                ids = at.partition_ids(parts, total)
            assert fw.numpy(ids).tolist() == [0, 0, 1, 2][:total]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            at.partition_ids(parts, 4)
            with pytest.raises(UserWarning, match="in anytensor|cached partition ids"):
                at.partition_ids(parts, 3)


def test_a_wrong_total_is_an_error_with_kept_ids_as_without(fw):
    parts = fw.array([2, 1], "int64")
    with cache():
        at.partition_ids(parts, 3)
        for bad, error in ((None, TypeError), (True, TypeError), (-1, ValueError), (2.5, TypeError)):
            with pytest.raises(error, match="total_length"):
                at.partition_ids(parts, bad)
        if fw.reads_counts:
            with pytest.raises(ValueError, match="total_length"):
                at.partition_ids(parts, 4)
        assert len(cache["partition"]) == 1


def test_a_numpy_vector_that_joins_a_framework_is_converted_anew(peer):
    parts, x = np.array([2, 1]), peer.array([1.0, 2.0, 3.0], "float32")
    with cache():
        for _ in range(2):
            assert peer.numpy(at.partition_sum(x, parts, 3)).tolist() == [3.0, 3.0]
            assert cache["partition"] == {}
        assert type(at.partition_ids(parts, 3)) is np.ndarray and len(cache["partition"]) == 1
        assert peer.numpy(at.partition_sum(x, parts, 3)).tolist() == [3.0, 3.0]


def test_odd_values_in_the_partition_namespace_are_not_used(fw):
    parts = fw.array([2, 1], "int64")
    with cache():
        for odd in ("text", [1, 2, 3], fw.array([0.0, 0.0, 1.0], "float32"), fw.array([[0, 0, 1]], "int8")):
            cache.store("partition", parts, odd)
            assert fw.numpy(at.partition_ids(parts, 3)).tolist() == [0, 0, 1]


# --- contexts, threads, tasks ---------------------------------------------------------------------------------


def test_a_new_thread_starts_with_it_off():
    seen = []
    with cache():
        thread = threading.Thread(target=lambda: seen.append("partition" in cache))
        thread.start()
        thread.join(60)
    assert seen == [False]


def test_asyncio_tasks_share_what_their_parent_has_turned_on():
    key, seen = Thing(), {}

    async def child():
        cache.store("ns", key, "from a task")
        await asyncio.sleep(0)
        with cache():
            seen["child"] = cache.lookup("ns", key)

    async def alone():
        with cache():
            await asyncio.sleep(0)
            cache.store("ns", key, "its own")
            await asyncio.sleep(0)
        seen["alone"] = "partition" in cache

    async def main():
        with cache():
            await asyncio.gather(child(), child())
            seen["parent"] = cache.lookup("ns", key)
        await asyncio.gather(alone(), alone())

    asyncio.run(main())
    assert seen == {"child": "from a task", "parent": "from a task", "alone": False}


def test_turning_it_off_in_another_context_empties_it_and_is_python_s_value_error():
    key = Thing()
    cache.enable()
    cache.store("ns", key, 1)
    with pytest.raises(ValueError, match="different Context"):
        contextvars.copy_context().run(cache.disable)
    assert cache.lookup("ns", key) is None and "partition" not in cache  # off for all that shared it
    cache.enable()
    cache.store("ns", key, 2)
    assert cache.lookup("ns", key) == 2


def test_eight_threads_with_caches_of_their_own(fw):
    parts = [fw.array([i, 3], "int64") for i in range(4)]
    failures, start = [], threading.Barrier(8)

    def work(number):
        start.wait(60)
        try:
            for turn in range(30 if fw.quick else 5):
                with cache():
                    for i, part in enumerate(parts):
                        one, two = at.partition_ids(part, i + 3), at.partition_ids(part, i + 3)
                        assert one is two and one.shape[0] == i + 3
                        cache.store("ns", part, (number, part))
                        assert cache.lookup("ns", part)[0] == number
                if turn == 2:
                    gc.collect()
        except BaseException as error:
            failures.append(error)

    run_all([threading.Thread(target=work, args=(i,)) for i in range(8)])
    assert not failures


def run_all(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()


def test_eight_threads_in_one_cache_with_keys_that_die():
    shared = [np.array([i, 2]) for i in range(4)]
    failures, start = [], threading.Barrier(8)

    def work():
        start.wait(60)
        try:
            for turn in range(400):
                own = np.array([1, turn])
                cache.store("ns", own, (own, turn))
                cache.store("ns", (own, shared[turn % 4]), turn)
                got = cache.lookup("ns", own)
                assert got is None or got[1] == turn
                at.partition_ids(shared[turn % 4], turn % 4 + 2)
                cache.purge("ns", shared[turn % 4])
                if turn % 100 == 0:
                    list(cache["ns"].values())
        except BaseException as error:
            failures.append(error)

    with cache():
        contexts = [contextvars.copy_context() for _ in range(8)]
        run_all([threading.Thread(target=context.run, args=(work,)) for context in contexts])
        gc.collect()
        assert not failures and cache["ns"] == {}


# --- memory ----------------------------------------------------------------------------------------------------


def test_nothing_of_it_outlives_a_block_though_its_keys_do():
    key, value = Thing(), Thing()
    alive = weakref.ref(value)
    with cache():
        cache.store("ns", key, [value])
        space = weakref.ref(cache["ns"])
        del value
    assert alive() is None and space() is None  # without the collector


def test_cycles_through_the_cache_are_collected():
    def cycle():
        key = Thing()
        with cache():
            key.space = cache["ns"]
            cache.store("ns", key, "value", extra=(key,))
            cache["ns"]["more"] = key
            key.space = dict(cache["ns"])
            return weakref.ref(key)

    gone = cycle()
    gc.collect()
    assert gone() is None

    def left_on():
        thing = Thing()
        cache.enable()
        cache.store("ns", thing, 1)
        thing.space = cache["ns"]
        cache["ns"]["self"] = thing
        return weakref.ref(thing), weakref.ref(cache["ns"])

    gone = contextvars.copy_context().run(left_on)  # the context itself is dropped
    gc.collect()
    assert [one() for one in gone] == [None, None]


def test_calls_leave_no_references_behind(fw):
    if fw.leaks:
        pytest.skip("the framework's own calls leave memory behind")
    parts, other = fw.array([2, 1], "int64"), fw.array([2.0], "float32")
    extra, value = (1, "a"), [other]

    def once():
        with cache():
            for _ in range(2):
                at.partition_ids(parts, 3)
                cache.lookup("ns", parts, extra)
                cache.store("ns", parts, value, extra)
                cache.store("ns", (parts, other), (value, parts, {"a": parts}), extra)
                cache.lookup("ns", (parts, other), extra)
                cache.lookup("ns", parts, extra)
            cache.purge("ns", other)
            for bad in (lambda: cache.store("ns", parts, 1, [[]]), lambda: cache.lookup("ns", parts, 1)):
                try:
                    bad()
                except TypeError:
                    continue
                raise AssertionError

    counted = (parts, other, extra, value, "ns", cache)
    for _ in range(20):
        once()
    gc.collect()
    before, grown = [sys.getrefcount(one) for one in counted], []
    for _ in range(5):  # a framework makes and releases things of its own now and then
        gc.collect()
        blocks = sys.getallocatedblocks()
        for _ in range(15):
            once()
        gc.collect()
        grown.append(sys.getallocatedblocks() - blocks)
    assert [sys.getrefcount(one) for one in counted] == before
    assert min(grown) < 15, grown
