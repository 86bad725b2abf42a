"""Arrays of the library's own, which share memory with every library that speaks DLPack.

    from anytensor import native

    x = native.from_dlpack(torch.ones(4))            # no copy
    total = at.segment_sum(x, ids, 3)                # a native.Array, computed without any framework
    np.from_dlpack(total), torch.from_dlpack(total)  # no copy

NumPy arrays may stand beside native ones and join them; arrays of another framework are refused, as ever.
"""

from . import _core

__all__ = ["Array", "from_dlpack"]

Array = _core._NativeArray


def from_dlpack(x, /, *, copy=None):
    """An Array over the memory of x: any array with ``__dlpack__``, or a DLPack capsule, which is consumed.

    copy      True: always; None and False: never, and with False the producer must promise the same.
    Dtypes    bool, integers, float16, bfloat16, float32, float64.
    Errors    BufferError: another device than the CPU, another element type, what the producer cannot share
              TypeError: x is no such array
              ValueError: the capsule was consumed before.
    """
    return _core._native_from_dlpack(x, copy)
