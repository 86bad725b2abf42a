"""The functions as Python sees them: builtins with signatures and docstrings.

Accuses src/python/methods.c and tools/opgen.
"""

import inspect
import pathlib
import pickle
import pydoc

import pytest

import anytensor as at
from anytensor import _core

OPS = _core.ops
SIGNATURES = {
    "exp": "(x)",
    "log": "(x)",
    "sqrt": "(x)",
    **dict.fromkeys(("is_nan", "is_inf", "is_finite"), "(x)"),
    "equal_nan": "(x, y)",
    "fill_nan_mask": "(x, value=0.0)",
    "nan_to_num": "(x, *, nan=0.0, posinf=None, neginf=None)",
    "matmul": "(x, y)",
    "transpose": "(x, axes=None)",
    "split": "(x, indices_or_sections, axis=0)",
    "stack": "(arrays, axis=0)",
    "cast": "(x, dtype)",
    "rsqrt": "(x)",
    "maximum": "(x, y)",
    "minimum": "(x, y)",
    "where": "(condition, x, y)",
    "fill_nan": "(x, value=0.0)",
    "clip": "(x, min=None, max=None)",
    "cumsum": "(x, axis=0)",
    "take": "(x, indices, axis=0)",
    **dict.fromkeys(("sum", "prod", "mean", "min", "max"), "(x, axes=None, *, keepdims=False)"),
    "repeat": "(x, repeats, *, total_repeat_length=None, axis=None)",
    "reshape": "(x, shape)",
    "concatenate": "(arrays, axis=0)",
    "align_arrays": "(*arrays, copy=None, fallback=None)",
    "astype": "(x, dtype)",
    "full": "(shape, fill_value, *, dtype=None, like=None)",
    "zeros": "(shape, *, dtype=None, like=None)",
    "ones": "(shape, *, dtype=None, like=None)",
    "full_like": "(x, fill_value, dtype=None)",
    "zeros_like": "(x, dtype=None)",
    "ones_like": "(x, dtype=None)",
    "arange": "(start, /, stop=None, step=1, *, dtype=None, like=None, device=None)",
    **{
        f"segment_{op}": "(x, segment_ids, num_segments, sorted=False)"
        for op in ("sum", "min", "max", "mean", "variance", "normalize")
    },
    **{
        f"segment_{op}": "(x, segment_ids, num_segments, sorted=False)"
        for op in ("prod", "any", "all", "std", "argmin", "argmax")
    },
    "segment_logsumexp": "(logits, segment_ids, num_segments, sorted=False)",
    "segment_attention": "(logits, values, segment_ids, num_segments, sorted=False)",
    "segment_softmax": "(logits, segment_ids, num_segments, sorted=False)",
    "segment_count": "(segment_ids, num_segments, sorted=False)",
    **{
        f"segment_{op}_or_constant": "(x, segment_ids, num_segments, constant=0.0, sorted=False)"
        for op in ("min", "max")
    },
    "partition_ids": "(partitions, total_length)",
    **{f"partition_{op}": "(x, partitions, total_length)" for op in ("sum", "min", "max")},
    "partition_softmax": "(logits, partitions, total_length)",
}


def test_the_list_of_functions_is_that_of_the_surface():
    assert set(OPS) == {*SIGNATURES, "shape"}


@pytest.mark.parametrize("op", OPS)
def test_a_function_is_a_builtin_of_the_core(op):
    function = getattr(at, op)
    assert function is getattr(_core, op)
    assert inspect.isbuiltin(function)
    assert function.__name__ == op
    assert function.__module__ == "anytensor._core"
    assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize("op", sorted(SIGNATURES))
def test_a_signature_is_that_of_the_surface(op):
    assert str(inspect.signature(getattr(at, op))) == SIGNATURES[op]


def test_shape_has_a_signature():
    assert list(inspect.signature(at.shape).parameters) == ["x"]


@pytest.mark.parametrize("op", OPS)
def test_a_docstring_says_what_goes_in_and_what_comes_out(op):
    doc = getattr(at, op).__doc__
    assert len(doc.splitlines()) > 1
    assert "Shapes" in doc or op == "align_arrays"  # which takes any, and changes none
    assert op in pydoc.plain(pydoc.render_doc(getattr(at, op)))


OTHERS = (
    "__version__ backends cache promote promote_scalars empty_segment_identity enable_torchscript enable_typecheck "
    "get_backend module_if_loaded tree "
    "newaxis promote_options einsum pack rearrange reduce unpack ArrayT Axes Bool DtypeLike Float FloatArray Inexact "
    "Int IntArray Integer Num Real SegmentIds SegmentOut SegmentValues ShapeLike ShapeSize Shaped ShapedArray"
).split()


def test_all_names_of_the_package_are_there_and_no_others():
    assert set(at.__all__) == {*OPS, *_core.aliases, *_core.facts, *OTHERS}
    assert len(at.__all__) == len(set(at.__all__))
    assert all(hasattr(at, name) for name in at.__all__)
    assert at.__version__ == _core.__version__


def test_other_names_are_the_same_objects():
    assert _core.aliases == {
        "isnan": "is_nan",
        "isinf": "is_inf",
        "isfinite": "is_finite",
        "nan_fill": "fill_nan",
        "nan_fill_mask": "fill_nan_mask",
    }
    for name, of in _core.aliases.items():
        assert getattr(at, name) is getattr(at, of)


def test_stubs_name_every_function():
    text = pathlib.Path(at.__file__).with_name("_core.pyi").read_text()
    for op in OPS + _core.facts:
        assert f"def {op}(" in text
    for name, of in _core.aliases.items():
        assert f"{name} = {of}\n" in text
