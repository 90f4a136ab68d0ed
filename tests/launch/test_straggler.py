"""Notebook 13: who is late, one trace of all ranks, and the answers of the unknown runs."""

import json

import numpy as np
import pytest

from course_utils import cells, load_worker
from lessons.nb13 import unknown
from nbtorchrun.diagnosis.stacks import (
    frames,
    stacks,
)
from nbtorchrun.errors import InputError

SOLVED = {1: (3, "log(step"), 2: (1, "average(model)"), 3: (2, "report("), 4: (0, "augment(batch")}
SOLVED[5] = (1, "in enumerate(batches())")
PROFILED = """\
import sys
import torch
from profiled import profiled
from torch.nn.parallel import DistributedDataParallel as DDP
from nbtorchrun.worker import init
init()
model = DDP(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with profiled(sys.argv[1]):
    for _ in range(int(sys.argv[2])):
        model(torch.ones(8, 64)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def lateness(enter, leave):
    return load_worker("straggler.py").lateness(enter, leave)


@pytest.mark.parametrize("late", [0, 2])
def test_an_injected_delay_is_recovered(launch, late):
    run = launch("find_straggler.py", "--late", late, "--delay", 2, "--steps", 3, nproc=3)
    assert f"the straggler:     rank {late}," in run.ranks[0].stdout
    assert f"the naive blame:   rank {late}," not in run.ranks[0].stdout
    claims = {report["claim"]: report["worst"] for report in run.reports}
    assert claims["an injected delay, found by lateness: relative error"] <= 0.05


def test_lateness_counts_from_the_first_rank_of_each_collective():
    enter = np.array([[1.0, 5.5, 9.0], [1.2, 5.0, 9.0], [1.1, 5.1, 9.3]])
    expected = [[0.0, 0.5, 0.0], [0.2, 0.0, 0.0], [0.1, 0.1, 0.3]]
    assert np.allclose(lateness(enter, enter.max(axis=0) + 0.01 * np.ones((3, 1))), expected)
    assert np.allclose(lateness(enter.tolist(), (enter + 1).tolist()), expected)


def test_lateness_refuses_times_that_cannot_be():
    enter = np.ones((2, 3))
    with pytest.raises(ValueError, match="must both be"):
        lateness(enter, enter[:, :2])
    with pytest.raises(ValueError, match="before it enters"):
        lateness(enter, enter - 0.1)
    with pytest.raises(ValueError, match="before it enters"):
        lateness(enter, enter * float("nan"))


def test_clocks_that_are_seconds_off_are_aligned(launch):
    run = launch("align_clocks.py", nproc=3)
    (report,) = run.reports
    assert report["worst"] <= report["bound"]
    assert [rank.stdout.split()[3] for rank in run.ranks] == ["+0.00", "+5.00", "-3.00"]


def test_a_trace_holds_all_ranks_on_one_axis(launch, tmp_path, worker):
    worker("trace_it.py", PROFILED)
    file = tmp_path / "trace.json"
    run = launch("trace_it.py", file, 9, nproc=3)
    assert "trace of 3 ranks, 3 steps" in run.ranks[0].stdout
    assert "largest cost: " in run.ranks[0].stdout
    events = [e for e in json.loads(file.read_text())["traceEvents"] if e["ph"] == "X"]
    spans = []
    for rank in range(3):
        own = [e for e in events if e["pid"] == rank]
        assert any(e["name"].startswith("gloo:all_reduce") for e in own)
        assert sum(e["name"] == "Optimizer.step#SGD.step" for e in own) == 3
        spans.append((min(e["ts"] for e in own), max(e["ts"] + e["dur"] for e in own)))
    # One axis: while one rank is in its steps, all are, since they meet in each all-reduce.
    assert max(start for start, _ in spans) < min(end for _, end in spans)


def test_too_few_steps_for_a_trace_are_told(launch, tmp_path, worker):
    worker("trace_it.py", PROFILED)
    run = launch("trace_it.py", tmp_path / "trace.json", 3, nproc=2)
    assert "a trace needs 9 steps" in run.ranks[0].stdout
    assert not (tmp_path / "trace.json").exists()


def test_time_that_messages_take_beside_work_is_not_exposed():
    trace = load_worker("merged_trace.py")
    assert trace.union([(5, 6), (0, 2), (1, 3)]) == [(0, 3), (5, 6)]
    assert trace.exposed([(0, 4), (3, 6)], [(2, 5)]) == 3  # 0 to 2 and 5 to 6
    assert trace.exposed([(1, 2)], [(0, 3)]) == 0
    assert trace.exposed([(0, 2)], []) == 2


@pytest.mark.parametrize("number", SOLVED)
def test_an_unknown_run_is_solved_by_its_rank_and_line(number, capsys):
    rank, words = SOLVED[number]
    lines = cells.sources()["unknown.py"].splitlines()
    (line,) = [1 + at for at, text in enumerate(lines) if words in text]
    assert unknown.named(number, rank, line)
    assert capsys.readouterr().out == f"run {number}: solved\n"
    assert not unknown.named(number, rank, line + 3)
    assert not unknown.named(number, (rank + 1) % 4, line)
    assert not unknown.named(number)


@pytest.mark.parametrize("number", SOLVED)
def test_our_answer_to_an_unknown_run_names_its_rank_and_its_cause(number, capsys):
    unknown.answer(number)
    said = capsys.readouterr().out
    assert said.startswith(f"run {number}: rank {SOLVED[number][0]}, line ")
    assert unknown.ANSWERS[number].cause in said


@pytest.mark.parametrize("number", [1, 2, 5])
def test_the_evidence_of_a_run_that_hangs_shows_the_culprit(launch, number):
    run = launch("unknown.py", number, nproc=4, stall=2, check=False)
    rank, words = SOLVED[number]
    lines = cells.sources()["unknown.py"].splitlines()
    calls = [f for f in stacks(run)[rank] if f.file.endswith("unknown.py")]
    assert words in lines[calls[0].line - 1]
    others = {str(s[0]) for r, s in enumerate(stacks(run)) if r != rank}
    assert len(others) == 1, "the others all wait in one place"
    assert str(stacks(run)[rank][0]) not in others


def test_a_slow_run_names_its_straggler_by_the_timers(launch):
    run = launch("unknown.py", 4, nproc=4)
    seconds = [rank.reports[-1]["seconds"] for rank in run.ranks]
    assert max(range(4), key=lambda r: seconds[r]["augment"]) == 0
    assert min(range(4), key=lambda r: seconds[r]["average"]) == 0


def test_a_rank_that_has_ended_is_named_without_a_line(capsys):
    assert unknown.named(3, 2, None)
    assert not unknown.named(3, 1, None)
    assert unknown.named(4, 0, None)  # a run that is only slow: all its ranks have ended
    assert not unknown.named(4, 1, None)
    assert not unknown.named(1, 3, None)
    said = [
        f"run {number}: {state}" for number, state in ((3, "solved"), (3, "not yet: look again"))
    ]
    assert capsys.readouterr().out.splitlines()[:2] == said


def test_there_is_no_sixth_unknown_run():
    with pytest.raises(InputError, match="choose one of 1 to 5"):
        unknown.named(6, 0, 1)


def test_a_stack_without_frames_of_the_launcher():
    text = """\
Thread 0x01 (most recent call first):
  File "/lib/threading.py", line 1 in wait

Current thread 0x02 (most recent call first):
  File "/site/torch/distributed/distributed_c10d.py", line 9 in all_reduce
  File "/home/nbtorchrun/worker/calls.py", line 8 in call
  File "/home/train.py", line 7 in <module>
  File "/home/nbtorchrun/worker/bootstrap.py", line 6 in run_script
  File "<frozen runpy>", line 5 in _run_code
"""
    assert [str(f) for f in frames(text)] == [
        "distributed_c10d.py:9 in all_reduce",
        "train.py:7 in <module>",
    ]
    assert frames("") == []
