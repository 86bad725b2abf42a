"""These tests need JAX: without it the folder is empty. Each starts as JAX comes, without 64-bit types.

Eight virtual devices are asked for in ../conftest.py, before anything can have imported JAX.
"""

import importlib.util

import pytest

collect_ignore_glob = [] if importlib.util.find_spec("jax") else ["test_*.py"]


@pytest.fixture(autouse=True)
def _as_jax_comes(request):
    """32-bit types, or 64-bit ones where a module says `X64 = True`; put back afterwards."""
    import jax.export

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", getattr(request.module, "X64", False))
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def devices():
    """Eight devices."""
    import jax

    found = jax.devices()
    if len(found) < 8:
        pytest.skip(f"JAX was started with {len(found)} devices, eight are needed (XLA_FLAGS)")
    return found
