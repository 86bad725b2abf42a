"""What is measured: one list, read by run.py (which prints it) and worker.py (which runs it).

A call is written with f for the function and the names of worker.py's arrays; raw is the framework's own function
and, where it is spelled otherwise, its call. A later figure is one more line here.
"""

from dataclasses import dataclass

OVER_RAW = "over the raw call"
IN_ALL = "in all"
FASTER = "times faster than the reference"
FRAMEWORKS = ("numpy", "torch")


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
        for framework, target in (("numpy", 25), ("torch", 3))
    ),
]
IMPORT_TARGET = 30.0  # ms that `import anytensor` may take over `import numpy`

# name: our call, then per framework the raw function, or (function, call). Names are worker.py's.
EVERY_OP = {
    "log": ("f(y)", {"numpy": "numpy.log", "torch": "torch.log"}),
    "sqrt": ("f(y)", {"numpy": "numpy.sqrt", "torch": "torch.sqrt"}),
    "rsqrt": ("f(y)", {"torch": "torch.rsqrt"}),
    "minimum": ("f(x, y)", {"numpy": "numpy.minimum", "torch": "torch.minimum"}),
    "fill_nan": ("f(x, 0.0)", {"torch": ("torch.nan_to_num", "f(x, 0.0, inf, -inf)")}),
    "where": ("f(mask, x, y)", {"numpy": "numpy.where", "torch": "torch.where"}),
    "clip": ("f(x, -1.0, 1.0)", {"numpy": "numpy.clip", "torch": "torch.clip"}),
    "sum": ("f(xx, 0)", {"numpy": "numpy.sum", "torch": "torch.sum"}),
    "prod": ("f(xx, 0)", {"numpy": "numpy.prod", "torch": "torch.prod"}),
    "mean": ("f(xx, 0)", {"numpy": "numpy.mean", "torch": "torch.mean"}),
    "min": ("f(xx, 0)", {"numpy": "numpy.min", "torch": "torch.amin"}),
    "max": ("f(xx, 0)", {"numpy": "numpy.max", "torch": "torch.amax"}),
    "cumsum": ("f(x, 0)", {"numpy": "numpy.cumsum", "torch": "torch.cumsum"}),
    "take": ("f(x, ids)", {"numpy": "numpy.take", "torch": "torch.take"}),
    "repeat": ("f(x, 2)", {"numpy": "numpy.repeat", "torch": "torch.repeat_interleave"}),
    "shape": ("f(xx)", {"numpy": "numpy.shape"}),
    "reshape": ("f(xx, (2, 16))", {"numpy": "numpy.reshape", "torch": "torch.reshape"}),
    "concatenate": ("f([x, y])", {"numpy": "numpy.concatenate", "torch": "torch.cat"}),
    "astype": ("f(x, float64)", {"numpy": "numpy.ndarray.astype", "torch": "torch.Tensor.to"}),
    "full": (
        "f((16,), 1.0, like=x)",
        {"numpy": ("numpy.full", "f((16,), 1.0)"), "torch": ("torch.full", "f((16,), 1.0)")},
    ),
    "zeros": (
        "f((16,), like=x)",
        {"numpy": ("numpy.zeros", "f((16,))"), "torch": ("torch.zeros", "f((16,))")},
    ),
    "ones": ("f((16,), like=x)", {"numpy": ("numpy.ones", "f((16,))"), "torch": ("torch.ones", "f((16,))")}),
    "full_like": ("f(x, 1.0)", {"numpy": "numpy.full_like", "torch": "torch.full_like"}),
    "zeros_like": ("f(x)", {"numpy": "numpy.zeros_like", "torch": "torch.zeros_like"}),
    "ones_like": ("f(x)", {"numpy": "numpy.ones_like", "torch": "torch.ones_like"}),
    "arange": ("f(16, like=x)", {"numpy": ("numpy.arange", "f(16)"), "torch": ("torch.arange", "f(16)")}),
    "segment_sum": ("f(xx, ids, 4)", {}),
    "segment_max": ("f(xx, ids, 4)", {}),
    "segment_min": ("f(xx, ids, 4)", {}),
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
