"""module_if_loaded looks at sys.modules and never imports; callbacks run when a module comes.

Accuses python/anytensor/_loaded.py.
"""

import importlib
import sys

import pytest

import anytensor as at
from anytensor import _loaded


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder on the path; what is imported from it is forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]
    _loaded._waiting.clear()


def test_a_loaded_module_is_returned():
    assert at.module_if_loaded("sys") is sys
    assert at.module_if_loaded("importlib.util") is sys.modules["importlib.util"]


def test_a_module_that_is_not_loaded_is_none_and_stays_unloaded(folder):
    (folder / "at_quiet.py").write_text("")
    assert at.module_if_loaded("at_quiet") is None
    assert "at_quiet" not in sys.modules
    assert at.module_if_loaded("no.such.module") is None


def test_an_entry_of_none_counts_as_absent(monkeypatch):
    monkeypatch.setitem(sys.modules, "at_blocked", None)
    assert at.module_if_loaded("at_blocked") is None
    with pytest.raises(RuntimeError, match="at_blocked is not imported"):
        at.module_if_loaded("at_blocked", raises=True)


def test_a_callback_runs_at_once_for_a_loaded_module():
    seen = []
    assert at.module_if_loaded("sys", seen.append) is sys
    assert seen == [sys]


def test_a_callback_runs_when_the_module_is_first_imported(folder):
    (folder / "at_later.py").write_text("value = 7")
    seen = []
    assert at.module_if_loaded("at_later", lambda module: seen.append(module.value)) is None
    assert seen == []
    import at_later  # noqa: F401

    assert seen == [7]
    importlib.reload(sys.modules["at_later"])
    assert seen == [7]


def test_a_callback_runs_when_a_submodule_loads_the_parent(folder):
    (folder / "at_parent").mkdir()
    (folder / "at_parent" / "__init__.py").write_text("")
    (folder / "at_parent" / "child.py").write_text("")
    seen = []
    at.module_if_loaded("at_parent", lambda module: seen.append(module.__name__))
    importlib.import_module("at_parent.child")
    assert seen == ["at_parent"]


def test_callbacks_run_in_the_order_in_which_they_came(folder):
    (folder / "at_order.py").write_text("")
    seen = []
    for k in range(3):
        at.module_if_loaded("at_order", lambda module, k=k: seen.append(k))
    importlib.import_module("at_order")
    assert seen == [0, 1, 2]


def test_a_callback_registered_by_a_callback_runs_too(folder):
    (folder / "at_nested.py").write_text("")
    seen = []

    def first(module):
        seen.append("first")
        at.module_if_loaded("at_nested", lambda module: seen.append("second"))

    at.module_if_loaded("at_nested", first)
    importlib.import_module("at_nested")
    assert seen == ["first", "second"]


def test_with_raises_an_absent_module_is_a_runtime_error_and_the_callback_stays(folder):
    (folder / "at_raises.py").write_text("")
    seen = []
    with pytest.raises(RuntimeError, match="at_raises is not imported"):
        at.module_if_loaded("at_raises", seen.append, raises=True)
    importlib.import_module("at_raises")
    assert len(seen) == 1


def test_a_failing_import_leaves_the_callback_queued(folder):
    (folder / "at_failing.py").write_text("raise ValueError('broken')")
    seen = []
    at.module_if_loaded("at_failing", lambda module: seen.append(module.value))
    with pytest.raises(ValueError, match="broken"):
        importlib.import_module("at_failing")
    assert seen == []
    (folder / "at_failing.py").write_text("value = 'mended now'")
    importlib.invalidate_caches()
    importlib.import_module("at_failing")
    assert seen == ["mended now"]


def test_the_finder_is_put_in_once_and_comes_back_when_removed(folder):
    (folder / "at_finder.py").write_text("")
    at.module_if_loaded("at_finder", lambda module: None)
    at.module_if_loaded("at_finder", lambda module: None)
    assert sys.meta_path.count(_loaded._Finder) == 1
    sys.meta_path.remove(_loaded._Finder)
    seen = []
    at.module_if_loaded("at_finder", seen.append)
    assert sys.meta_path.count(_loaded._Finder) == 1
    importlib.import_module("at_finder")
    assert len(seen) == 1


def test_modules_that_nobody_waits_for_keep_their_loader(folder):
    (folder / "at_plain.py").write_text("")
    (folder / "at_watched.py").write_text("")
    at.module_if_loaded("at_watched", lambda module: None)
    plain = importlib.import_module("at_plain")
    assert type(plain.__loader__).__name__ == "SourceFileLoader"
    watched = importlib.import_module("at_watched")
    assert watched.__spec__.origin.endswith("at_watched.py")
