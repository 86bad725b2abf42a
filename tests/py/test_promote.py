"""promote() and promote_scalars(): decorators by the library's one promotion rule (SEMANTICS 12, 13).

Accuses python/anytensor/_promote.py, src/python/promoted.c, src/core/promote.c (ati_promote_by_role).
"""

import gc
import inspect
import sys
import threading
import warnings

import numpy as np
import pytest
from frameworks import COMPILES

import anytensor as at

REVERSED = np.arange(3.0, dtype="float32")[::-1]


@at.promote(x="data", y="data")
def pair(x, y):
    return x, y


@at.promote(x="data", ids="index", mask="mask", n="shape")
def everything(x, ids, mask, n, other=None):
    return x, ids, mask, n, other


def dtypes(fw, values):
    return [fw.dtype(one) for one in values]


# --- data -------------------------------------------------------------------------------------------------


def pairs(fw):
    """Two operands, and the dtype that both get."""
    real, whole = fw.default("f"), fw.default("i")
    a = fw.array
    return {
        "f32 and a float": (a([1.5], "float32"), 2.0, "float32"),
        "f32 and an int": (a([1.5], "float32"), 2, "float32"),
        "f32 and a bool": (a([1.5], "float32"), True, "float32"),
        "i8 and an int": (a([1], "int8"), 2, "int8"),
        "i8 and a float": (a([1], "int8"), 2.0, real),
        "bool and an int": (a([True], "bool"), 2, whole),
        "i32 and i64": (a([1], "int32"), a([1], "int64"), fw.held("int64")),
        "u8 and i8": (a([1], "uint8"), a([1], "int8"), "int16"),
        "f32 and i64": (a([1], "float32"), a([1], "int64"), "float32"),
        "f32 and NumPy's f64": (a([1], "float32"), np.ones(1), fw.held("float64")),
        "f32 and NumPy's int": (a([1], "float32"), np.int64(1), "float32"),
        "f32 and NumPy's f64 scalar": (a([1], "float32"), np.float64(1), fw.held("float64")),
        "i64 and NumPy's": (a([1], "int64"), np.ones(1, np.float32), "float32"),
        "numbers": (2, 2.5, "float64"),
    }


def test_data_operands_get_one_dtype_and_framework(fw):
    for name, (x, y, want) in pairs(fw).items():
        got = pair(x, y)
        if name == "numbers":  # and nothing else is NumPy's
            assert [(type(one), one.dtype.name, one.shape) for one in got] == [(np.ndarray, want, ())] * 2
            continue
        assert dtypes(fw, got) == [want] * 2, name
        assert dtypes(fw, pair(y, x)) == [want] * 2, name
        assert fw.is_array(got[0]) and fw.is_array(got[1]), name
        assert fw.numpy(got[0]).tolist() == fw.numpy(x).tolist(), name


def test_what_fits_already_is_the_same_object(fw):
    x, y, ids = fw.array([1.0], "float32"), fw.array([2.0], "float32"), fw.array([0], "int32")
    got = everything(x, ids, fw.array([True], "bool"), 3, "other")
    assert got[0] is x and got[1] is ids and got[3] == 3 and type(got[3]) is int and got[4] == "other"
    assert pair(x, y)[0] is x and pair(x, y)[1] is y and pair(x, y=y)[1] is y


def test_integers_that_do_not_fit_and_floats_that_do_not(fw):
    with pytest.raises(OverflowError, match=r"promote\(pair\).*'y'.*300"):
        pair(fw.array([1], "int8"), 300)
    with pytest.raises(OverflowError, match="-1"):
        pair(fw.array([1], "uint8"), -1)
    x, y = pair(fw.array([1.0], "float32"), 1e300)
    assert fw.numpy(y).tolist() == float("inf") and fw.dtype(y) == "float32"


# --- index, mask, shape --------------------------------------------------------------------------------------


def test_an_index_must_be_integral_and_keeps_its_dtype(fw):
    x, mask = fw.array([1.0], "float32"), fw.array([1], "bool")
    for dtype in ("int8", "uint8", "int32", "int64"):
        assert fw.dtype(everything(x, fw.array([0], dtype), mask, 1)[1]) == fw.held(dtype)
    assert fw.dtype(everything(x, 3, mask, 1)[1]) == fw.default("i")
    for bad in (fw.array([0.0], "float32"), fw.array([True], "bool"), 1.0, True, np.zeros(1)):
        with pytest.raises(TypeError, match=r"'ids'.*integral"):
            everything(x, bad, mask, 1)


def test_a_mask_becomes_bool(fw):
    x, ids = fw.array([1.0], "float32"), fw.array([0], "int64")
    for mask in (fw.array([0, 2], "int64"), fw.array([0.0, 0.5], "float32"), np.array([0, 1])):
        got = everything(x, ids, mask, 1)[2]
        assert fw.dtype(got) == "bool" and fw.numpy(got).tolist() == [False, True] and fw.is_array(got)
    assert fw.dtype(everything(x, ids, 1, 1)[2]) == "bool"


def test_a_shape_is_a_size_and_never_an_array_of_ours(fw):
    x, ids, mask = fw.array([1.0], "float32"), fw.array([0], "int64"), fw.array([1], "bool")

    def size(n):
        return everything(x, ids, mask, n)[3]

    for n, want in ((5, 5), (-1, -1), (np.int8(5), 5), (5.0, 5), (np.float32(5), 5), (None, None)):
        assert size(n) == want and type(size(n)) is type(want)
    for scalar in (fw.array(5, "int64"), np.array(5)):
        assert size(scalar) is scalar
    for bad in (True, np.True_, 2.5, np.float64(2.5), float("inf"), float("nan"), 1j, "5", [5], (5,)):
        with pytest.raises(TypeError, match="'n'"):
            size(bad)
    for bad in (fw.array([5], "int64"), fw.array(5.0, "float32"), fw.array(True, "bool"), np.ones(1, int)):
        with pytest.raises(TypeError, match="'n'.*scalar size"):
            size(bad)


def test_a_tensor_as_a_size_decides_on_the_framework(peer):
    x, n = everything(np.ones(2, np.float32), np.array([0]), True, peer.array(2, "int64"))[::3]
    assert peer.is_array(x) and peer.is_array(n)


def test_two_frameworks_are_refused_by_both_names():
    torch, jnp = pytest.importorskip("torch"), pytest.importorskip("jax.numpy")
    for call in (
        lambda: pair(torch.ones(1), jnp.ones(1)),
        lambda: everything(torch.ones(1), jnp.zeros(1, "int32"), True, 1),
        lambda: everything(torch.ones(1), 0, True, jnp.asarray(3)),
    ):
        with pytest.raises(TypeError, match="jax.*torch") as error:
            call()
        assert any(f"'{name}'" in str(error.value) for name in ("y", "ids", "n"))


# --- none, nothing, what is no array ---------------------------------------------------------------------------


def test_none_stays_none(fw):
    x = fw.array([1.0], "float32")
    got = everything(x, None, None, None)
    assert got[0] is x and got[1:] == (None, None, None, None)
    assert everything(None, None, None, None) == (None,) * 5


@pytest.mark.parametrize("bad", [[1.0], (1.0,), "abc", object(), {}], ids=lambda bad: type(bad).__name__)
def test_what_is_no_array_is_refused_by_name(fw, bad):
    with pytest.raises(TypeError, match=r"promote\(pair\).*'y'"):
        pair(fw.array([1.0], "float32"), bad)


# --- binding --------------------------------------------------------------------------------------------------


def test_defaults_are_promoted_and_other_arguments_pass_through(fw):
    @at.promote(x="data", scale="data", bias="data")
    def f(x, first, scale=2, *rest, bias=True, plain=1.5, **more):
        return x, first, scale, rest, bias, plain, more

    x = fw.array([1.0], "float32")
    first = object()
    got = f(x, first)
    assert got[0] is x and got[1] is first and dtypes(fw, (got[2], got[4])) == ["float32"] * 2
    assert got[3] == () and got[5] == 1.5 and got[6] == {}
    got = f(x, first, 3, 4, 5.0, "six", 7, bias=2, plain=0, more=1)
    assert got[3] == (4, 5.0, "six", 7) and got[5] == 0 and got[6] == {"more": 1}
    assert float(fw.numpy(got[2])) == 3.0 and float(fw.numpy(got[4])) == 2.0
    got = f(first=first, scale=np.float64(1), x=x)
    assert fw.dtype(got[0]) == fw.held("float64") and got[1] is first


def test_positional_only_parameters_and_their_defaults():
    @at.promote(x="data", y="data", z="data")
    def f(x, y=1, /, w=0, *, z=2.0, **more):
        return x, y, w, z, more

    x = np.ones(1, np.float32)
    got = f(x)
    assert got[0] is x and got[1].dtype == got[3].dtype == "float32" and got[2] == 0
    assert f(x, 5, x="more")[4] == {"x": "more"} and f(x, 5, z=3)[3] == 3 and f(x, w=7)[2] == 7
    with pytest.raises(TypeError):
        f(w=1)


def test_bad_calls_are_type_errors_of_binding(fw):
    x = fw.array([1.0], "float32")
    for bad in (
        lambda: pair(),
        lambda: pair(x),
        lambda: pair(y=x),
        lambda: pair(x, x, x),
        lambda: pair(x, x, z=1),
        lambda: pair(x, x, y=x),
    ):
        with pytest.raises(TypeError, match="argument"):
            bad()


def test_methods_static_methods_and_functions_of_every_make():
    class Layer:
        @at.promote(x="data", scale="data")
        def call(self, x, scale=2.0):
            return self, x, scale

        @staticmethod
        @at.promote_scalars("x")
        def static(x):
            return x

        @classmethod
        @at.promote_scalars("x")
        def of_class(cls, x):
            return cls, x

    layer = Layer()
    this, x, scale = layer.call(np.ones(1, np.float32))
    assert this is layer and scale.dtype == "float32"
    assert Layer.static(2).dtype == "int64" and layer.of_class(2)[0] is Layer
    assert at.promote(x="data")(lambda x: x)(1).shape == ()
    outer = at.promote(x="data", y="data")(at.cache(pair))
    assert outer(1, y=2.0)[0].dtype == "float64" and str(inspect.signature(outer)) == "(x, y)"
    at.cache.disable()


def test_roles_of_missing_parameters_are_ignored_and_none_at_all_is_an_error():
    f = at.promote(x="data", gone="index")(lambda x: x)
    assert f(1).dtype == "int64"
    g = at.promote(gone="data")(lambda x: x)
    one = object()
    assert g(one) is one
    with pytest.raises(TypeError, match="role"):
        at.promote()
    with pytest.raises(TypeError, match="name"):
        at.promote_scalars()
    with pytest.raises(TypeError):
        at.promote("x")


def test_a_kind_that_there_is_not_is_refused_at_once():
    with pytest.raises(ValueError, match="'x'.*data, index, mask, shape.*'dat'"):
        at.promote(x="dat")
    with pytest.raises(TypeError, match="'x'"):
        at.promote(x=float)


def test_a_role_on_a_variadic_parameter_is_a_type_error():
    @at.promote(xs="data")
    def f(*xs):
        return xs

    @at.promote(more="data")
    def g(**more):
        return more

    for call in (lambda: f(1, 2), lambda: f(), lambda: g(a=1), lambda: g()):
        with pytest.raises(TypeError, match="xs|more"):
            call()


def test_it_looks_like_the_function_that_it_wraps():
    @at.promote(x="data")
    def f(x: float, *, y=1):
        """Words."""

    assert f.__name__ == "f" and f.__doc__ == "Words." and f.__wrapped__ is not None
    assert str(inspect.signature(f)) == "(x: float, *, y=1)" and inspect.isfunction(f)
    with pytest.raises(KeyError, match="inside"):
        at.promote_scalars("x")(lambda x: {}["inside"])(1)


# --- options ----------------------------------------------------------------------------------------------------


def test_copy_and_fallback_are_those_of_the_call_or_of_its_time(peer):
    x, host = peer.array([0.0, 0.0, 0.0], "float32"), np.ones(3, np.float32)

    def given(**options):
        return at.promote(x="data", y="data", **options)(lambda x, y: y)

    copied = given(copy=True)(x, host)
    at_call = given()
    with at.promote_options(copy=True):
        also = at_call(x, host)
        shared = given(copy=False)(x, host)
    host[:] = 7.0
    assert peer.numpy(copied).tolist() == peer.numpy(also).tolist() == [1.0] * 3
    if peer.shares_numpy:
        assert peer.numpy(shared).tolist() == [7.0] * 3
    with pytest.raises(ValueError, match="zero-copy"):
        given(fallback="error")(x, REVERSED)
    with at.promote_options(fallback="error"):
        with pytest.raises(ValueError, match="zero-copy"):
            at_call(x, REVERSED)
        with pytest.warns(UserWarning, match="fell back to a copy"):
            given(fallback="copy")(x, REVERSED)
    with pytest.warns(UserWarning, match="fell back to a copy"):
        assert peer.numpy(at_call(x, REVERSED)).tolist() == [2.0, 1.0, 0.0]


def test_copy_of_numpy_alone_copies():
    x = np.ones(3)
    assert at.promote_scalars("x")(lambda x: x)(x) is x
    copied = at.promote_scalars("x", copy=True)(lambda x: x)(x)
    assert copied is not x and not np.shares_memory(copied, x)


def test_options_are_not_in_force_within_the_function(peer):
    x = peer.array([0.0], "float32")

    @at.promote_scalars("x", fallback="error")
    def f(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return at.maximum(x, REVERSED)

    assert peer.numpy(f(x)).tolist() == [2.0, 1.0, 0.0]


@pytest.mark.parametrize("bad", [{"copy": 1}, {"fallback": "warn"}, {"fallback": 1}], ids=str)
def test_bad_options_are_refused_by_name(bad):
    with pytest.raises((TypeError, ValueError), match=next(iter(bad))):
        at.promote(x="data", **bad)(lambda x: x)(1)


# --- compilers ----------------------------------------------------------------------------------------------------


@at.promote(x="data", y="data", ids="index", mask="mask", n="shape")
def traced(x, y, ids, mask, n=3, scale=2):
    total = at.segment_sum(at.where(mask, x, y), ids, n)
    return total * scale


@at.promote_scalars("x", "y")
def blend(x, y=0.5, *, z=1):
    return x * y + z


def whole(x, ids):
    return blend(traced(x, 1, ids, ids, n=3)) + blend(x=x[:3], y=2)


def test_jax_compiles_through_the_decorators():
    jax = pytest.importorskip("jax")
    x, ids = jax.numpy.arange(1.0, 5.0), jax.numpy.asarray([0, 1, 2, 2])
    want = np.asarray(whole(x, ids)).tolist()
    assert np.asarray(jax.jit(whole)(x, ids)).tolist() == want
    assert jax.vmap(whole)(x[None], ids[None]).tolist() == [want]
    slope = jax.grad(lambda x: whole(x, ids).sum())(x)
    assert slope.tolist() == jax.jit(jax.grad(lambda x: whole(x, ids).sum()))(x).tolist()


@pytest.mark.parametrize("xla", [False, True])
def test_tensorflow_traces_through_the_decorators(xla):
    tf = pytest.importorskip("tensorflow")
    x, ids = tf.range(1.0, 5.0), tf.constant([0, 1, 2, 2])
    want = whole(x, ids).numpy().tolist()
    assert tf.function(whole, jit_compile=xla)(x, ids).numpy().tolist() == want

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.int64)])
    def sized(x, n):
        return at.promote(x="data", n="shape")(lambda x, n: at.segment_sum(x, tf.zeros_like(x, tf.int32), n))(
            x, n
        )

    assert sized(x, tf.constant(2, tf.int64)).numpy().tolist() == [10.0, 0.0]


@pytest.mark.parametrize("dynamic", [False, True])
@COMPILES
def test_dynamo_inlines_the_decorators(torch, dynamic):
    torch._dynamo.reset()
    x, ids = torch.arange(1.0, 5.0), torch.tensor([0, 1, 2, 2])
    compiled = torch.compile(whole, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    assert compiled(x, ids).tolist() == whole(x, ids).tolist()

    @at.promote(x="data", n="shape", gone="index")
    def sized(x, n, *rest, other=None):
        return at.segment_sum(x, rest[0], n)

    def f(x, ids):
        return sized(x, at.shape(x)[0], ids)

    compiled = torch.compile(f, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    assert compiled(x, ids).tolist() == f(x, ids).tolist()
    y = x.clone().requires_grad_()
    compiled(y, ids).sum().backward()
    assert y.grad.tolist() == [1.0] * 4


@COMPILES
def test_torch_export_and_make_fx_go_through_the_decorators(torch):
    from torch.fx.experimental.proxy_tensor import make_fx

    class Model(torch.nn.Module):
        def forward(self, x, ids):
            return whole(x, ids)

    x, ids = torch.arange(1.0, 5.0), torch.tensor([0, 1, 2, 2])
    for strict in (False, True):
        program = torch.export.export(Model(), (x, ids), strict=strict)
        assert program.module()(x * 2, ids).tolist() == whole(x * 2, ids).tolist()
    assert make_fx(lambda x, ids: whole(x, ids))(x, ids)(x * 2, ids).tolist() == whole(x * 2, ids).tolist()


# --- memory, threads --------------------------------------------------------------------------------------------------


def fails(call, error):
    """pytest.raises() keeps things for a while."""
    try:
        call()
    except error:
        return True
    return False


def test_calls_leave_no_references_behind(fw):
    if fw.leaks:
        pytest.skip("the framework's own calls leave memory behind")
    x, ids, mask = fw.array([1.0], "float32"), fw.array([0], "int64"), fw.array([1], "int64")
    size, host = fw.array(3, "int64"), np.ones(1)
    refused = at.promote_scalars("x", fallback="nonsense")(pair)

    def once():
        everything(x, ids, mask, size)
        everything(x, 1, mask, n=np.int64(4), other=host)
        pair(x, host)
        pair(x, y=2.0)
        for bad in ((x, x, mask, 3), (x, ids, mask, host), (x, ids, mask, 2.5), ([1], ids, mask, 2), (x,)):
            assert fails(lambda bad=bad: everything(*bad), TypeError)
        assert fails(lambda: refused(x, x), ValueError)

    counted = (x, ids, mask, size, host)
    for _ in range(20):
        once()
    before, grown = [sys.getrefcount(one) for one in counted], []
    for _ in range(5):  # a framework makes and releases things of its own now and then
        gc.collect()
        blocks = sys.getallocatedblocks()
        for _ in range(100):
            once()
        gc.collect()
        grown.append(sys.getallocatedblocks() - blocks)
    assert [sys.getrefcount(one) for one in counted] == before
    assert min(grown) < 100, grown


def test_many_operands(fw):
    names = [f"a{i}" for i in range(40)]
    space = {}
    exec(f"def f({', '.join(names)}): return ({', '.join(names)})", space)
    f = at.promote_scalars(*names)(space["f"])
    got = f(fw.array([1.0], "float32"), *range(39))
    assert dtypes(fw, got) == ["float32"] * 40 and float(fw.numpy(got[39])) == 38.0


def test_eight_threads(fw):
    x, failures = fw.array([1.0], "float32"), []

    def work():
        for i in range(50):
            y = pair(x, i)[1]
            if fw.dtype(y) != "float32" or float(fw.numpy(y)) != i:
                failures.append(y)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures
