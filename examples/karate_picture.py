"""Draws a small graph as SVG by hand: spring layout, two colours, attention as edge widths. NumPy only."""

from pathlib import Path

import numpy as np

WIDTH, HEIGHT, MARGIN, TOP = 1000, 820, 70, 96
FILL = {True: "#2f6db3", False: "#d9822b"}
LEADER_NAMES = {0: ("Mr. Hi", "above"), 33: ("John A.", "below")}


def spring_layout(n, senders, receivers, rounds=600, seed=4):
    """Positions in the unit square by Fruchterman and Reingold (1991): edges pull, all pairs push apart."""
    adjacent = np.zeros((n, n))
    adjacent[senders, receivers] = 1
    place = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    k = 1.6 / np.sqrt(n)  # the distance at which a lone edge rests
    for heat in np.linspace(0.2, 0.002, rounds):
        apart = place[:, None] - place[None]
        distance = np.maximum(np.hypot(apart[..., 0], apart[..., 1]), 1e-3)
        force = (k / distance) ** 2 - adjacent * distance / k
        step = (apart * force[..., None]).sum(1)
        length = np.maximum(np.hypot(step[:, 0], step[:, 1]), 1e-9)[:, None]
        place = place + step / length * np.minimum(length, heat)
    place = (place - place.mean(0)) @ np.linalg.svd(place - place.mean(0))[2].T  # longest extent lies level
    place[:, 0] *= np.sign(place[-1, 0])  # the last node on the right
    low, high = place.min(0), place.max(0)
    return (place - low) / (high - low)


def push_apart(xy, radius, rounds=50):
    """Moves circles that overlap until they touch."""
    for _ in range(rounds):
        apart = xy[:, None] - xy[None]
        distance = np.maximum(np.hypot(apart[..., 0], apart[..., 1]), 1e-6)
        overlap = np.maximum(radius[:, None] + radius[None] - distance, 0)
        np.fill_diagonal(overlap, 0)
        xy = xy + (apart / distance[..., None] * overlap[..., None] / 2).sum(1)
    return xy


def write_picture(path, n, senders, receivers, weights, left_side):
    """Writes the file, returns its path. A friendship shows the stronger attention of its two ways."""
    unit = spring_layout(n, senders, receivers)
    degree = np.bincount(receivers, minlength=n) - 1
    radius = 13 + 1.1 * degree
    xy = unit * [WIDTH - 2 * MARGIN, HEIGHT - TOP - 2 * MARGIN] + [MARGIN, TOP + MARGIN / 2]
    xy = push_apart(xy, radius + 5)
    stronger = {}
    for s, r, w in zip(senders.tolist(), receivers.tolist(), weights.tolist(), strict=True):
        if s != r:
            pair = (min(s, r), max(s, r))
            stronger[pair] = max(w, stronger.get(pair, 0.0))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        '<text x="30" y="40" font-size="24" font-weight="bold" fill="#222">'
        "Attention in Zachary's karate club</text>",
        '<text x="30" y="66" font-size="16" fill="#555">A line is a friendship; the wider, the more'
        " one of the two listens to the other. Colours: the side taken in the real split.</text>",
        *legend(),
    ]
    for (a, b), w in sorted(stronger.items(), key=lambda item: item[1]):
        same = left_side[a] == left_side[b]
        colour = FILL[bool(left_side[a])] if same else "#8a8a8a"
        parts.append(
            f'<line x1="{xy[a, 0]:.1f}" y1="{xy[a, 1]:.1f}" x2="{xy[b, 0]:.1f}" y2="{xy[b, 1]:.1f}" '
            f'stroke="{colour}" stroke-opacity="{0.35 + 0.5 * w:.2f}" stroke-width="{0.8 + 13 * w:.2f}"/>'
        )
    for node in range(n):
        parts += node_parts(node, xy[node], radius[node], FILL[bool(left_side[node])])
    for leader, (name, side) in LEADER_NAMES.items():
        shift = -radius[leader] - 8 if side == "above" else radius[leader] + 21
        parts += name_parts(name, xy[leader, 0], xy[leader, 1] + shift)
    parts.append("</svg>\n")
    target = Path(path).resolve()
    target.write_text("\n".join(parts), encoding="utf-8")
    return target


def node_parts(node, xy, radius, fill):
    x, y = xy
    circle = f'cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"'
    yield f'<circle {circle} fill="{fill}" stroke="white" stroke-width="2.5"/>'
    yield (
        f'<text x="{x:.1f}" y="{y + 5:.1f}" font-size="14" font-weight="bold" text-anchor="middle" '
        f'fill="white">{node + 1}</text>'
    )


def name_parts(name, x, y):
    """White below black, as two texts: not every viewer knows paint-order."""
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="18" font-weight="bold" text-anchor="middle"'
    yield f'<text {place} fill="white" stroke="white" stroke-width="5">{name}</text>'
    yield f'<text {place} fill="#222">{name}</text>'


def legend():
    y = HEIGHT - 26
    names = (
        (30, True, "joined the instructor, Mr. Hi"),
        (330, False, "stayed with the administrator, John A."),
    )
    for x, side, words in names:
        yield f'<circle cx="{x + 9}" cy="{y - 6}" r="9" fill="{FILL[side]}"/>'
        yield f'<text x="{x + 26}" y="{y}" font-size="16" fill="#222">{words}</text>'
