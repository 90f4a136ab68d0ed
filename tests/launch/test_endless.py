"""A run's output has a limit, on disk too; a rank that prints without end is told so."""

import pytest

from nbtorchrun.launcher import output
from tests.launch.fault import OTHERS_WAIT, START

SMALL = 2_000_000
ENDLESS = {
    "long lines": ("print('x' * 200_000)", "prints", "stdout.log"),
    "stderr": ("print('x' * 200_000, file=sys.stderr)", "prints", "stderr.log"),
    "a child": ("subprocess.run(['yes', 'x' * 1000])", "prints", "stdout.log"),
    "reports": ("report(x='x' * 200_000)", "reports", "events.jsonl"),
}


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
@pytest.mark.parametrize(("body", "does", "file"), ENDLESS.values(), ids=ENDLESS)
def test_a_run_that_writes_without_end_is_stopped(
    worker, launch, monkeypatch, body, does, file, warm
):
    monkeypatch.setattr(output, "LIMITS", dict.fromkeys(output.LIMITS, SMALL))
    script = START + OTHERS_WAIT + f"while rank == 1:\n    {body}  # here\ndist.barrier()\n"
    run = launch(worker("endless.py", script), warm=warm, check=False)
    assert (run.verdict.kind, run.verdict.rank) == ("hung", 1)
    assert run.verdict.title.startswith(f"the run was stopped: rank 1 {does} without end (")
    assert run.verdict.line == script.split("# here")[0].count("\n") + 1
    assert "Does the loop that prints ever end?" in run.verdict.text
    assert "longer timeout" not in run.verdict.text
    assert (run.ranks[1].dir / file).stat().st_size == SMALL + len(output.CUT)


def test_a_run_that_prints_to_its_timeout_is_told_so(worker, launch):
    script = START + "while rank == 1:\n    print('step')\ndist.barrier()\n"
    run = launch(worker("endless.py", script), timeout=15, check=False)
    said = "the run was stopped at its timeout of 15 s; rank 1 prints without end ("
    assert run.verdict.title.startswith(said)
    assert "longer timeout" not in run.verdict.text


def test_a_run_that_only_needs_more_time_is_told_so(worker, launch):
    script = START + "print('x' * 100_000)\nwhile True:\n    print('step')\n    time.sleep(0.1)\n"
    run = launch(worker("slow.py", script), timeout=8, check=False)
    assert run.verdict.title == "the run was stopped at its timeout of 8 s"
    assert "longer timeout" in run.verdict.text
