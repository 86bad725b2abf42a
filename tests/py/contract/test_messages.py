"""Each error message of ours is met by a test, in the words of the sources (DESIGN 8, SEMANTICS 25).

The messages are read off the calls that raise them, in SOURCES. BAD makes a bad call for each, on NumPy and, where it
needs one, on torch or JAX. A message that no bad call meets fails here, unless ELSEWHERE says what meets it. That a
message comes for *every* function and argument is for test_errors.py.
"""

import importlib.util
import pathlib
import re

import numpy as np
import pytest
from frameworks import installed

import anytensor as at

ROOT = pathlib.Path(__file__).resolve().parents[3]
SOURCES = (
    *("src/ops/" + name for name in ("checks.c", "dispatch.c", "partition.c", "segment.c", "elementwise.c")),
    "src/core/promote.c",
    "src/python/args.c",
    "src/python/options.c",
)
SELECTION = "rest"  # torch is taken for its second framework

TEXT = r'"(?:[^"\\]|\\.)*"'
CALL = re.compile(
    r"\b(ati_fail|at_error|PyErr_Format|PyErr_SetString|refuse)\s*\("
    rf"((?:[^()\";]|{TEXT}|\((?:[^()]|\([^()]*\))*\))*)\)"
)
PLACE = re.compile(r"%(?:\.\d+)?(?:ll|z)?[a-zA-Z]")

if installed("numpy") < (2,):
    pytest.skip("some calls need arrays of more than 32 axes, from NumPy 2 on", allow_module_level=True)
x, v, ids = np.ones((3, 2), "float32"), np.ones(3, "float32"), np.array([0, 1, 1])
counts = np.array([1, 2])
small = np.zeros(3, "int8")
odd = np.zeros(3, "complex64")
nested = np.ones((1,) * 33)


def torch_beside_jax():
    import jax
    import torch

    at.maximum(torch.ones(2), jax.numpy.ones(2))


def size_beside_another():
    import jax
    import torch

    at.segment_sum(torch.ones(3), torch.tensor([0, 1, 1]), jax.numpy.asarray(2))


def torch_of_its_own_dtype():
    import torch

    at.maximum(torch.ones(2, dtype=torch.complex64), 1.0)


def full_of_its_own_dtype():
    import torch

    at.full_like(torch.ones(2, dtype=torch.complex64), 1.0)


def segments_of_its_own_dtype():
    import torch

    at.segment_max(torch.ones(2, dtype=torch.complex64), torch.tensor([0, 1]), 2)


def nan_to_num_of_its_own_dtype():
    import torch

    at.nan_to_num(torch.ones(2, dtype=torch.complex64))


def symbol_beside_numpy():
    """A size that a trace does not know, beside NumPy's arrays."""
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    make_fx(lambda t: at.segment_sum(v, ids, t.shape[0]), tracing_mode="symbolic")(torch.ones(5))


def sections_of_a_trace():
    """A number of sections that a trace does not know."""
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    make_fx(lambda t: at.split(t, t.shape[0])[0], tracing_mode="symbolic")(torch.ones(5))


class NoIndex:
    def __index__(self):
        raise AttributeError("as of TensorFlow's tensors of floats")


BAD = [
    lambda: at.segment_sum(x, ids, -1),
    lambda: at.repeat(v, 2, total_repeat_length=-1),
    lambda: at.zeros((-1,)),
    lambda: at.segment_max_or_constant(x, ids, 2, np.zeros((5, 7))),
    lambda: at.segment_sum(x, ids[None], 2),
    lambda: at.segment_sum(np.float32(1), ids, 2),
    lambda: at.segment_sum(x, ids[:2], 2),
    lambda: at.partition_ids(np.array([-1, 4]), 3),
    lambda: at.partition_ids(counts, 4),
    lambda: at.partition_sum(x, np.array([1, 3]), 4),
    lambda: at.reshape(x, (-1, -1)),
    lambda: at.maximum(small, 300),
    lambda: at.full((2,), 300, dtype="int8"),
    lambda: at.full((2,), np.nan, dtype="int8"),
    lambda: at.full((2,), 300.5, dtype="int8"),
    lambda: at.repeat(v, 1.5),
    lambda: at.repeat(v, -1),
    lambda: at.repeat(v, 2**62),
    lambda: at.repeat(v, 2, total_repeat_length=3, axis=0),
    lambda: at.repeat(v, ids[None], total_repeat_length=3),
    lambda: at.repeat(v, counts, total_repeat_length=3),
    lambda: at.cumsum(np.float32(1)),
    lambda: at.cumsum(x, None),
    lambda: at.arange(x),
    lambda: at.arange(3, step=0),
    lambda: at.concatenate([]),
    lambda: at.take(x, v),
    lambda: at.take(x, 2**70),
    lambda: at.exp(None),
    lambda: at.exp(object()),
    lambda: at.exp([1.0]),
    lambda: at.sum(x, 1.5),
    lambda: at.sum(x, None, keepdims=False, nonsense=1),
    lambda: at.sum(x, NoIndex()),
    lambda: at.sum(x, 2**40),
    lambda: at.sum(x, (0,) * 70),
    lambda: at.concatenate(x),
    lambda: at.segment_sum(x, ids, 2**63),
    lambda: at.segment_sum(x, ids, 2.5),
    lambda: at.segment_sum(x, ids, None),
    lambda: at.segment_sum(x, ids, "2"),
    lambda: at.segment_sum(x, ids, True),
    lambda: at.segment_sum(x, ids, np.array([2])),
    lambda: at.segment_sum(x, ids, np.array(-2)),
    lambda: at.segment_sum(x, ids),
    lambda: at.segment_sum(x, ids, 2, False, 5),
    lambda: at.segment_sum(x, ids, 2, x=x),
    lambda: at.zeros((1,) * 70),
    lambda: at.zeros("3"),
    lambda: at.astype(x, "foo"),
    lambda: at.astype(x, None),
    lambda: at.split(x, 0),
    lambda: at.split(x, 2),
    lambda: at.split(np.float32(1), 1),
    lambda: at.split(x, 1, axis=5),
    lambda: at.split(x, 1, axis=None),
    lambda: at.stack([x, v]),
    lambda: at.stack([np.ones((1,) * 32)]),
    lambda: at.transpose(x, (0, 0)),
    lambda: at.segment_attention(x, v, ids, 2),
    lambda: at.matmul(x, x),
    lambda: at.matmul(x, np.float32(1)),
    lambda: at.align_arrays(x, nonsense=1),
    lambda: at.align_arrays(x, copy=1),
    lambda: at.align_arrays(x, fallback="else"),
    lambda: at.align_arrays(x, fallback=1),
]
WITH_FRAMEWORKS = [
    torch_beside_jax,
    size_beside_another,
    torch_of_its_own_dtype,
    full_of_its_own_dtype,
    segments_of_its_own_dtype,
    nan_to_num_of_its_own_dtype,
    symbol_beside_numpy,
    sections_of_a_trace,
]
# Messages that no call from Python meets: a test of C that does, and words it looks for; or why there is none.
ELSEWHERE = {
    "argument '%s' is missing": ("tests/c/ops/test_segment.c", '"num_segments", "missing"'),
    "argument 'constant' is missing": ("tests/c/ops/test_segment.c", """"'constant'", "missing\""""),
    "argument 'repeats' is missing": ("tests/c/ops/test_layout.c", '"missing"'),
    "argument 'fill_value' is missing": ("tests/c/ops/test_construct.c", '"missing"'),
    "argument 'start' is missing": ("tests/c/ops/test_construct.c", '"missing"'),
    "argument 'nan' is missing": ("tests/c/ops/test_elementwise.c", """"nan_to_num", "'nan'\""""),
    "the partitions cannot be read": "only where reading host memory fails",
    "the repeats cannot be read": "only where reading host memory fails",
    "_enter_options(copy, fallback)": "the package's own call",
}


def found(*names):
    return all(importlib.util.find_spec(name) for name in names)


def messages():
    """{(file, format)} of the sources: what stands between quotes in a call that raises."""
    for source in SOURCES:
        text = (ROOT / source).read_text().replace('%" PRId64', '%lld"').replace('PRId64 "', '"')
        for function, arguments in CALL.findall(text):
            first = re.search(rf"{TEXT}(?:\s*{TEXT})*", arguments)  # literals side by side are one
            words = "".join(part[1:-1] for part in re.findall(TEXT, first.group() if first else ""))
            if PLACE.sub("", words).strip(": ") and words != "failed":
                yield source, f"expected {words}, found" if function == "refuse" else words


def pattern(words):
    return ".*".join(map(re.escape, PLACE.split(words)))


@pytest.fixture(scope="module")
def said():
    """What every bad call says."""
    texts = []
    for call in [*BAD, *(WITH_FRAMEWORKS if found("torch", "jax") else ())]:
        with pytest.raises(Exception) as caught:
            call()
        texts.append(str(caught.value))
    return texts


MESSAGES = sorted(set(messages()))


@pytest.mark.parametrize(("source", "words"), MESSAGES, ids=[words[:70] for _, words in MESSAGES])
def test_a_bad_call_meets_the_message(said, source, words):
    other = ELSEWHERE.get(words, ())
    if isinstance(other, str):
        pytest.skip(other)
    if other:
        assert other[1] in (ROOT / other[0]).read_text()
        return
    if not found("torch", "jax") and re.search("framework|own|symbolic|size of", words):
        pytest.skip("of two frameworks, or of a dtype of one's own")
    assert any(re.search(pattern(words), text, re.S) for text in said), f"{source}: no test meets {words!r}"


def test_messages_are_found_in_the_sources():
    assert len(MESSAGES) > 50
    gone = set(ELSEWHERE) - {words for _, words in MESSAGES}
    assert not gone
