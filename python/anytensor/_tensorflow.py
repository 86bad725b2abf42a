"""Derivatives of the ops that _core adds to TensorFlow, registered when its first tensor is seen.

A rule is made of ops that have derivatives, so that tapes nest. Where a tape is asked within a graph, or a forward
accumulator asks, the rule runs in a graph, and all of it is TensorFlow's own. Rows of ids that were dropped get
zero, whatever meets them: a product that is to vanish there is multiply_no_nan.
"""

from . import _core

_PREFIX = "Anytensor"
_RADIX = 4096  # numbers of segments are given in two digits, see tensorflow_ops.h
_CONSTANT = ("SegmentCount", "SlotIds", "SlotKept", "SlotCount", "PartitionIds")


def register(tensorflow, run):
    """Whether the ops are, or may become, this file's: their names are the process's, and the library might be there
    twice. run(op, *operands) runs one, or gives None."""
    from tensorflow.python.framework import op_def_registry, ops

    if op_def_registry.get(_PREFIX + "Spread") is not None:
        rule = ops.gradient_registry.lookup(_PREFIX + "Spread")
        return getattr(rule, "file", None) == _core.__file__
    for name, rule in _Rules(tensorflow, run).by_name().items():
        _register(tensorflow, _PREFIX + name, rule)
    for name in _CONSTANT:
        tensorflow.no_gradient(_PREFIX + name)
    return True


def _register(tensorflow, name, rule):
    """The operands behind those that a rule speaks of (ids, sizes, constants) have no derivative."""

    def gradients(op, grad):
        grad = tensorflow.convert_to_tensor(grad)  # of slices, where rows were gathered
        found = rule(op, grad)
        found = found if isinstance(found, tuple) else (found,)
        return *found, *[None] * (len(op.inputs) - len(found))

    gradients.file = _core.__file__
    tensorflow.RegisterGradient(name)(gradients)


class _Rules:
    """Each rule takes an op that was run and the derivative of its result, and gives those of its first operands."""

    def __init__(self, tf, run):
        self.tf = tf
        self.run = run

    def by_name(self):
        return {
            "SegmentSum": self.segment_sum,
            "SegmentMean": self.segment_mean,
            "SegmentMin": self.extreme,
            "SegmentMax": self.extreme,
            "SegmentMinOr": self.extreme,
            "SegmentMaxOr": self.extreme,
            "SegmentSoftmax": self.softmax,
            "SegmentNormalize": self.normalize,
            "SegmentSoftmaxBack": self.softmax_back_rule,
            "SegmentExtremeBack": self.extreme_back_rule,
            "Spread": self.spread_rule,
        }

    # --- what rules are made of: one of our ops, or what TensorFlow has for it ---

    def spread(self, rows, ids):
        """The row of each id; zero where there is none."""
        tf, y = self.tf, self.run(_PREFIX + "Spread", rows, ids)
        if y is not None:
            return y
        n = tf.shape(rows, tf.int64)[0]
        place = tf.bitcast(ids, tf.int64) if ids.dtype == tf.uint64 else tf.cast(ids, tf.int64)
        place = tf.where((place >= 0) & (place < n), place, n)
        none = tf.zeros(tf.concat([[1], tf.shape(rows)[1:]], 0), rows.dtype)
        more = tf.concat([rows, none], 0)
        # reshape makes the derivative dense, which nested forward accumulators ask for
        return tf.gather(tf.reshape(more, tf.shape(more)), place)

    def softmax_back(self, y, grad, ids, high, low):
        """y * (grad - the sum of y * grad)"""
        dx = self.run(_PREFIX + "SegmentSoftmaxBack", y, grad, ids, high, low)
        if dx is not None:
            return dx
        weight, wide = self.wide(y), self.wide(grad)
        part = self.tf.math.multiply_no_nan(wide, weight)
        total = _core.segment_sum(part, ids, high * _RADIX + low)
        return self.tf.cast(part - weight * self.spread(total, ids), y.dtype)

    def extreme_back(self, x, peak, grad, ids):
        """Rows that reach the extreme share its derivative equally."""
        tf, dx = self.tf, self.run(_PREFIX + "SegmentExtremeBack", x, peak, grad, ids)
        if dx is not None:
            return dx
        tie = tf.equal(x, self.spread(peak, ids))
        ties = _core.segment_sum(self.wide(tf.cast(tie, x.dtype)), ids, _core.shape(peak)[0])
        share = self.wide(grad) / tf.maximum(ties, tf.ones((), ties.dtype))
        return tf.cast(tf.where(tie, self.spread(share, ids), tf.zeros((), ties.dtype)), x.dtype)

    def wide(self, x):
        return self.tf.cast(x, self.tf.float32) if x.dtype.size == 2 else x

    # --- rules ---

    def segment_sum(self, op, grad):
        return self.spread(grad, op.inputs[1])

    def segment_mean(self, op, grad):
        tf, ids, wide = self.tf, op.inputs[1], self.wide(grad)
        rows = tf.cast(_core.segment_count(ids, _core.shape(grad)[0]), wide.dtype)
        rows = tf.maximum(rows, tf.ones((), rows.dtype))
        share = wide / tf.reshape(rows, [-1] + [1] * (grad.shape.rank - 1))
        return self.spread(tf.cast(share, grad.dtype), ids)

    def extreme(self, op, grad):
        return self.extreme_back(op.inputs[0], op.outputs[0], grad, op.inputs[1])

    def softmax(self, op, grad):
        return self.softmax_back(op.outputs[0], grad, *op.inputs[1:])

    def normalize(self, op, grad):
        """(grad - the sum of y * grad) / the sum of x; zero where that is zero."""
        tf, (x, ids, high, low) = self.tf, op.inputs
        n = high * _RADIX + low
        wide, y = self.wide(grad), self.wide(op.outputs[0])
        total = _core.segment_sum(self.wide(x), ids, n)
        none = tf.equal(total, tf.zeros((), total.dtype))
        inverse = tf.where(
            none, tf.zeros((), total.dtype), 1 / tf.where(none, tf.ones((), total.dtype), total)
        )
        off = wide - self.spread(_core.segment_sum(wide * y, ids, n), ids)
        return tf.cast(tf.math.multiply_no_nan(off, self.spread(inverse, ids)), x.dtype)

    def spread_rule(self, op, grad):
        rows, ids = op.inputs
        return _core.segment_sum(grad, ids, _core.shape(rows)[0])

    def extreme_back_rule(self, op, grad):
        """Linear in the derivative of the extreme; the ties themselves do not move."""
        x, peak, _, ids = op.inputs
        share = self.extreme_back(x, peak, self.tf.ones_like(peak), ids)
        rows = self.tf.math.multiply_no_nan(grad, share)
        return None, None, _core.segment_sum(rows, ids, _core.shape(peak)[0])

    def softmax_back_rule(self, op, grad):
        tf, (y, dy, ids, high, low) = self.tf, op.inputs
        n = high * _RADIX + low
        weight, first, second = self.wide(y), self.wide(dy), self.wide(grad)
        kept = self.spread(tf.ones_like(_core.segment_count(ids, n)), ids)
        kept = tf.cast(tf.reshape(kept, [-1] + [1] * (y.shape.rank - 1)), weight.dtype)
        of_first = first - self.spread(_core.segment_sum(weight * first, ids, n), ids)
        of_second = self.spread(_core.segment_sum(weight * second, ids, n), ids)
        for_y = tf.math.multiply_no_nan(second * of_first - first * of_second, kept)
        return tf.cast(for_y, y.dtype), self.softmax_back(y, grad, ids, high, low)
