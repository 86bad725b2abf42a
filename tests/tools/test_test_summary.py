"""tools/test_summary.py: the last lines of logs, added up; what is missing or failed is a failure."""

import importlib.util
import pathlib

import pytest

PATH = pathlib.Path(__file__).resolve().parents[2] / "tools" / "test_summary.py"
spec = importlib.util.spec_from_file_location("anytensor_test_summary", PATH)
summary = importlib.util.module_from_spec(spec)
spec.loader.exec_module(summary)


def write(folder, **logs):
    for name, text in logs.items():
        (folder / f"{name}.log").write_text(text)
    return list(logs)


def test_counts_of_all_logs_are_added_up(tmp_path, capsys):
    names = write(
        tmp_path,
        one="........\n1200 passed, 3 skipped in 12.50s\n",
        two="== 40 passed, 2 xfailed, 1 warning in 61.00s (0:01:01) ==\n",
    )
    assert summary.main(names, tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "one  1200 passed, 3 skipped in 12.50s"
    assert lines[-1] == "all  1240 passed, 3 skipped, 2 xfailed"


@pytest.mark.parametrize(
    "last",
    [
        "1 failed, 2 passed in 1.00s",
        "2 passed, 1 error in 1.00s",
        "2 passed, 3 errors in 1.00s",
        "1 xpassed in 1.00s",
        "Fatal Python error: Aborted",
        "",
        "no tests ran in 0.10s",
    ],
)
def test_a_failure_or_a_run_that_did_not_end_is_a_failure(tmp_path, capsys, last):
    names = write(tmp_path, fine="5 passed in 1.00s\n", other=last + "\n")
    assert summary.main(names, tmp_path) == 1
    assert "there are failures" in capsys.readouterr().out


def test_a_missing_log_is_a_failure(tmp_path, capsys):
    assert summary.main(["absent"], tmp_path) == 1
    assert "no log" in capsys.readouterr().out
