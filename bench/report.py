"""From what run.py measured to tables: rows with a verdict, shortfalls named, the text of RESULTS.md.

Measured is {figure: {role: answers}}, a role being "ours" or "reference", one answer of worker.py per round.
"""

from statistics import median

from figures import EVERY_OP, FASTER, FASTER_RAW, FRAMEWORKS, IMPORT_TARGET, OVER_RAW

HEAD = ["what", "framework", "measure", "target", "measured (rounds)", "reference", "verdict"]


# ---- numbers
def fastest(answers):
    """The fastest quarter of all loops: pairs of ours and raw, chosen by their sum, so without favour."""
    loops = sorted((loop for a in answers for loop in a.get("loops", [])), key=sum)
    return loops[: (len(loops) + 3) // 4]


def time(answers):
    """Microseconds per call, or None where the figure could not be measured."""
    loops = fastest(answers)
    return 1e6 * median(loop[0] for loop in loops) if loops else None


def over_raw(answers):
    """Microseconds over the raw call: median of differences between neighbouring loops."""
    loops = fastest(answers)
    return 1e6 * median(loop[0] - loop[1] for loop in loops) if loops else None


def times_faster(answers):
    """How often ours fits into the raw call: median of ratios of neighbouring loops."""
    loops = fastest(answers)
    return median(loop[1] / loop[0] for loop in loops) if loops else None


def value(figure, answers):
    return {OVER_RAW: over_raw, FASTER_RAW: times_faster}.get(figure.measure, time)(answers)


def fault(answers):
    return next((a["error"] for a in answers if "error" in a), "not measured")


def close_to(a, b):
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(close_to, a, b))
    return a == b or abs(a - b) <= 1e-5 * max(1, abs(b))


def result(answers):
    return next(a["result"] for a in answers if "result" in a)


def show(number, unit):
    return "-" if number is None else f"{number:.2f}{unit}"


def rounds(figure, answers):
    """Least and greatest of the rounds, to tell a shortfall from noise."""
    values = [v for v in (value(figure, [a]) for a in answers) if v is not None]
    return f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""


# ---- rows of the figures that have a target
def asked_rows(measured):
    for figure, roles in measured.items():
        make = {FASTER: faster_cells, FASTER_RAW: faster_raw_cells}.get(figure.measure, time_cells)
        cells = make(figure, roles["ours"], roles.get("reference", []))
        yield [figure.name, figure.framework, figure.measure, *cells]


def time_cells(figure, ours, reference):
    found = value(figure, ours)
    target = f"at most {figure.target:g} us"
    cells = [target, show(found, " us") + rounds(figure, ours), show(value(figure, reference), " us")]
    return [*cells, verdict(found, figure.target, " us") if found is not None else f"failed: {fault(ours)}"]


def faster_raw_cells(figure, ours, _reference):
    """The reference is not in play: the framework's own function is the measure."""
    target, found = f"at least {figure.target:g}x", times_faster(ours)
    if found is None:
        return [target, "-", "-", f"failed: {fault(ours)}"]
    short = figure.target - found
    measured = f"{found:.2f}x{rounds(figure, ours)}, {time(ours):.1f} us"
    return [target, measured, "-", "met" if short <= 0 else f"not met: {short:.2f}x short"]


def faster_cells(figure, ours, reference):
    a, b = time(ours), time(reference)
    target, theirs = "-" if figure.target is None else f"at least {figure.target:g}x", show(b, " us")
    if a is None:
        return [target, "-", theirs, f"failed: {fault(ours)}"]
    if b is None:
        return [target, show(a, " us"), "-", f"no reference: {fault(reference)}"]
    if not close_to(result(ours), result(reference)):
        return [target, show(a, " us"), theirs, "failed: the results differ"]
    short = (figure.target or 0) - b / a
    return [
        target,
        f"{b / a:.2f}x ({a:.2f} us)",
        theirs,
        "told" if figure.target is None else "met" if short <= 0 else f"not met: {short:.2f}x short",
    ]


def import_row(answers):
    ours, theirs = (over_raw(answers.get(role, [])) for role in ("ours", "reference"))
    judged = "failed: no import" if ours is None else verdict(ours / 1e3, IMPORT_TARGET, " ms")
    target = f"at most {IMPORT_TARGET:g} ms"
    cells = ["-" if t is None else f"{t / 1e3:.1f} ms" for t in (ours, theirs)]
    return ["import anytensor", "", "over import numpy", target, *cells, judged]


def verdict(found, target, unit):
    return "met" if found <= target else f"not met: {found - target:.2f}{unit} over"


# ---- rows of all other functions
def told_rows(measured):
    """Per function and framework: ours in all, ours over the raw call, the reference in all."""
    by_name = {(f.name, f.framework): (f, roles) for f, roles in measured.items()}
    for name in EVERY_OP:
        cells = []
        for framework in FRAMEWORKS:
            figure, roles = by_name.get((name, framework), (None, {}))
            ours = roles.get("ours", [])
            over = value(figure, ours) if figure and figure.measure == OVER_RAW else None
            cells += [show(n, "") for n in (time(ours), over, time(roles.get("reference", [])))]
        if any(cell != "-" for cell in cells):
            yield [name, *cells]


def told_faults(measured):
    for figure, roles in measured.items():
        if time(roles["ours"]) is None:
            yield f"- {figure.name} on {figure.framework}: {fault(roles['ours'])}"


# ---- the text
def table(head, rows):
    rows = [head, *rows]
    widths = [max(len(r[i]) for r in rows) for i in range(len(head))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) + " |" for r in rows]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(lines)


def shortfalls(rows):
    short = [row for row in rows if row[-1] not in ("met", "told")]
    if not short:
        return "All targets are met."
    lines = [f"- {' '.join(filter(None, r[:3]))}: {r[4]}, wanted {r[3]}; {r[-1]}" for r in short]
    return "Shortfalls:\n\n" + "\n".join(lines)


def text(asked, told, imports, facts):
    rows = [*asked_rows(asked), *([import_row(imports)] if imports else [])]
    parts = [
        "# Speed, as measured",
        "Written by `make bench`. Arrays hold 16 float32 elements (16 edges, 4 nodes); calls are spelled in\n"
        "`figures.py`. Ours and the reference take turns in one run. A time is the median of the fastest quarter\n"
        "of all loops, a difference the median between neighbouring loops of ours and of the raw call there.",
        "\n".join(f"- {name}: {fact}" for name, fact in facts.items()),
    ]
    if rows:
        parts += [table(HEAD, rows), shortfalls(rows)]
    others, faults = list(told_rows(told)), list(told_faults(told))
    if others:
        head = [f"{framework} {what}" for framework in FRAMEWORKS for what in ("us", "over raw", "reference")]
        parts += [
            "## Every other function",
            "Microseconds: ours in all; over the framework's own function, where one does the same; the reference.",
            table(["function", *head], others),
        ]
    if faults:
        parts.append("Failed:\n\n" + "\n".join(faults))
    return "\n\n".join(parts) + "\n"
