"""A namespace for TensorFlow: tf.experimental.numpy, and under the Array API's names what is missing or other there.

Imported once a TensorFlow tensor was seen, so TensorFlow is loaded.
"""

import tensorflow as _tf

from . import _core

bool = _tf.bool  # not NumPy's, which tf.experimental.numpy has

_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float16", "bfloat16", "float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["floating"] = _KINDS["real floating"]  # as the first versions had it; no kind of the standard
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


def __getattr__(name):
    return getattr(_tf.experimental.numpy, name)


def _like():
    return _tf.constant(0)


def asarray(x, /, *, dtype=None, device=None, copy=None):
    x = _tf.convert_to_tensor(x)
    return _tf.identity(x) if dtype is None and copy else x if dtype is None else astype(x, dtype)


def astype(x, dtype, /, *, copy=True, device=None):
    return _tf.cast(x, dtype)


def concat(arrays, /, *, axis=0):
    return _core.concatenate(arrays, axis)


def permute_dims(x, /, axes=None):
    return _tf.transpose(x, axes)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    if include_initial:
        raise NotImplementedError("cumulative_sum: argument 'include_initial': TensorFlow has no such sum")
    if axis is None and x.shape.rank != 1:
        raise ValueError(f"cumulative_sum: argument 'axis': expected one for an array of rank {x.shape.rank}")
    return _core.cumsum(x if dtype is None else astype(x, dtype), axis or 0)


def clip(x, /, min=None, max=None):
    return _core.clip(x, min, max)


def isdtype(dtype, kind):
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    name = _tf.as_dtype(dtype).name
    if not isinstance(kind, str):
        return name == _tf.as_dtype(kind).name
    if kind not in _KINDS:
        raise ValueError(f"isdtype: argument 'kind': expected one of {', '.join(_KINDS)}, found {kind!r}")
    return name in _KINDS[kind]


def nan_to_num(x, /, nan=0.0, posinf=None, neginf=None):
    if not x.dtype.is_floating:
        return x
    posinf = x.dtype.max if posinf is None else posinf
    neginf = x.dtype.min if neginf is None else neginf
    x = _tf.where(_tf.math.is_nan(x), _tf.cast(nan, x.dtype), x)
    infinite = _tf.where(x > 0, _tf.cast(posinf, x.dtype), _tf.cast(neginf, x.dtype))
    return _tf.where(_tf.math.is_inf(x), infinite, x)


def repeat(x, repeats, /, *, axis=None):
    return _core.repeat(x, repeats, axis=axis)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None, **others):
    return _core.arange(start, stop, step, dtype=dtype, like=_like())


def zeros(shape, *, dtype=None, device=None):
    return _core.zeros(shape, dtype=dtype or _tf.float64, like=_like())


def ones(shape, *, dtype=None, device=None):
    return _core.ones(shape, dtype=dtype or _tf.float64, like=_like())


def full(shape, fill_value, *, dtype=None, device=None):
    value = _tf.convert_to_tensor(fill_value)
    return _core.full(shape, value, dtype=dtype or value.dtype, like=_like())
