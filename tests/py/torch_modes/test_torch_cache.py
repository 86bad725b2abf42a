"""torch's compile cache on disk tells two builds of the extension apart: it keys a builtin by its name alone.

The second build is the first with one name changed in its data, amin -> amax, so that min gives the greatest.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from torch_calls import COMPILES

import anytensor

pytestmark = COMPILES

# Each build is imported in a child of its own; torch is imported once, before.
PROGRAM = """
import json, os, sys
import torch, torch._inductor.compile_fx
from torch._dynamo.utils import counters

torch._inductor.config.cpp_cache_precompile_headers = False  # the program is small
torch._inductor.config.compile_threads = 1

def answer(folder):
    sys.path.insert(0, folder)
    import anytensor as at

    def job(x):
        return at.min(x * 2, axes=0, keepdims=True) + 1

    x = torch.tensor([1.0, 4.0, 2.0])
    compiled = torch.compile(job, fullgraph=True)(x)
    return {
        "file": at._core.__file__,
        "tag": torch.compiler.config.cache_key_tag,
        "eager": [str(v) for v in job(x).tolist()],
        "compiled": [str(v) for v in compiled.tolist()],
        "hits": counters["aot_autograd"]["autograd_cache_hit"] + counters["inductor"]["fxgraph_cache_hit"],
        "misses": counters["aot_autograd"]["autograd_cache_miss"] + counters["inductor"]["fxgraph_cache_miss"],
    }

for folder in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        try:
            print(json.dumps(answer(folder)), flush=True)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(0)
    os.waitpid(child, 0)
"""


def copy_package(folder, change=None):
    """The installed package again; change is applied to the bytes of the extension."""
    package = folder / "anytensor"
    package.mkdir(parents=True)
    for file in Path(anytensor.__file__).parent.glob("*.py"):
        (package / file.name).write_bytes(file.read_bytes())
    core = Path(anytensor._core.__file__)
    data = core.read_bytes()
    (package / core.name).write_bytes(change(data) if change else data)
    return folder


def amin_to_amax(data):
    assert data.count(b"\0amin\0") >= 1
    return data.replace(b"\0amin\0", b"\0amax\0")


def run(folders, cache):
    environment = {k: v for k, v in os.environ.items() if k != "TORCHINDUCTOR_FORCE_DISABLE_CACHES"}
    environment |= {"TORCHINDUCTOR_CACHE_DIR": str(cache), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, *map(str, folders)],
        env=environment,
        capture_output=True,
        text=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(answers) == len(folders), done.stderr[-3000:]
    for folder, answer in zip(folders, answers, strict=True):
        assert answer["file"].startswith(str(folder))
    return answers


@pytest.mark.slow
def test_a_rebuilt_extension_never_gets_the_old_builds_code(tmp_path, cxx):
    first = copy_package(tmp_path / "first")
    second = copy_package(tmp_path / "second", amin_to_amax)
    cold, warm, rebuilt = run([first, first, second], tmp_path / "cache")
    assert cold["compiled"] == cold["eager"] == ["3.0"]
    if cold["misses"] == 0:
        pytest.skip("this torch has no compile cache on disk")
    assert warm["hits"] > 0 and warm["misses"] == 0, "the same build is served from the cache"
    assert warm["compiled"] == cold["compiled"] and warm["tag"] == cold["tag"]
    assert rebuilt["tag"] != cold["tag"]
    assert rebuilt["hits"] == 0 and rebuilt["misses"] > 0
    assert rebuilt["compiled"] == rebuilt["eager"] == ["9.0"]


def test_the_tag_names_version_and_build():
    import torch._dynamo  # noqa: F401
    from torch.compiler import config

    tags = [tag for tag in config.cache_key_tag.split(";") if tag.startswith("anytensor-")]
    assert len(tags) == 1
    assert tags[0].startswith(f"anytensor-{anytensor.__version__}-")
