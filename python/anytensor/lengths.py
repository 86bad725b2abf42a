"""Vectors of lengths: ids, splits and cuts of the parts that make up a batch.

    from anytensor import lengths

    lengths.lengths_to_ids(n_node, total=nodes)     # which graph each node belongs to
    lengths.batch_ids(senders, n_node, n_edge)      # ids within each graph to ids within the batch

All of it is made of the library's functions and of the arrays' own ``+`` and ``-``, and compiles where they do.
"""

import numpy

from . import _core

__all__ = ["batch_ids", "cuts_to_lengths", "lengths_to_ids", "lengths_to_splits", "unbatch_ids"]


def lengths_to_ids(lengths, *, total=None):
    """The number of the part that each element belongs to, in the dtype of the lengths.

    lengths (n) integers; total: their sum, which compilers need -> (total)
    Too large a total is filled with the last id, too small a one cuts, as in repeat().
    """
    ids = _core.arange(_core.shape(lengths)[0], dtype=lengths.dtype, like=lengths)
    return _core.repeat(ids, lengths, total_repeat_length=total)


def lengths_to_splits(lengths):
    """Where each part ends: running sums of the lengths, of which the last is the total.

    lengths any shape, flattened -> (n), at least as wide as the default integer
    """
    return _core.cumsum(_core.reshape(lengths, (-1,)))


def cuts_to_lengths(cuts, total):
    """The lengths of the parts between 0, the cuts and the total: one more than cuts.

    cuts (n) integers (a list or tuple is NumPy's), total an int or a 0-d array -> (n + 1), in the dtype of the cuts
    """
    if isinstance(cuts, (list, tuple)):
        cuts = numpy.asarray(cuts, dtype=numpy.int64)
    first = _core.zeros((1,), dtype=cuts.dtype, like=cuts)
    last = _core.full((1,), total, dtype=cuts.dtype, like=cuts)
    return _core.concatenate([cuts, last]) - _core.concatenate([first, cuts])


def batch_ids(ids, lengths, part_lengths):
    """Ids that count within each part as ids that count within the batch.

    ids (E) integers, part after part; lengths (n): how many there are to count in each part; part_lengths (n): how
    many of the ids each part has -> (E), in the dtype of ids
    Lengths join the framework of the ids. ValueError for part_lengths that can be read and do not add up to E.
    """
    ids, starts, _ = _starts(ids, lengths, part_lengths)
    return ids + starts


def unbatch_ids(ids, lengths, part_lengths):
    """batch_ids() undone, and cut into parts: a list of one array of ids per part, each counting within its part.

    ids (E), lengths (n), part_lengths (n) -> n arrays; none for n = 0
    The length of a part is a shape: a compiler must know part_lengths, as split() asks of its indices.
    """
    ids, starts, part_lengths = _starts(ids, lengths, part_lengths)
    parts = _core.shape(part_lengths)[0]
    if parts == 0:
        return []
    return _core.split(ids - starts, _core.cumsum(part_lengths)[:-1])


def _starts(ids, lengths, part_lengths):
    """Ids, what each is off by in a batch, and part_lengths, on one framework."""
    ids, lengths, part_lengths = _core.align_arrays(ids, lengths, part_lengths)
    starts = _core.astype(_core.cumsum(lengths) - lengths, ids.dtype)
    parts = _core.partition_ids(part_lengths, _core.shape(ids)[0])
    return ids, _core.take(starts, parts), part_lengths
