"""The report of one card, made on a pretended one."""

import pytest

from course_utils import paths
from nbtorchrun.launcher.options import Options
from nbtorchrun.launcher.running import launch_path
from tests.gpu import report
from tests.standin.launching import ON_GPUS


def pretended(task, left):
    """Run a task on one pretended GPU; the lab with a small model, which nothing compiles."""
    words = ["1", str(task.script), *task.arguments, *(["--small"] if "lab" in task.what else [])]
    options = Options(nproc=task.nproc, timeout=120, stall=60, warm=task.warm)
    return launch_path(ON_GPUS, words, options)


@pytest.mark.timeout(240)
def test_the_report_runs_its_tasks_and_shows_the_lab(monkeypatch, tmp_path):
    every = list(report.tasks())
    chosen = [every[0], every[1], report.shared("experts")]
    monkeypatch.setattr(report, "tasks", lambda: chosen)
    text = "".join(report.rows(pretended))
    assert text.count("| ok |") == 3, text
    assert "| a pretended GPU, float32 |" in text
    assert "| a pretended GPU, bfloat16 |" in text
    copy = tmp_path / "gpu.md"
    copy.write_text((paths.ROOT / "docs" / "gpu.md").read_text())
    for _ in range(2):  # a second report replaces the first
        report.write(text, into=copy)
    assert copy.read_text().count(text) == 1
    assert copy.read_text().startswith("# GPUs")
    assert "## The stand-in" in copy.read_text()


def test_what_does_not_begin_in_time_is_listed():
    text = "".join(report.rows(pretended, budget=0.0))
    assert text.count("not begun") == len(list(report.tasks()))


def test_the_document_names_the_command():
    assert report.COMMAND in (paths.ROOT / "docs" / "gpu.md").read_text()
