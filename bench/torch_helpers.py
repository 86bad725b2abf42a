"""Helpers with torch's derivative: forward and backward in one call."""

from helpers import neighbor_attention


def attention_and_gradient(messages, scores, receivers, num_nodes):
    messages, scores = messages.detach().requires_grad_(), scores.detach().requires_grad_()
    neighbor_attention(messages, scores, receivers, num_nodes).sum().backward()
    return scores.grad
