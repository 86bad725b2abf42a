"""Helpers as a user would write them, on whatever arrays the caller has; they run on ours and on the reference."""

import anytensor as at


def neighbor_attention(messages, scores, receivers, num_nodes):
    """Each node's mean of its incoming messages, weighted by a softmax of leaky scores."""
    scores = at.where(scores > 0, scores, scores * 0.2)
    weights = at.segment_softmax(scores, receivers, num_nodes)
    return at.segment_sum(messages * weights[:, None], receivers, num_nodes)
