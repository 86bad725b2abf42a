"""The rules of this repository that no common linter knows; prints file:line: message, exit status 1 on any.

Folders: who may include what. Frames: one enter, one leave, no return between. Order: C leaves the order of
arguments open, so at most one op call may be nested in an argument list. Names: no two files share one.
Host callbacks: none.

C is read with comments and strings blanked out, not parsed. Each rule takes text and yields (line, message),
so that tests can feed it small strings.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIP = re.compile(
    r"^(\.git|\.venv.*|build.*|dist|__pycache__|\.\w+_cache|\.hypothesis|scratch|.*\.egg-info)$"
)
MAY_REPEAT = {"CMakeLists.txt", "README.md", "__init__.py", "__init__.pyi", "conftest.py", ".gitignore"}
LIBC = set(
    "assert ctype errno float inttypes limits math pthread sched signal stdalign stdarg stdatomic stdbool stddef stdint"
    " stdio stdlib string time unistd sys/mman immintrin arm_neon cpuid".split()
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
CALLBACK = re.compile(r"\bpy_function\b|\bpure_callback\b|torch\.compiler\.disable|\bnumpy_function\b")
READ = (".c", ".h", ".def", ".inc", ".py")
# Calls that make no array: the order in which they run is never seen.
NOT_OPS = re.compile(r"at_(is_nil|failed|dtype|ndim|shape|dim)(_of)?$|ati?_\w+_(is|has|of|equal)$")


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def blank(text, strings=True):
    """C without comments (and strings): blanks of the same length, line breaks kept."""
    token = r"/\*.*?\*/|//[^\n]*" + (r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'" if strings else "")
    return re.sub(token, lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


# ---- who may include what
def folder_rule(path, text, kernel_headers=frozenset()):
    """path is relative to the repository; kernel_headers are the names of the headers in src/kernels."""
    if not path.startswith(("src/", "include/")):
        return
    folder = path.split("/")[1]
    for m in INCLUDE.finditer(blank(text, strings=False)):
        system, name = m.group(1) == "<", m.group(2)
        for broken in include_faults(folder, system, name, kernel_headers):
            yield line_of(text, m.start()), f"<{name}>: {broken}"


def include_faults(folder, system, name, kernel_headers):
    if name.startswith(("Python.h", "numpy/")) and folder != "python":
        yield "Python and NumPy headers belong under src/python only"
    elif folder == "kernels":
        libc = system and name.removesuffix(".h") in LIBC
        own = (
            not system
            and Path(name).name in kernel_headers
            and name.split("/")[0] in ("kernels", Path(name).name)
        )
        if not (libc or own or name == "anytensor/types.h"):
            yield "src/kernels includes only anytensor/types.h, its own headers and the C library"
    elif folder == "ops" and not system and re.match(r"(\.\./)*(backends|python)/", name):
        yield "src/ops includes no backend"
    elif folder == "core" and not system and re.match(r"\.\./|(ops|kernels|backends|onnx|python)/", name):
        yield "src/core includes no other folder of src"


# ---- frames
def functions(text):
    """(position, head, body) of every function, those in macros included. text is blanked."""
    macro = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
    for m in macro.finditer(text):
        yield from braced(m.group(), m.start())
    yield from braced(macro.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text), 0)


def braced(text, offset):
    depth = start = 0
    for m in re.finditer(r"[{}]", text):
        if m.group() == "{":
            if depth == 0:
                start = m.start()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0 and re.search(r"\)[\s\\]*$", text[:start]):
                head = re.split(r"[;}]", text[:start])[-1]
                yield offset + start, head, text[start : m.end()]


# A frame opens where it is declared, `at_frame frame, *f = at_enter(&frame, up)`, also through a helper that
# calls at_enter; such a helper returns the open frame, and its caller leaves it.
DECLARED = r"\bat_frame\s+(\w+)\s*,\s*\*\s*\w+\s*=\s*(?!at_open)\w+\s*\(\s*&\1\b"
ENTER = re.compile(r"\bati?_enter\w*\s*\(|" + DECLARED)
OPENER = re.compile(r"\bat_frame\s*\*\s*\w+\s*\(")


def frame_rule(text):
    code = blank(text)
    for start, head, body in functions(code):
        enters = list(ENTER.finditer(body))
        if not enters or OPENER.search(head):
            continue
        line = line_of(code, start + enters[0].start())
        if len(enters) > 1:
            yield line, "a function enters a frame once"
        leaves = list(re.finditer(r"\b(?:ati?_)?leave\w*\s*\(", body))
        if len(leaves) != 1:
            yield line, f"a function that enters a frame leaves it once, in one place (found {len(leaves)})"
            continue
        for m in re.finditer(r"\breturn\b", body[enters[0].end() : leaves[0].start()]):
            at = enters[0].end() + m.start()
            if ";" in body[at : leaves[0].start()]:  # else it is `return at_leave(...)` itself
                yield line_of(code, start + at), "return between at_enter and at_leave: the frame would leak"


# ---- order of evaluation
def order_rule(text):
    code = blank(text)
    stack = []  # one [position, op calls in each argument so far] per open bracket
    for m in re.finditer(r"\b(ati?_\w+)\s*\(\s*f\b|[(){}\[\],;]", code):
        mark = m.group()
        if m.group(1):
            if stack and not NOT_OPS.search(m.group(1)):
                stack[-1][1][-1] += 1
            stack.append([m.start(), [0]])
        elif mark in "({[":
            stack.append([m.start(), [0]])
        elif mark == "," and stack:
            stack[-1][1].append(0)
        elif mark == ";" and stack:
            stack[-1][1] = [0]  # a block, or the head of a for loop
        elif mark in ")}]" and stack:
            position, counts = stack.pop()
            if sum(1 for count in counts if count) > 1:
                yield line_of(code, position), "two op calls in one argument list: C leaves their order open"
            if stack and any(counts) and mark != "}":
                stack[-1][1][-1] += 1  # an op call deeper down counts for the outer list too


def callback_rule(path, text):
    code = blank(text, strings=False) if path.endswith((".c", ".h", ".def")) else text
    for m in CALLBACK.finditer(code):
        yield (
            line_of(code, m.start()),
            f"host callback {m.group()}: no compiler sees through it",
        )


def name_rule(paths):
    seen = {}
    for path in sorted(paths):
        name = path.rsplit("/", 1)[-1]
        if name not in MAY_REPEAT and seen.setdefault(name, path) != path:
            yield path, f"has the same file name as {seen[name]}"


# ---- the whole repository
def files(folder=ROOT):
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            if not SKIP.match(entry.name):
                yield from files(entry)
        elif not SKIP.match(entry.name):
            yield entry.relative_to(ROOT).as_posix()


def lint(paths):
    headers = {p.rsplit("/", 1)[-1] for p in paths if p.startswith("src/kernels/") and not p.endswith(".c")}
    for path in paths:
        if not (path.startswith(("src/", "include/", "python/")) and path.endswith(READ)):
            continue
        text = (ROOT / path).read_text()
        found = list(callback_rule(path, text))
        if not path.endswith(".py"):
            found += folder_rule(path, text, headers)
        if path.startswith("src/"):
            found += [*frame_rule(text), *order_rule(text)]
        for line, message in sorted(found):
            yield f"{path}:{line}: {message}"
    for path, message in name_rule(paths):
        yield f"{path}:1: {message}"


def main():
    findings = list(lint(list(files())))
    print(*findings, sep="\n", end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
