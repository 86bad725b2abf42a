"""Ways of making a call besides the plain one: compiled, with the framework's arrays as the arguments of the program
and everything else, sizes and NumPy's arrays among them, closed over.

Each mode has a name, the row it runs on, a function that makes a call, and what it does in its own way where
SEMANTICS leaves it to the framework (18: out of range; 9: lengths that are read).
"""

import copy
from dataclasses import dataclass, replace

from case import A, build, operands
from frameworks import FOUND, framework, installed

import anytensor as at


def traced_arguments(fw, call):
    """(arrays of the framework, rebuild): rebuild(arrays) is the call's args and kwargs with these in their places."""
    numpy = framework("numpy")
    ours = [v for v in operands([*call.args, *call.kwargs.values()]) if isinstance(v, A) and not v.host]
    order = {id(v): k for k, v in enumerate(ours)}

    def put(value, arrays):
        if id(value) in order:
            return arrays[order[id(value)]]
        if isinstance(value, (list, tuple)):
            return type(value)(put(one, arrays) for one in value)
        if isinstance(value, dict):
            return {name: put(one, arrays) for name, one in value.items()}
        return build(fw, value, numpy)

    return [build(fw, v) for v in ours], lambda arrays: (put(call.args, arrays), put(call.kwargs, arrays))


def program_of(fw, call):
    arrays, rebuild = traced_arguments(fw, call)
    function = getattr(at, call.op)

    def program(*arrays):
        args, kwargs = rebuild(arrays)
        return function(*args, **kwargs)

    return program, arrays


def jax_jit(fw, call):
    program, arrays = program_of(fw, call)
    return fw.jax.jit(program)(*arrays)


def with_plain_total(call):
    """torch refuses a number that is read while it compiles and decides no shape: here the total is one beside rows."""

    def plain(value):
        return int(value.data) if isinstance(value, A) and value.data.ndim == 0 else value

    if not call.op.startswith("partition_") or call.op == "partition_ids":
        return call
    kwargs = {name: plain(value) for name, value in call.kwargs.items()}
    return replace(call, args=tuple(map(plain, call.args)), kwargs=kwargs)


def torch_compile(fw, call):
    """Dynamo reads Python: the arguments are written out, and NumPy's arrays handed in (it cannot close over them)."""
    arrays, rebuild = traced_arguments(fw, with_plain_total(call))
    args, kwargs = rebuild(arrays)
    function = getattr(at, call.op)

    def program(args, kwargs):
        return function(*args, **kwargs)

    fw.torch._dynamo.reset()
    with fw.torch._dynamo.config.patch(capture_scalar_outputs=True):
        return fw.torch.compile(program, fullgraph=True, backend="aot_eager")(args, kwargs)


def tf_function(fw, call, **options):
    program, arrays = program_of(fw, call)
    return fw.tf.function(program, autograph=False, **options)(*arrays)


def tf_xla(fw, call):
    return tf_function(fw, call, jit_compile=True)


@dataclass(frozen=True)
class Mode:
    row: str
    make: object
    examples: int
    ways: tuple = ()  # attributes of the row that are otherwise in this mode

    def answers(self):
        """The row, as it is in this mode."""
        row = copy.copy(framework(self.row))
        for name, value in self.ways:
            setattr(row, name, value)
        return row


NEVER_READS = ("reads_counts", False)
NO_BFLOAT16 = (
    "host_lacks",
    ("bfloat16",),
)  # Dynamo makes tensors of NumPy's arrays, and does not know ml_dtypes
FILLS = ("take_out_of_range", "fills")
MODES = {
    "jit": Mode("jax", jax_jit, 3),
    "compile": Mode("torch", torch_compile, 3, (NEVER_READS, NO_BFLOAT16)),
    "graph": Mode("tensorflow", tf_function, 8, (NEVER_READS, ("runs_later", True))),
    "xla": Mode("tensorflow", tf_xla, 3, (NEVER_READS, FILLS)),
}
FOUND_MODES = [
    name
    for name, mode in MODES.items()
    if mode.row in FOUND and (name != "compile" or installed("torch") >= (2, 6))  # frameworks.COMPILES
]
