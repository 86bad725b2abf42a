"""Measures the segment kernels on large arrays beside what each framework has, and draws them over sizes.

    python bench/large.py [--rounds N] [--only REGEX] [--no-plots] [--output FILE | -]

Figures with targets go to the end of bench/RESULTS.md, plots to bench/plots. Each framework has a process of its
own (large_calls.py), in which ours and the framework's call take turns; a ratio is the median over rounds of
neighbouring calls. PyG's softmax, which NumPy is compared with too, runs in torch's process.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

BENCH = Path(__file__).resolve().parent
RESULTS, PLOTS = BENCH / "RESULTS.md", BENCH / "plots"
HEAD = "# Large arrays"
FRAMEWORKS = ("numpy", "torch", "tensorflow", "jax")

# What is asked: (framework, figure of large_calls.py, call compared with, times at least; or at most where negative).
TARGETS = [
    ("numpy", "segment_sum", "np.add.at", 30),
    ("numpy", "segment_max", "np.maximum.at", 30),
    ("numpy", "segment_sum", "x.sum()", -1.5),
    ("numpy", "segment_max", "x.sum()", -1.5),
    ("torch", "segment_sum", "index_add_", 4),
    ("torch", "segment_max", "scatter_reduce_ amax", 3),
    ("torch", "segment_softmax", "PyG's softmax", 2.5),
    ("torch", "segment_softmax, forward and backward", "PyG's softmax", 1.8),
    ("numpy", "segment_softmax", "PyG's softmax", 2.5),
    ("tensorflow", "segment_sum", "tf.math.unsorted_segment_sum", 10),
    ("tensorflow", "segment_max", "tf.math.unsorted_segment_max", 10),
    ("tensorflow", "segment_softmax", "its own composition", 8),
    ("tensorflow", "segment_sum of 16 rows", "tf.math.unsorted_segment_sum", -2),
    ("jax", "segment_sum", "jax.ops.segment_sum", None),
]


def ask(framework, *words):
    """Runs large_calls.py; its last line is JSON."""
    command = [sys.executable, str(BENCH / "large_calls.py"), framework, *map(str, words)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    )
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        print(f"{framework}: {done.stderr[-500:]}", file=sys.stderr)
        return {}


def ratio(measured, framework, figure, other):
    """(ours in ms, the other in ms, other / ours)."""
    times = measured[framework].get(figure, {})
    theirs = times.get(other) or measured["torch"].get(figure, {}).get(other)
    if "ours" not in times or not theirs:
        return None
    pairs = list(zip(times["ours"], theirs, strict=False))
    return median(times["ours"]), median(theirs), median(b / a for a, b in pairs)


def row(measured, framework, figure, other, target):
    found = ratio(measured, framework, figure, other)
    if found is None:
        return f"| {framework} | {figure} | {other} | - | - | not measured | - |"
    ours, theirs, times = found
    shown = f"{times:.2f}x as fast" if target is None or target > 0 else f"{1 / times:.2f} times its time"
    asked = "-" if target is None else f"at least {target}x" if target > 0 else f"at most {-target} times"
    met = target is None or (times >= target if target > 0 else 1 / times <= -target)
    verdict = "told" if target is None else "met" if met else "MISSED"
    return f"| {framework} | {figure} | {other} | {ours:.3g} ms, {theirs:.3g} ms | {asked} | {shown} | {verdict} |"


def text(measured, rounds, facts):
    return "\n".join(
        [
            HEAD,
            "",
            f"Written by `python bench/large.py --rounds {rounds}`: eager calls, float32, int64 ids in random order.",
            "Sum and max: 1,000,000 x 32 into 100,000 segments; softmax: 4,000,000 logits, 200,000 segments. Input",
            f"alignment: {facts}. A ratio is the median of {rounds} rounds in which the calls take turns.",
            "Plots over sizes, widths and orders of the ids: `bench/plots`. What falls short, and what was tried:",
            "`docs/design-notes.md`, Kernels.",
            "",
            "| framework | call | against | ours, theirs | target | measured | verdict |",
            "|---|---|---|---|---|---|---|",
            *(row(measured, *target) for target in TARGETS),
            "",
        ]
    )


# ---- plots over sizes
def draw(framework, points):
    """One figure: a panel per width, time per element over rows, a line per order of the ids."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    widths = sorted({p["width"] for p in points})
    figure, panels = pyplot.subplots(
        1, len(widths), figsize=(4 * len(widths), 3.6), sharey=True, squeeze=False
    )
    colors = {"random": "C0", "sorted": "C1", "reversed": "C2", "giant": "C3"}
    for panel, width in zip(panels[0], widths, strict=True):
        for order, color in colors.items():
            for call, style in (("ours", "-"), ("raw", ":")):
                line = [p for p in points if p["width"] == width and p["order"] == order and p.get(call)]
                panel.loglog(
                    [p["rows"] for p in line],
                    [p[call] * 1e6 / (p["rows"] * width) for p in line],
                    style,
                    color=color,
                    label=f"{order}, {'ours' if call == 'ours' else line[0]['name'] if line else ''}",
                )
        panel.set_title(f"width {width}")
        panel.set_xlabel("rows")
    panels[0][0].set_ylabel("ns per element")
    panels[0][-1].legend(fontsize=6)
    figure.suptitle(f"segment_sum on {framework}, float32, 10 rows per segment (giant: one segment)")
    figure.tight_layout()
    PLOTS.mkdir(exist_ok=True)
    figure.savefig(PLOTS / f"segment_sum_{framework}.svg", metadata={"Date": None})


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", metavar="REGEX", help="some frameworks")
    parser.add_argument("--no-plots", action="store_true")
    parser.add_argument("--output", default=str(RESULTS), help="file whose end is written; - for none")
    return parser.parse_args(argv)


def main(argv):
    args = parse(argv)
    chosen = [f for f in FRAMEWORKS if re.search(args.only, f)]
    answers = {f: ask(f, "figures", args.rounds) if f in chosen else {} for f in FRAMEWORKS}
    measured = {f: a.get("figures", {}) for f, a in answers.items()}
    facts = "; ".join(f"{f} {a['alignment']} bytes" for f, a in answers.items() if a)
    end = text(measured, args.rounds, facts)
    print(end)
    if args.output != "-":
        path = Path(args.output)
        path.write_text(path.read_text().split(HEAD)[0].rstrip() + "\n\n" + end)
    for framework in [] if args.no_plots else chosen:
        if points := ask(framework, "sizes").get("points"):
            draw(framework, points)


if __name__ == "__main__":
    main(sys.argv[1:])
