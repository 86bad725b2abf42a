"""promote_options() and align_arrays() (SEMANTICS 13).

Accuses src/python/options.c and python/anytensor/_options.py.
"""

import asyncio
import inspect
import threading
import warnings

import numpy as np
import pytest
from frameworks import COMPILES

import anytensor as at

REVERSED = np.arange(4.0, dtype="float32")[::-1]
SWAPPED = np.arange(4.0, dtype=">f4")


@pytest.fixture
def x(peer):
    return peer.array([0.0, 0.0, 0.0], "float32")


def joined(peer, x):
    """A NumPy array, and what it became on its way into a call."""
    host = np.ones(3, np.float32)
    return host, at.align_arrays(x, host)[1]


def refuses(x):
    """Whether memory that cannot be shared is an error now."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            at.maximum(x, REVERSED[:3])
        except ValueError:
            return True
    return False


# --- copy -------------------------------------------------------------------------------------------------


def test_copy_shields_from_later_writes_on_every_framework(peer, x):
    with at.promote_options(copy=True):
        host, got = joined(peer, x)
        host[:] = 7.0
        parts = at.concatenate([x, host])
        host[:] = 9.0
    assert peer.numpy(got).tolist() == [1.0] * 3
    assert peer.numpy(parts).tolist() == [0.0] * 3 + [7.0] * 3


def test_without_copy_memory_is_shared_where_the_framework_can(peer, x):
    host, got = joined(peer, x)
    host[:] = 7.0
    if peer.shares_numpy:
        assert peer.numpy(got).tolist() == [7.0] * 3
    assert peer.is_array(got)


def test_a_copy_of_a_read_only_array_does_not_warn(peer, x):
    frozen = np.ones(3, np.float32)
    frozen.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with at.promote_options(copy=True):
            assert peer.numpy(at.maximum(x, frozen)).tolist() == [1.0] * 3


def test_a_tensor_is_never_copied(peer, x):
    with at.promote_options(copy=True):
        assert at.align_arrays(x)[0] is x
        assert at.align_arrays(x, np.ones(1, np.float32))[0] is x
    assert at.align_arrays(x, copy=True)[0] is x


# --- fallback ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [REVERSED, SWAPPED], ids=["negative strides", "foreign byte order"])
def test_fallback_error_is_a_value_error_that_says_how_to_allow_it(peer, odd):
    one = peer.array([0.0], "float32")
    with at.promote_options(fallback="error"):
        for call in (
            lambda: at.maximum(one, odd),
            lambda: at.concatenate([one, odd]),
            lambda: at.segment_sum(odd, peer.array([0, 0, 1, 1], "int64"), 2),
            lambda: at.align_arrays(one, odd),
        ):
            with pytest.raises(ValueError, match="zero-copy") as error:
                call()
            assert "fallback='error'" in str(error.value)
        assert peer.numpy(at.maximum(one, np.ones(2, np.float32))).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("odd", [REVERSED, SWAPPED], ids=["negative strides", "foreign byte order"])
def test_fallback_copy_warns_and_copies(peer, odd):
    one = peer.array([0.0], "float32")
    with at.promote_options(fallback="copy"), pytest.warns(UserWarning, match="fell back to a copy"):
        got = at.maximum(one, odd)
    assert peer.numpy(got).tolist() == odd.tolist()


def test_a_wanted_copy_is_no_fallback(peer):
    """copy=True says that a copy is fine: nothing to warn of, nothing to refuse."""
    one = peer.array([0.0], "float32")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with at.promote_options(copy=True, fallback="error"):
            assert peer.numpy(at.maximum(one, REVERSED)).tolist() == REVERSED.tolist()


def test_options_do_not_touch_numpy_alone():
    with at.promote_options(fallback="error"):
        assert at.maximum(REVERSED, 0).tolist() == REVERSED.tolist()
        assert at.segment_sum(SWAPPED, np.array([0, 0, 1, 1]), 2).tolist() == [1.0, 5.0]


# --- scopes -----------------------------------------------------------------------------------------------


def test_a_nested_bare_scope_means_the_defaults_and_the_outer_one_comes_back(peer, x):
    assert not refuses(x)
    with at.promote_options(fallback="error"):
        assert refuses(x)
        with at.promote_options():
            assert not refuses(x)
            with at.promote_options(copy=True):
                assert not refuses(x)
        assert refuses(x)
    assert not refuses(x)


def test_an_exception_restores_the_options(peer, x):
    with pytest.raises(KeyError), at.promote_options(fallback="error"):
        raise KeyError
    assert not refuses(x)


def test_it_decorates_a_function_which_may_recurse(peer, x):
    @at.promote_options(fallback="error")
    def f(depth):
        """Words."""
        inner = f(depth - 1) if depth else True
        return inner and refuses(x)

    assert f(3) and not refuses(x)
    assert f.__name__ == "f" and f.__doc__ == "Words." and str(inspect.signature(f)) == "(depth)"


def test_one_object_may_be_entered_twice(peer, x):
    options = at.promote_options(fallback="error")
    with options:
        with options:
            assert refuses(x)
        assert refuses(x)
    assert not refuses(x)
    with options:
        assert refuses(x)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"copy": 1}, TypeError),
        ({"copy": "yes"}, TypeError),
        ({"copy": np.True_}, TypeError),
        ({"fallback": "warn"}, ValueError),
        ({"fallback": ""}, ValueError),
        ({"fallback": "error\0"}, ValueError),
        ({"fallback": True}, TypeError),
        ({"fallback": b"copy"}, TypeError),
        ({"fallbck": "copy"}, TypeError),
    ],
    ids=str,
)
def test_bad_options_are_refused_by_name(options, error):
    name = next(iter(options))
    with pytest.raises(error, match=name), at.promote_options(**options):
        pass
    with pytest.raises(error, match=name):
        at.align_arrays(np.ones(1), **options)
    with at.promote_options():  # and nothing is left open
        pass


def test_options_are_keywords_only():
    with pytest.raises(TypeError):
        at.promote_options(True)


def test_threads_have_their_own(peer, x):
    inside, seen = threading.Barrier(3), {}

    def work(name, **options):
        with at.promote_options(**options):
            inside.wait(60)
            seen[name] = refuses(x)
            inside.wait(60)

    threads = [
        threading.Thread(target=work, args=("strict",), kwargs={"fallback": "error"}),
        threading.Thread(target=work, args=("lax",), kwargs={"copy": True}),
    ]
    for thread in threads:
        thread.start()
    inside.wait(60)
    seen["main"] = refuses(x)
    inside.wait(60)
    for thread in threads:
        thread.join(60)
    assert seen == {"strict": True, "lax": False, "main": False}


def test_a_new_thread_starts_with_the_defaults(peer, x):
    seen = []
    with at.promote_options(fallback="error"):
        thread = threading.Thread(target=lambda: seen.append(refuses(x)))
        thread.start()
        thread.join(60)
    assert seen == [False]


def test_asyncio_tasks_have_their_own(peer, x):
    seen = {}

    async def work(name, turns, **options):
        with at.promote_options(**options):
            for _ in range(turns):
                await asyncio.sleep(0)
            seen[name] = refuses(x)

    async def main():
        await asyncio.gather(
            work("strict", 3, fallback="error"), work("lax", 2), work("copies", 1, copy=True)
        )
        seen["main"] = refuses(x)

    asyncio.run(main())
    assert seen == {"strict": True, "lax": False, "copies": False, "main": False}


# --- under torch's compiler -------------------------------------------------------------------------------


@pytest.mark.slow
@COMPILES
def test_dynamo_takes_the_scope_and_the_decorator_in_one_graph(torch):
    @at.promote_options(copy=True)
    def decorated(x):
        return at.maximum(x, 2.0)

    def scoped(x, ids):
        with at.promote_options(fallback="error"):
            total = at.segment_sum(decorated(x), ids, 2)
            with at.promote_options():
                total = at.exp(total)
        return at.concatenate([total, x])

    x, ids = torch.arange(4.0), torch.tensor([0, 1, 1, 0])
    torch._dynamo.reset()
    compiled = torch.compile(scoped, fullgraph=True, backend="eager")
    assert torch.equal(compiled(x, ids), scoped(x, ids))
    assert not refuses(torch.zeros(3))


@pytest.mark.slow
@COMPILES
def test_dynamo_takes_align_arrays_in_one_graph(torch):
    def f(x):
        a, none, b = at.align_arrays(x, None, 2.0)
        assert none is None
        return at.maximum(a, b)

    torch._dynamo.reset()
    x = torch.arange(4.0)
    assert torch.equal(torch.compile(f, fullgraph=True, backend="eager")(x), f(x))


# --- align_arrays -----------------------------------------------------------------------------------------


def test_align_arrays_joins_numpy_and_scalars_and_keeps_none_and_dtypes(peer):
    x = peer.array([1.0, 2.0], "float32")
    got = at.align_arrays(None, np.array([1, 2], "int8"), x, 2.0, True, 3, np.float32(4))
    assert type(got) is tuple and got[0] is None and got[2] is x
    dtypes = [None if one is None else peer.dtype(one) for one in got]
    assert dtypes == [None, "int8", "float32", peer.default("f"), "bool", peer.default("i"), "float32"]
    assert all(peer.is_array(one) for one in got[1:])
    assert [tuple(one.shape) for one in got[3:]] == [()] * 4
    assert peer.numpy(got[1]).tolist() == [1, 2] and float(peer.numpy(got[6])) == 4.0


def test_align_arrays_of_numpy_alone_are_the_same_objects():
    x, y = np.ones(2), np.arange(3)
    got = at.align_arrays(x, y, None)
    assert got[0] is x and got[1] is y and got[2] is None
    copied = at.align_arrays(x, copy=True)[0]
    assert copied is not x and copied.tolist() == x.tolist() and not np.shares_memory(copied, x)
    with at.promote_options(copy=True):
        assert not np.shares_memory(at.align_arrays(x)[0], x)
        assert at.align_arrays(x, copy=False)[0] is x


def test_align_arrays_of_nothing_and_of_scalars():
    assert at.align_arrays() == ()
    assert at.align_arrays(None, None) == (None, None)
    one, two, three = at.align_arrays(2, 2.5, True)
    assert [type(a) for a in (one, two, three)] == [np.ndarray] * 3
    assert [a.dtype.name for a in (one, two, three)] == ["int64", "float64", "bool"]


def test_align_arrays_takes_options_for_one_call(peer, x):
    host = np.ones(3, np.float32)
    copied = at.align_arrays(x, host, copy=True)[1]
    host[:] = 5.0
    assert peer.numpy(copied).tolist() == [1.0] * 3
    with pytest.raises(ValueError, match="zero-copy"):
        at.align_arrays(x, REVERSED, fallback="error")
    with at.promote_options(fallback="error"):
        with pytest.warns(UserWarning, match="fell back to a copy"):
            at.align_arrays(x, REVERSED, fallback="copy")
        assert refuses(x)
    assert not refuses(x)


@pytest.mark.parametrize("bad", [[1.0], (1.0,), "abc", object(), {}], ids=lambda bad: type(bad).__name__)
def test_align_arrays_refuses_what_is_no_array_by_name(fw, bad):
    with pytest.raises(TypeError, match="align_arrays.*'arrays'"):
        at.align_arrays(fw.array([1.0], "float32"), bad)


def test_align_arrays_of_many(fw):
    x = fw.array([1.0], "float32")
    got = at.align_arrays(*[x, None, np.ones(1, np.float32)] * 200)
    assert len(got) == 600 and got[0] is x and got[1] is None and fw.is_array(got[599])


def test_align_arrays_has_a_signature():
    assert str(inspect.signature(at.align_arrays)) == "(*arrays, copy=None, fallback=None)"
