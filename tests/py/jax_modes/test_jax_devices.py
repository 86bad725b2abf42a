"""Where results lie: committed arrays, two devices, sharded arrays, shard_map; eight virtual CPU devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax_calls import CALLS, REFUSED_BY_NUMPY, arrays_for, check, eager, names_of, on_host, one_each, program

import anytensor as at

FAMILIES = pytest.mark.parametrize("family", CALLS)
JOINED = {"layout-18"}  # a scalar made an array of its own: free to follow others

# A NaN among rows of another shard: XLA's own all-reduce of maxima loses it on the CPU.
LOSES_NAN = {"extremes-1", "extremes-5", "extremes-9", "partition-5", "reductions-8"}


SHARD_MAP = pytest.mark.skipif(not hasattr(jax, "shard_map"), reason="jax.shard_map, from JAX 0.6 on")


@pytest.fixture
def mesh(devices):
    return Mesh(np.array(devices[:8]), ("e",))


def on(mesh, *axes):
    return NamedSharding(mesh, PartitionSpec(*axes))


# ---- one device
@FAMILIES
def test_results_stay_on_the_device_of_committed_arrays(devices, family):
    calls = tuple(call for call in one_each(CALLS[family]) if call.name not in JOINED)
    got = program(calls)(*[jax.device_put(x, devices[3]) for x in arrays_for(calls)])
    away = [call.name for call, y in zip(calls, got, strict=True) if y.devices() != {devices[3]}]
    assert away == []
    assert [call.name for call, y in zip(calls, got, strict=True) if not y._committed] == []
    check(calls, got, eager(calls))


@FAMILIES
def test_no_value_is_read(family, monkeypatch):
    """By the doors of an array to the host; JAX's transfer guard does not see them on a CPU."""
    calls = CALLS[family]
    given, want = [jnp.asarray(x) for x in arrays_for(calls)], eager(calls)

    def read(self, *args, **kwargs):
        raise AssertionError("a value was read")

    kind = type(jnp.ones(2))
    for door in ("__array__", "item", "__index__", "__int__", "__float__", "__bool__", "tolist"):
        monkeypatch.setattr(kind, door, read)
    with pytest.raises(AssertionError, match="read"):
        int(jnp.ones(()))
    got = program(calls)(*given)
    monkeypatch.undo()
    check(calls, got, want)


def test_results_of_uncommitted_arrays_stay_uncommitted():
    x, ids = jnp.arange(4.0), jnp.array([0, 1, 1, 0])
    for y in (
        at.exp(x),
        at.segment_sum(x, ids, 2),
        at.zeros_like(x),
        at.arange(3, like=x),
        at.full(2, x[0], like=x),
    ):
        assert not y._committed


def test_committed_beside_uncommitted_beside_numpy(devices):
    x = np.array([1.0, 2.0, 4.0], np.float32)
    ids = np.array([0, 1, 1])
    there = {devices[5]}
    far = jax.device_put(x, devices[5])
    for y in (
        at.segment_softmax(far, ids, 2),
        at.segment_sum(far, jnp.asarray(ids), 2),
        at.segment_sum(x, jax.device_put(ids, devices[5]), 2),
        at.segment_max_or_constant(far, ids, 3, constant=jnp.asarray(2.0)),
        at.maximum(x, far),
        at.maximum(jnp.asarray(x), far),
        at.where(x > 1, far, 0.0),
        at.clip(far, x * 0, jnp.asarray(3.0)),
        at.take(far, ids),
        at.take(x, jax.device_put(ids, devices[5])),
        at.concatenate([x, far, jnp.asarray(x)]),
        at.repeat(far, ids, total_repeat_length=2),
        at.repeat(far, ids),
        at.partition_sum(far, np.array([2, 1]), 3),
        at.full((2,), jnp.asarray(3.0), like=far),
        at.full_like(far, np.float32(3)),
    ):
        assert y.devices() == there and y._committed


def test_a_default_device_is_followed_by_uncommitted_work(devices):
    far = jax.device_put(jnp.ones(2), devices[1])
    with jax.default_device(devices[6]):
        x = jnp.ones(2)
        assert at.exp(x).devices() == at.zeros_like(x).devices() == {devices[6]}
        assert at.maximum(np.ones(2, np.float32), far).devices() == {devices[1]}
        assert at.zeros(3, like=far).devices() == {devices[1]}


def test_arange_takes_a_device_of_jax(devices):
    far = jax.device_put(jnp.ones(2), devices[1])
    assert at.arange(3, like=far, device=devices[2]).devices() == {devices[2]}


def test_two_devices_are_jaxs_own_error_with_a_note(devices):
    x, ids = jnp.arange(4.0), jnp.array([0, 1, 1, 0])
    near, far = jax.device_put(x, devices[1]), jax.device_put(ids, devices[2])
    with pytest.raises(ValueError) as plain:
        jnp.add(near, far)
    for run in (
        lambda: at.segment_sum(near, far, 2),
        lambda: at.maximum(near, jax.device_put(x, devices[2])),
    ):
        with pytest.raises(ValueError, match="incompatible devices") as caught:
            run()
        assert type(caught.value) is type(plain.value)
        assert any("anytensor." in note and "float32(4,)" in note for note in caught.value.__notes__)


@pytest.mark.filterwarnings("ignore:Some donated buffers")
def test_donated_arrays_are_jaxs_own_error():
    x, ids = jnp.ones(4), jnp.zeros(4, int)
    jax.jit(lambda v: v + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    for run in (
        lambda: at.segment_sum(x, ids, 2),
        lambda: at.exp(x),
        lambda: at.segment_max(jnp.ones(4), ids, x[0]),
    ):
        with pytest.raises((RuntimeError, ValueError), match="deleted"):  # JAX has two ways to say it
            run()
    size = jnp.array(2)
    jax.jit(lambda v: v + 1, donate_argnums=0)(size)
    with pytest.raises(RuntimeError, match="deleted") as caught:
        at.segment_sum(jnp.ones(4), ids, size)
    assert any("segment_sum" in note and "num_segments" in note for note in caught.value.__notes__)
    again = jax.jit(lambda v: at.segment_softmax(v, ids, 2), donate_argnums=0)
    assert again(jnp.ones(4)).tolist() == [0.25] * 4


# ---- sharded arrays
@FAMILIES
def test_results_of_sharded_arrays_lie_on_the_same_devices(mesh, devices, family):
    """Rows are spread over the mesh, all else is replicated on it."""
    calls = tuple(call for call in one_each(CALLS[family]) if call.name not in JOINED | REFUSED_BY_NUMPY)
    size = (16, 4)
    given = []
    for name, x in zip(names_of(calls), arrays_for(calls, *size), strict=True):
        split = x.ndim > 0 and x.shape[0] == 16 and name != "nodes"
        given.append(jax.device_put(x, on(mesh, "e") if split else on(mesh)))
    got = program(calls, 4, 16)(*given)
    away = [call.name for call, y in zip(calls, got, strict=True) if y.devices() != set(devices[:8])]
    assert away == []
    want = on_host(calls, *size)
    kept = [k for k, call in enumerate(calls) if call.name not in LOSES_NAN]
    some = tuple(calls[k] for k in kept)
    check(some, [got[k] for k in kept], [want[k] for k in kept], ulps=32)  # rows meet in another order


def test_what_stands_aside_fails_in_jax_alone(mesh):
    """When XLA's all-reduce on the CPU has learned NaN, this fails: then LOSES_NAN can go."""
    x = jax.device_put(jnp.arange(16.0).at[3].set(jnp.nan), on(mesh, "e"))
    assert not jnp.isnan(jnp.max(x)) and not jnp.isnan(jnp.min(x))


def test_like_keeps_a_sharding_where_the_shape_allows(mesh, devices):
    x = jax.device_put(jnp.ones((16, 2)), on(mesh, "e"))
    whole = set(devices[:8])
    same = [
        at.zeros((16, 2), like=x),
        at.ones((8,), dtype="int32", like=x),
        at.full((24, 3, 2), 1.5, like=x),
        at.full((16, 2), jnp.float32(2), like=x),
        at.zeros_like(x),
        at.ones_like(x, dtype="bool"),
        at.full_like(x, np.float32(2)),
        at.full_like(x, x[0, 0]),
        at.arange(16, like=x),
        at.arange(0, 4, 0.5, like=x),
    ]
    for y in same:
        assert y.sharding.is_equivalent_to(on(mesh, "e"), y.ndim) and y.devices() == whole, y.shape
    replicated = [
        at.zeros((3, 2), like=x),
        at.zeros((), like=x),
        at.full(5, jnp.float32(2), like=x),
        at.arange(3, like=x),
    ]
    for y in replicated:
        assert y.is_fully_replicated and y.devices() == whole, y.shape


def test_like_on_a_mesh_of_two_axes(devices):
    mesh = Mesh(np.array(devices[:8]).reshape(2, 4), ("a", "b"))
    x = jax.device_put(jnp.ones((4, 8)), on(mesh, "a", "b"))
    for shape, kept in (((4, 8), True), ((2, 4, 3), True), ((4, 6), False), ((8,), False), ((), False)):
        y = at.zeros(shape, like=x)
        assert y.devices() == set(devices[:8])
        assert y.sharding.is_equivalent_to(on(mesh, "a", "b") if kept else on(mesh), y.ndim), shape
    columns = jax.device_put(jnp.ones((3, 8)), on(mesh, None, ("a", "b")))
    assert at.segment_sum(columns, np.array([0, 1, 1]), 2).sharding.is_equivalent_to(columns.sharding, 2)
    assert at.zeros_like(columns).sharding == columns.sharding


def test_a_result_of_pmap_is_a_model_too(devices):
    x = jax.pmap(lambda v: v + 1)(jnp.ones((8, 3)))
    assert at.zeros_like(x).shape == (8, 3) and at.zeros(3, like=x).shape == (3,)
    if hasattr(x.sharding, "mesh"):  # in older JAX nothing tells how to make another array on its devices
        assert at.zeros_like(x).devices() == at.zeros(3, like=x).devices() == x.devices()


def test_under_jit_a_sharding_passes_through(mesh):
    x = jax.device_put(jnp.arange(32.0).reshape(16, 2), on(mesh, "e"))
    ids = jax.device_put(jnp.arange(16) % 3, on(mesh, "e"))
    got = jax.jit(lambda x, ids: at.segment_softmax(x, ids, 3))(x, ids)
    assert got.sharding.is_equivalent_to(on(mesh, "e"), 2)
    np.testing.assert_allclose(got, at.segment_softmax(np.asarray(x), np.asarray(ids), 3), 1e-6)
    pinned = jax.jit(lambda x: at.zeros_like(x), out_shardings=on(mesh, "e"))(x)
    assert pinned.sharding.is_equivalent_to(on(mesh, "e"), 2)


@pytest.mark.skipif(not hasattr(jax.sharding, "AxisType"), reason="explicit axes, from JAX 0.6 on")
def test_a_mesh_of_explicit_axes(devices):
    """Elementwise work carries the axes in the type; a scatter over a split axis is refused by JAX, as its own is."""
    mesh = jax.make_mesh((8,), ("e",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(mesh):
        x = jax.device_put(jnp.ones((16, 2)), on(mesh, "e"))
        ids = jax.device_put(jnp.zeros(16, int), on(mesh, "e"))
        for y in (at.exp(x), at.maximum(x, 2.0), at.where(x > 0, x, x), at.clip(x, 0.5, 0.75)):
            assert y.sharding.spec == PartitionSpec("e", None)
        for run in (at.segment_sum, jax.ops.segment_sum):
            with pytest.raises(Exception, match="sharding") as caught:
                run(x, ids, 4)
            assert type(caught.value).__name__ == "ShardingTypeError"


# ---- shard_map
@SHARD_MAP
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_segments_over_shards_and_a_sum_over_devices(mesh, compiled):
    split, whole = PartitionSpec("e"), PartitionSpec()
    x = jnp.arange(32.0).reshape(16, 2) / 8
    ids = jnp.array([0, 1, 2, 5, -1, 0, 1, 2] * 2)

    def sums(x, ids):
        total = jax.lax.psum(at.segment_sum(x, ids, 4), "e")
        rows = jax.lax.psum(at.segment_count(ids, 4), "e")
        return total / at.maximum(at.reshape(rows, (-1, 1)), 1.0)

    def softmax(x, ids):
        top = jax.lax.pmax(jax.lax.stop_gradient(at.segment_max_or_constant(x, ids, 4)), "e")
        own = at.clip(ids, 0, 3)
        e = at.where(at.reshape((ids >= 0) & (ids < 4), (-1, 1)), at.exp(x - at.take(top, own)), 0.0)
        total = jax.lax.psum(at.segment_sum(e, ids, 4), "e")
        return e / at.take(at.maximum(total, 1e-30), own)

    wrap = jax.jit if compiled else lambda f: f
    means = wrap(jax.shard_map(sums, mesh=mesh, in_specs=(split, split), out_specs=whole))(x, ids)
    np.testing.assert_allclose(means, at.segment_mean(x, ids, 4), 1e-6)
    shares = wrap(jax.shard_map(softmax, mesh=mesh, in_specs=(split, split), out_specs=split))(x, ids)
    np.testing.assert_allclose(shares, at.segment_softmax(x, ids, 4), 1e-6)


@SHARD_MAP
def test_gradients_through_shard_map(mesh):
    split, whole = PartitionSpec("e"), PartitionSpec()
    x = (jnp.arange(16.0) * 7 % 5) / 4
    ids = jnp.array([0, 1, 2, 5, -1, 0, 1, 2] * 2)

    def local(x, ids):
        return jax.lax.psum(at.segment_sum(at.exp(x), ids, 3), "e")

    shared = jax.shard_map(local, mesh=mesh, in_specs=(split, split), out_specs=whole)
    got = jax.jit(jax.grad(lambda x: (shared(x, ids) ** 2).sum()))(x)
    want = jax.jit(jax.grad(lambda x: (at.segment_sum(at.exp(x), ids, 3) ** 2).sum()))(x)
    np.testing.assert_allclose(got, want, 1e-6)


@SHARD_MAP
@pytest.mark.parametrize("family", ["sum", "extremes", "means", "partition"])
def test_whole_families_inside_shard_map(mesh, family):
    """Each device holds a whole problem of its own."""
    calls = CALLS[family][::2]
    each = [np.stack([x] * 8) for x in arrays_for(calls)]

    def local(*arrays):
        return [y[None] for y in program(calls)(*[x[0] for x in arrays])]

    spec = PartitionSpec("e")
    run = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=(spec,) * len(each), out_specs=spec))
    check(calls, [y[5] for y in run(*each)], eager(calls))
