"""Fixtures: a test that asks for `fw` runs once per framework found (frameworks.py).

`--only NAME` keeps what belongs to one framework, `--only rest` what belongs to none, and NumPy's: selections.py.
"""

import fnmatch
import os
import tempfile

import pytest
import selections
from frameworks import FOUND, LAZY, framework, read_xfail

os.environ.setdefault(
    "HYPOTHESIS_STORAGE_DIRECTORY", os.path.join(tempfile.gettempdir(), "anytensor-hypothesis")
)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow greets on stderr
os.environ.setdefault("JAX_PLATFORMS", "cpu")  # JAX looks for devices, and waits for them

# Read when JAX is first used: eight devices out of one CPU, for jax_modes/test_jax_devices.py.
if "device_count" not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = (
        os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    ).strip()


@pytest.fixture
def fw(request):
    """A framework. Import happens here, so that collecting tests imports none."""
    return framework(request.param)


@pytest.fixture
def peer(request):
    """A framework that is not NumPy."""
    return framework(request.param)


@pytest.fixture
def torch():
    """The module, for a test about torch: such a test belongs to torch's selection."""
    return pytest.importorskip("torch")


def pytest_generate_tests(metafunc):
    found = selections.wanted(FOUND, metafunc.config.getoption("--only"))
    if "fw" in metafunc.fixturenames:
        metafunc.parametrize("fw", found, indirect=True)
    if "peer" in metafunc.fixturenames:
        metafunc.parametrize("peer", [name for name in found if name != "numpy"], indirect=True)


def pytest_collection_modifyitems(items):
    listed = {name: read_xfail(name) for name in (*FOUND, *LAZY)}
    for item in items:
        call = getattr(item, "callspec", None)
        name = call and (call.params.get("fw") or call.params.get("peer"))
        name = name or getattr(getattr(item, "module", None), "ROW", None)  # a file about one row
        for patterns, why, _ in listed.get(name, ()):
            if any(fnmatch.fnmatchcase(item.name, pattern) for pattern in patterns):
                item.add_marker(pytest.mark.xfail(reason=why, strict=True))
