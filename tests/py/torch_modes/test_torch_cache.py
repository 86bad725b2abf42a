"""torch's compile cache on disk tells two builds of the extension apart: it keys a builtin by its name alone.

The second build is the first with one name changed in its data, isnan -> isinf, so that fill_nan fills infinities.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import anytensor

PROGRAM = """
import json, os, sys
import torch, anytensor as at
from torch._dynamo.utils import counters

def run(x):
    return at.fill_nan(x * 2, 7.0) + 1

x = torch.tensor([1.0, float("nan"), float("inf")])
compiled = torch.compile(run, fullgraph=True)(x)
print(json.dumps({
    "file": at._core.__file__,
    "tag": torch.compiler.config.cache_key_tag,
    "eager": [str(v) for v in run(x).tolist()],
    "compiled": [str(v) for v in compiled.tolist()],
    "hits": counters["aot_autograd"]["autograd_cache_hit"] + counters["inductor"]["fxgraph_cache_hit"],
    "misses": counters["aot_autograd"]["autograd_cache_miss"] + counters["inductor"]["fxgraph_cache_miss"],
}))
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


def isnan_to_isinf(data):
    assert data.count(b"\0isnan\0") >= 1
    return data.replace(b"\0isnan\0", b"\0isinf\0")


def run(folder, cache):
    environment = {k: v for k, v in os.environ.items() if k != "TORCHINDUCTOR_FORCE_DISABLE_CACHES"}
    environment |= {"PYTHONPATH": str(folder), "TORCHINDUCTOR_CACHE_DIR": str(cache), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["file"].startswith(str(folder))
    return answer


def test_a_rebuilt_extension_never_gets_the_old_builds_code(tmp_path, cxx):
    first = copy_package(tmp_path / "first")
    second = copy_package(tmp_path / "second", isnan_to_isinf)
    cold, warm, rebuilt = (run(folder, tmp_path / "cache") for folder in (first, first, second))
    assert cold["compiled"] == cold["eager"] == ["3.0", "8.0", "inf"]
    if cold["misses"] == 0:
        pytest.skip("this torch has no compile cache on disk")
    assert warm["hits"] > 0 and warm["misses"] == 0, "the same build is served from the cache"
    assert warm["compiled"] == cold["compiled"] and warm["tag"] == cold["tag"]
    assert rebuilt["tag"] != cold["tag"]
    assert rebuilt["hits"] == 0 and rebuilt["misses"] > 0
    assert rebuilt["compiled"] == rebuilt["eager"] == ["3.0", "nan", "8.0"]


def test_the_tag_names_version_and_build():
    from torch.compiler import config

    tags = [tag for tag in config.cache_key_tag.split(";") if tag.startswith("anytensor-")]
    assert len(tags) == 1
    assert tags[0].startswith(f"anytensor-{anytensor.__version__}-")


def test_a_tag_of_the_users_own_is_kept(tmp_path):
    program = (
        "import torch, anytensor; torch.compiler.config.cache_key_tag = 'mine';"
        "import torch._dynamo; print(torch.compiler.config.cache_key_tag)"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("mine;anytensor-")
