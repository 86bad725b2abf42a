"""Derivatives of the ops that _core adds to TensorFlow, registered when its first tensor is seen.

A rule is written with ops that have derivatives, so that tapes may nest; where a tape meets a graph, or a forward
accumulator asks, the rule runs in a graph and all of it is TensorFlow's own.
"""

from . import _core

_PREFIX = "Anytensor"
_RADIX = 4096  # numbers of segments are given in two digits, see tensorflow_ops.h
_NAMES = ("SegmentSum", "SegmentMin", "SegmentMax", "SegmentSoftmax", "Spread")
_CONSTANT = ("SlotIds", "SlotKept", "SlotCount", "PartitionIds")


def register(tensorflow, run):
    """Whether the ops are, or may become, this file's: their names are the process's, and the library might be there
    twice. run(op, *operands) runs one, or gives None."""
    from tensorflow.python.framework import op_def_registry, ops

    registry = ops.gradient_registry
    rules = _rules(tensorflow, run)
    if op_def_registry.get(_PREFIX + "Spread") is not None:
        return getattr(registry.lookup(_PREFIX + "Spread"), "file", None) == _core.__file__
    for name, rule in rules.items():
        rule.file = _core.__file__
        tensorflow.RegisterGradient(_PREFIX + name)(rule)
    for name in _CONSTANT:
        tensorflow.no_gradient(_PREFIX + name)
    return True


def _rules(tf, run):
    def spread(rows, ids):
        """The row of each id; zero where there is none."""
        y = run(_PREFIX + "Spread", rows, ids)
        if y is not None:
            return y
        n = tf.shape(rows, tf.int64)[0]
        place = tf.bitcast(ids, tf.int64) if ids.dtype == tf.uint64 else tf.cast(ids, tf.int64)
        place = tf.where((place >= 0) & (place < n), place, n)
        # a row of zeros; the derivative of pad is dense, which nested forward accumulators ask for
        more = tf.pad(rows, [[0, 1]] + [[0, 0]] * (rows.shape.rank - 1))
        return tf.gather(more, place)

    def count(rows):
        return _core.shape(rows)[0]

    def dense(grad):
        return tf.convert_to_tensor(grad)  # of slices, where rows were gathered

    def segment_sum(op, grad):
        return spread(dense(grad), op.inputs[1]), None, None, None

    def spread_rule(op, grad):
        return _core.segment_sum(dense(grad), op.inputs[1], count(op.inputs[0])), None

    def extreme(op, grad):
        """Rows that reach the extreme share its gradient equally."""
        x, ids = op.inputs[:2]
        wide = tf.float32 if x.dtype.size == 2 else x.dtype
        tie = tf.equal(x, spread(op.outputs[0], ids))
        ties = _core.segment_sum(tf.cast(tie, wide), ids, count(op.outputs[0]))
        share = tf.cast(dense(grad), wide) / tf.maximum(ties, tf.ones((), wide))
        rows = tf.where(tie, spread(share, ids), tf.zeros((), wide))
        return tf.cast(rows, x.dtype), None, None, None

    def softmax(op, grad):
        """y * (grad - sum of y * grad), of which nothing remains where y is 0: in rows that were dropped."""
        y, ids = op.outputs[0], op.inputs[1]
        wide = tf.float32 if y.dtype.size == 2 else y.dtype
        weight, grad = tf.cast(y, wide), tf.cast(dense(grad), wide)
        part = tf.math.multiply_no_nan(grad, weight)
        total = _core.segment_sum(part, ids, op.inputs[2] * _RADIX + op.inputs[3])
        rows = part - weight * spread(total, ids)
        return tf.cast(rows, y.dtype), None, None, None

    return dict(zip(_NAMES, (segment_sum, extreme, extreme, softmax, spread_rule), strict=True))
