"""What is measured: one list, read by run.py (which prints it) and worker.py (which runs it).

A call is written with f for the function and the names of worker.py's arrays; raw is the framework's own function
and, where it is spelled otherwise, its call. A later figure is one more line here.
"""

from dataclasses import dataclass

OVER_RAW = "over the raw call"
IN_ALL = "in all"
FASTER = "times faster than the reference"
FASTER_RAW = "times faster than the raw call"
FRAMEWORKS = ("numpy", "torch", "jax", "tensorflow")


@dataclass(frozen=True)
class Figure:
    name: str
    framework: str
    measure: str
    function: str  # path to ours (and the reference's): module.name
    call: str
    target: float | None = None  # microseconds at most, or times at least; None: only told
    raw: str = ""  # path to the framework's function
    raw_call: str = ""

    @property
    def key(self):
        return f"{self.framework}: {self.name} {self.measure}"


def over_raw(name, framework, target, call, raw, raw_call=""):
    return Figure(name, framework, OVER_RAW, f"anytensor.{name}", call, target, raw, raw_call or call)


ASKED = [
    over_raw("exp", "numpy", 0.05, "f(x)", "numpy.exp"),
    over_raw("exp", "torch", 0.15, "f(x)", "torch.exp"),
    over_raw("maximum", "numpy", 0.1, "f(x, y)", "numpy.maximum"),
    over_raw("maximum", "torch", 0.25, "f(x, y)", "torch.maximum"),
    Figure("maximum(x, 2.0)", "numpy", IN_ALL, "anytensor.maximum", "f(x, 2.0)", 0.5),
    *(
        Figure(
            "neighbor_attention", framework, FASTER, "helpers.neighbor_attention", "f(xx, x, ids, 4)", target
        )
        for framework, target in (("numpy", 25), ("torch", 8), ("jax", None), ("tensorflow", None))
    ),
    Figure(
        "neighbor_attention, forward and backward",
        "torch",
        FASTER,
        "torch_helpers.attention_and_gradient",
        "f(xx, x, ids, 4)",
        2.5,
    ),
    # JAX hands results out before they are there: both sides wait
    Figure(
        "segment_sum of fresh values",
        "jax",
        FASTER_RAW,
        "anytensor.segment_sum",
        "f(next(fresh), ids, 4).block_until_ready()",
        20,
        "jax.ops.segment_sum",
        "f(next(fresh), ids, 4).block_until_ready()",
    ),
    Figure(
        "segment_sum under jax.grad",
        "jax",
        FASTER_RAW,
        "jax_helpers.gradient",
        "f(next(fresh), ids, 4)",
        3,
        "jax_helpers.raw_gradient",
        "f(next(fresh), ids, 4)",
    ),
    Figure(
        "segment_sum, first call of a size",
        "jax",
        FASTER_RAW,
        "jax_helpers.first_call",
        "f()",
        1,
        "jax_helpers.raw_first_call",
        "f()",
    ),
]
IMPORT_TARGET = 30.0  # ms that `import anytensor` may take over `import numpy`

# name: our call, then per framework the raw function, or (function, call). Names are worker.py's.
EVERY_OP = {
    "log": (
        "f(y)",
        {
            "numpy": "numpy.log",
            "torch": "torch.log",
            "jax": "jax.numpy.log",
            "tensorflow": "tensorflow.math.log",
        },
    ),
    "sqrt": (
        "f(y)",
        {
            "numpy": "numpy.sqrt",
            "torch": "torch.sqrt",
            "jax": "jax.numpy.sqrt",
            "tensorflow": "tensorflow.math.sqrt",
        },
    ),
    "rsqrt": ("f(y)", {"torch": "torch.rsqrt", "tensorflow": "tensorflow.math.rsqrt"}),
    "minimum": (
        "f(x, y)",
        {
            "numpy": "numpy.minimum",
            "torch": "torch.minimum",
            "jax": "jax.numpy.minimum",
            "tensorflow": "tensorflow.math.minimum",
        },
    ),
    "fill_nan": ("f(x, 0.0)", {"torch": ("torch.nan_to_num", "f(x, 0.0, inf, -inf)")}),
    "where": (
        "f(mask, x, y)",
        {
            "numpy": "numpy.where",
            "torch": "torch.where",
            "jax": "jax.numpy.where",
            "tensorflow": "tensorflow.where",
        },
    ),
    "clip": (
        "f(x, -1.0, 1.0)",
        {
            "numpy": "numpy.clip",
            "torch": "torch.clip",
            "jax": "jax.numpy.clip",
            "tensorflow": "tensorflow.clip_by_value",
        },
    ),
    "sum": (
        "f(xx, 0)",
        {
            "numpy": "numpy.sum",
            "torch": "torch.sum",
            "jax": "jax.numpy.sum",
            "tensorflow": "tensorflow.math.reduce_sum",
        },
    ),
    "prod": (
        "f(xx, 0)",
        {
            "numpy": "numpy.prod",
            "torch": "torch.prod",
            "jax": "jax.numpy.prod",
            "tensorflow": "tensorflow.math.reduce_prod",
        },
    ),
    "mean": (
        "f(xx, 0)",
        {
            "numpy": "numpy.mean",
            "torch": "torch.mean",
            "jax": "jax.numpy.mean",
            "tensorflow": "tensorflow.math.reduce_mean",
        },
    ),
    "min": (
        "f(xx, 0)",
        {
            "numpy": "numpy.min",
            "torch": "torch.amin",
            "jax": "jax.numpy.min",
            "tensorflow": "tensorflow.math.reduce_min",
        },
    ),
    "max": (
        "f(xx, 0)",
        {
            "numpy": "numpy.max",
            "torch": "torch.amax",
            "jax": "jax.numpy.max",
            "tensorflow": "tensorflow.math.reduce_max",
        },
    ),
    "cumsum": (
        "f(x, 0)",
        {
            "numpy": "numpy.cumsum",
            "torch": "torch.cumsum",
            "jax": "jax.numpy.cumsum",
            "tensorflow": "tensorflow.math.cumsum",
        },
    ),
    "take": (
        "f(x, ids)",
        {
            "numpy": "numpy.take",
            "torch": ("torch.Tensor.__getitem__", "f(x, ids)"),  # torch.take knows one axis only
            "jax": "jax.numpy.take",
            "tensorflow": "tensorflow.gather",
        },
    ),
    "repeat": (
        "f(x, 2)",
        {
            "numpy": "numpy.repeat",
            "torch": "torch.repeat_interleave",
            "jax": "jax.numpy.repeat",
            "tensorflow": "tensorflow.repeat",
        },
    ),
    "align_arrays": ("f(x, y)", {}),
    "shape": ("f(xx)", {"numpy": "numpy.shape"}),
    "reshape": (
        "f(xx, (2, 16))",
        {
            "numpy": "numpy.reshape",
            "torch": "torch.reshape",
            "jax": "jax.numpy.reshape",
            "tensorflow": "tensorflow.reshape",
        },
    ),
    "concatenate": (
        "f([x, y])",
        {
            "numpy": "numpy.concatenate",
            "torch": "torch.cat",
            "jax": "jax.numpy.concatenate",
            "tensorflow": ("tensorflow.concat", "f([x, y], 0)"),
        },
    ),
    "astype": (
        "f(x, float64)",
        {"numpy": "numpy.ndarray.astype", "torch": "torch.Tensor.to", "tensorflow": "tensorflow.cast"},
    ),
    "full": (
        "f((16,), 1.0, like=x)",
        {
            "numpy": ("numpy.full", "f((16,), 1.0)"),
            "torch": ("torch.full", "f((16,), 1.0)"),
            "jax": ("jax.numpy.full", "f((16,), 1.0)"),
            "tensorflow": ("tensorflow.fill", "f((16,), 1.0)"),
        },
    ),
    "zeros": (
        "f((16,), like=x)",
        {
            "numpy": ("numpy.zeros", "f((16,))"),
            "torch": ("torch.zeros", "f((16,))"),
            "jax": ("jax.numpy.zeros", "f((16,))"),
            "tensorflow": ("tensorflow.zeros", "f((16,))"),
        },
    ),
    "ones": (
        "f((16,), like=x)",
        {
            "numpy": ("numpy.ones", "f((16,))"),
            "torch": ("torch.ones", "f((16,))"),
            "jax": ("jax.numpy.ones", "f((16,))"),
            "tensorflow": ("tensorflow.ones", "f((16,))"),
        },
    ),
    "full_like": (
        "f(x, 1.0)",
        {"numpy": "numpy.full_like", "torch": "torch.full_like", "jax": "jax.numpy.full_like"},
    ),
    "zeros_like": (
        "f(x)",
        {
            "numpy": "numpy.zeros_like",
            "torch": "torch.zeros_like",
            "jax": "jax.numpy.zeros_like",
            "tensorflow": "tensorflow.zeros_like",
        },
    ),
    "ones_like": (
        "f(x)",
        {
            "numpy": "numpy.ones_like",
            "torch": "torch.ones_like",
            "jax": "jax.numpy.ones_like",
            "tensorflow": "tensorflow.ones_like",
        },
    ),
    "arange": (
        "f(16, like=x)",
        {
            "numpy": ("numpy.arange", "f(16)"),
            "torch": ("torch.arange", "f(16)"),
            "jax": ("jax.numpy.arange", "f(16)"),
            "tensorflow": ("tensorflow.range", "f(16)"),
        },
    ),
    "cast": (
        "f(x, float64)",
        {"numpy": "numpy.ndarray.astype", "torch": "torch.Tensor.to", "tensorflow": "tensorflow.cast"},
    ),
    "transpose": (
        "f(xx)",
        {
            "numpy": "numpy.transpose",
            "torch": "torch.t",
            "jax": "jax.numpy.transpose",
            "tensorflow": "tensorflow.transpose",
        },
    ),
    "stack": (
        "f([x, y])",
        {
            "numpy": "numpy.stack",
            "torch": "torch.stack",
            "jax": "jax.numpy.stack",
            "tensorflow": "tensorflow.stack",
        },
    ),
    "split": (
        "f(x, 2)",
        {
            "numpy": "numpy.split",
            "torch": "torch.tensor_split",
            "jax": "jax.numpy.split",
            "tensorflow": "tensorflow.split",
        },
    ),
    "matmul": (
        "f(x, xx)",
        {
            "numpy": "numpy.matmul",
            "torch": "torch.matmul",
            "jax": "jax.numpy.matmul",
            "tensorflow": ("tensorflow.linalg.matvec", "f(xx, x, transpose_a=True)"),
        },
    ),
    "is_nan": (
        "f(x)",
        {
            "numpy": "numpy.isnan",
            "torch": "torch.isnan",
            "jax": "jax.numpy.isnan",
            "tensorflow": "tensorflow.math.is_nan",
        },
    ),
    "is_inf": (
        "f(x)",
        {
            "numpy": "numpy.isinf",
            "torch": "torch.isinf",
            "jax": "jax.numpy.isinf",
            "tensorflow": "tensorflow.math.is_inf",
        },
    ),
    "is_finite": (
        "f(x)",
        {
            "numpy": "numpy.isfinite",
            "torch": "torch.isfinite",
            "jax": "jax.numpy.isfinite",
            "tensorflow": "tensorflow.math.is_finite",
        },
    ),
    "fill_nan_mask": ("f(x, 0.0)", {}),
    "nan_to_num": (
        "f(x)",
        {"numpy": "numpy.nan_to_num", "torch": "torch.nan_to_num", "jax": "jax.numpy.nan_to_num"},
    ),
    "equal_nan": ("f(x, y)", {}),
    "segment_prod": ("f(xx, ids, 4)", {"tensorflow": "tensorflow.math.unsorted_segment_prod"}),
    "segment_any": ("f(mask, ids, 4)", {}),
    "segment_all": ("f(mask, ids, 4)", {}),
    "segment_std": ("f(xx, ids, 4)", {}),
    "segment_argmin": ("f(xx, ids, 4)", {}),
    "segment_argmax": ("f(xx, ids, 4)", {}),
    "segment_logsumexp": ("f(x, ids, 4)", {}),
    "segment_attention": ("f(x, xx, ids, 4)", {}),
    "segment_sum": (
        "f(xx, ids, 4)",
        {"jax": "jax.ops.segment_sum", "tensorflow": "tensorflow.math.unsorted_segment_sum"},
    ),
    "segment_max": (
        "f(xx, ids, 4)",
        {"jax": "jax.ops.segment_max", "tensorflow": "tensorflow.math.unsorted_segment_max"},
    ),
    "segment_min": (
        "f(xx, ids, 4)",
        {"jax": "jax.ops.segment_min", "tensorflow": "tensorflow.math.unsorted_segment_min"},
    ),
    "segment_mean": ("f(xx, ids, 4)", {}),
    "segment_variance": ("f(xx, ids, 4)", {}),
    "segment_normalize": ("f(xx, ids, 4)", {}),
    "segment_softmax": ("f(x, ids, 4)", {}),
    "segment_count": ("f(ids, 4)", {}),
    "segment_min_or_constant": ("f(xx, ids, 4)", {}),
    "segment_max_or_constant": ("f(xx, ids, 4)", {}),
    "partition_ids": ("f(counts, 16)", {}),
    "partition_sum": ("f(xx, counts, 16)", {}),
    "partition_min": ("f(xx, counts, 16)", {}),
    "partition_max": ("f(xx, counts, 16)", {}),
    "partition_softmax": ("f(x, counts, 16)", {}),
}


def told(name, framework):
    call, raws = EVERY_OP[name]
    raw = raws.get(framework, "")
    raw, raw_call = raw if isinstance(raw, tuple) else (raw, call)
    measure = OVER_RAW if raw else IN_ALL
    return Figure(name, framework, measure, f"anytensor.{name}", call, None, raw, raw_call)


TOLD = [told(name, framework) for name in EVERY_OP for framework in FRAMEWORKS]
FIGURES = {figure.key: figure for figure in ASKED + TOLD}
