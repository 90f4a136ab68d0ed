"""The lanes and cards of a run, drawn from what its ranks have written so far."""

import json
import os
import subprocess
import sys

import pytest

from nbtorchrun.diagnosis.verdict import Verdict
from nbtorchrun.display import cards, lanes
from nbtorchrun.display.lanes import Lane
from nbtorchrun.launcher.folder import RunFolder
from nbtorchrun.runs import Rank


class WrittenRank:
    """A rank's files, written by hand."""

    def __init__(self, folder: RunFolder, index: int, pid: int):
        self.rank = Rank(index, folder)
        self.rank.dir.mkdir()
        (self.rank.dir / "pid").write_text(f"{pid} {index}")

    def event(self, kind: str, **data) -> None:
        with open(self.rank.dir / "events.jsonl", "a") as log:
            log.write(json.dumps({"kind": kind, "at": 1, "data": data}) + "\n")

    def call(self, name: str, number: int, *, returned: bool = False) -> None:
        state = "=" if returned else "."
        (self.rank.dir / "calls.txt").write_text(
            f"{state}\t1\t{name}\t{number}\t\t[3] torch.float32\tNone\t\t7\tx.py\n"
        )

    def prints(self, text: str) -> None:
        with open(self.rank.dir / "stdout.log", "a") as log:
            log.write(text)


@pytest.fixture
def ranks():
    """Make ranks of one run, each with a process: this one, or one given."""
    folder = RunFolder("lanes")

    def make(count: int, pid: int | None = None) -> list[WrittenRank]:
        return [WrittenRank(folder, index, pid or os.getpid()) for index in range(count)]

    return make


def looked_at(rank: WrittenRank, times: int = 1) -> Lane:
    lane = Lane(rank.rank, lines=6)
    for _ in range(times):
        lane.update()
    return lane


def test_a_rank_starts_until_its_script_begins(ranks):
    (rank,) = ranks(1)
    assert looked_at(rank).state == "starting"
    rank.call("barrier", 1, returned=True)
    assert looked_at(rank).state == "running"


def test_a_call_that_lasts_is_waiting_and_one_that_passes_is_not(ranks):
    (rank,) = ranks(1)
    rank.call("all_reduce", 3)
    lane = looked_at(rank, times=2)
    assert (lane.state, lane.words) == ("waiting", "waits in all_reduce #3")
    rank.call("all_reduce", 4)
    lane.update()
    assert lane.state == "running"


@pytest.mark.parametrize(
    ("end", "state", "words"),
    [
        ({"how": "finished"}, "done", "done"),
        ({"how": "exited", "status": 0}, "done", "done"),
        ({"how": "exited", "status": 3}, "failed", "exit status 3"),
        ({"how": "raised", "type": "ValueError"}, "failed", "raised ValueError"),
    ],
)
def test_a_rank_that_ended_says_how(ranks, end, state, words):
    (rank,) = ranks(1)
    rank.call("barrier", 1)
    rank.event("end", **end)
    lane = looked_at(rank, times=2)
    assert (lane.state, lane.words) == (state, words)


def test_a_rank_that_was_killed_is_failed(ranks):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (rank,) = ranks(1, pid=gone.pid)
    rank.call("barrier", 1)
    assert looked_at(rank).state == "failed"


def test_a_lane_keeps_the_last_lines_and_its_height(ranks):
    (rank,) = ranks(1)
    empty = lanes.draw([looked_at(rank)], 0)
    rank.prints("".join(f"line {i} <b>\n" for i in range(100)) + "unfinished")
    full = lanes.draw([looked_at(rank)], 0)
    assert [f"line {i} &lt;b&gt;" in full for i in (93, 94, 99)] == [False, True, True]
    assert "unfinished" not in full
    assert "--lines:6" in empty
    assert "--lines:6" in full


def test_the_bar_and_the_curve_follow_the_reports(ranks):
    two = ranks(2)
    assert "course-curve" not in lanes.draw([looked_at(rank) for rank in two], 0)
    for step in range(400):
        two[1].event("report", step=step, total=500, loss=2.0 - step / 400)
    drawn = lanes.draw([looked_at(rank) for rank in two], 7.4)
    assert "step 399 of 500   loss 1.0025" in drawn
    assert 'style="width:79.8%"' in drawn
    assert ">7 s<" in drawn
    assert drawn.count("<polyline") == 1
    assert len(drawn) < 5000  # however many reports there are


@pytest.mark.parametrize(
    "report",
    [
        {"step": "one", "total": 3},
        {"step": 1, "total": 0},
        {"step": 1, "total": None},
        {"step": 1, "total": float("nan")},
        {"step": [1], "total": [3]},
        {"step": 1, "loss": "high"},
        {"step": 1, "loss": [1.0, 2.0]},
        {"step": 1, "loss": float("nan")},
        {"step": 1, "loss": float("inf")},
    ],
)
def test_a_report_that_cannot_be_drawn_is_left_out(ranks, report):
    (rank,) = ranks(1)
    for _ in range(3):
        rank.event("report", **report)
    drawn = lanes.draw([looked_at(rank)], 0)
    assert "polyline" not in drawn
    assert "width:0.0%" in drawn


def test_a_line_that_two_processes_wrote_at_once_is_skipped(ranks):
    (rank,) = ranks(1)
    rank.event("report", step=1, total=2)
    (rank.rank.dir / "events.jsonl").open("a").write('{"kind": "repo{"kind"\n')
    assert looked_at(rank).report == {"step": 1, "total": 2}


def test_many_ranks_have_fewer_lines_each():
    assert [lanes.lines_for(ranks) for ranks in (1, 4, 5, 8, 9, 64)] == [6, 6, 3, 3, 1, 1]


def test_a_verdict_without_a_place_has_a_card_too():
    drawn = cards.failure(Verdict("launcher", "workers/x.py is not there"))
    assert "workers/x.py is not there</header>" in drawn
    assert "<pre" not in drawn
