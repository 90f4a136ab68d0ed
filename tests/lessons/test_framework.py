"""What `check` does for every exercise: it ends, it shows, and it takes nobody else's answer."""

from dataclasses import replace

import pytest
import torch

from course_utils import cells, paths
from course_utils.checking import check
from course_utils.checking.compare import count, expect, hint_for, unlike, whose
from course_utils.checking.values import close
from course_utils.exercises import find
from tests.lessons.answers import checked


def said(number: str, source: str) -> str:
    """What `check` says of an answer that is not right."""
    found = checked(number, source)
    assert found.state == "not yet", str(found)
    return str(found)


BUCKETS = "def my_buckets(sizes, cap, first_cap):\n    "
RANK = "def global_rank(node_rank, local_rank, ranks_on_node):\n    "


def test_an_endless_loop_of_a_function_ends(monkeypatch):
    short = replace(find("03.2"), seconds=3)  # before it would count as hung
    monkeypatch.setattr("course_utils.checking.check.find", lambda number: short)
    loop = "while True:\n        try: pass\n        except Exception: pass"
    found = said("03.2", BUCKETS + loop)
    assert "stopped at its timeout of 3 s" in found
    assert "Which loop never ends?" in found


def test_what_a_function_printed_is_shown():
    assert "printed: here [" in said("03.2", BUCKETS + "print('here', sizes)\n    return []")


def test_what_a_rank_printed_is_shown():
    source = "def all_gather(tensor):\n    print('here', len(tensor))\n"
    assert "printed: rank 0: here 1" in said("00.2", source)


def test_an_exception_in_a_function_points_to_its_line():
    found = said("03.2", BUCKETS + "total = 0\n    return totall")
    assert "NameError: name 'totall' is not defined" in found
    assert "line 3" in found


def test_nothing_points_to_a_run_that_the_student_did_not_launch():
    found = said("00.1", RANK + "return nodes")
    assert "exercise_00_1.py, line 2" in found
    assert "run.dir" not in found
    found = said("00.1", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert "run.dir" not in found


def test_an_unchanged_stub_is_to_do_whatever_else_is_missing():
    tape = paths.workers() / "tape.py"
    before = tape.read_text() if tape.exists() else None
    tape.write_text("x = 1\n")  # the stub of 01.2 imports more than that
    try:
        assert checked("01.2", cells.sources()["exercise_01_2.py"]).state == "to do"
        changed = checked("01.2", cells.sources()["exercise_01_2.py"] + "# begun\n")
        assert "cannot import name 'Variable'" in str(changed)
    finally:
        tape.unlink() if before is None else tape.write_text(before)


def test_ours_imported_is_refused():
    source = "from ring_allreduce import ring_reduce_scatter\n"
    assert "ring_allreduce: that is the course's own" in said("04.2", source)


def test_the_solution_imported_is_refused():
    source = "from lessons.nb01.exercise_01_2 import exp\n"
    assert "that is the course's own" in said("00.1", source)


def test_what_exercises_share_is_refused_and_a_similar_name_is_not():
    shared = "from lessons.nb06.whole_layers import look\n"
    assert "that is the course's own" in said("06.2", shared)
    similar = "from lessons_of_mine import look\n"
    assert "that is the course's own" not in said("06.2", similar)


def test_torchs_own_is_refused():
    every = "from torch.nn.parallel import *\nparallel_apply = parallel_apply\n"
    assert "line 2 uses parallel_apply" in said("02.2", every)
    source = "from torch.nn.parallel import parallel_apply\n"
    assert "uses parallel_apply, which does what you are asked to write" in said("02.2", source)


def test_the_findings_cannot_be_replaced():
    source = "import course_utils.checking.findings as f\nf.report = print\n" + RANK + "return 0"
    assert "that is the course's own" in said("00.1", source)
    source = "from nbtorchrun.worker import events\nevents.emit = print\n" + RANK + "return 0"
    assert "returned 0, expected 1" in said("00.1", source)


def test_a_part_that_is_still_a_stub_is_named():
    source = find("06.1").ours
    head, _, _ = source.partition("def g(")
    assert "g still raises" in said(
        "06.1", head + "def g(x, group=None):\n    raise NotImplementedError"
    )


def test_a_rank_that_is_not_there_is_named():
    source = (
        "import torch\nimport torch.distributed as dist\n\ndef all_gather(tensor):\n"
        "    rank, world = dist.get_rank(), dist.get_world_size()\n"
        "    found = [torch.empty_like(tensor) for _ in range(world)]\n"
        "    request = dist.isend(tensor, rank + 1)\n"
        "    dist.recv(found[rank - 1], (rank - 1) % world)\n"
        "    request.wait()\n    return found\n"
    )
    assert "there is no rank 2: the ranks are 0 to 1" in said("00.2", source)


def test_the_global_random_state_is_left_alone():
    source = (
        "import torch\n\ndef my_share(size, ranks, rank, epoch, seed):\n"
        "    torch.manual_seed(seed + epoch)\n"
        "    order = torch.randperm(size).tolist()\n"
        "    total = -(-size // ranks) * ranks\n"
        "    return (order * ranks)[:total][rank::ranks]\n"
    )
    assert "changed the global random state" in said("03.3", source)


def test_numbers_are_shown_with_the_digits_in_which_they_differ():
    assert unlike(999000.0, 999000.5) == "999000, expected 999000.5"
    assert unlike([0.1, 1 / 3], [0.1, 0.333334]) == "[0.1, 0.333333], expected [0.1, 0.333334]"
    assert unlike(1.0, 1) == "1 (a float), expected 1 (an int)"


def test_of_many_numbers_the_first_that_differs_is_shown():
    rows = torch.arange(40.0).view(4, 10).tolist()
    other = [list(row) for row in rows]
    other[2][3] = -1.0
    assert unlike(other, rows) == "-1, expected 23 at place [2][3]"


def test_close_compares_with_the_larger_values():
    assert close([1e-13, 1.0], [0.0, 1.0])
    assert not close([1e-8, 1.0], [0.0, 1.0])
    assert close(float("nan"), float("nan"))
    assert not close(True, 1.0)


def test_known_mistakes_give_their_question():
    mistakes = {"Twice?": 4.0, "Half?": 1.0}
    assert hint_for(1.0, mistakes, "Look.") == "Half?"
    assert hint_for(3.0, mistakes, "Look.") == "Look."
    expect("x is", 2.0, 2.0, mistakes)


def test_whose_values_are_missing():
    assert whose([1.0, 2.0], [[1.0, 2.0], [10.0, 7.0]]) == "Rank 1's values are missing."
    assert whose([21.0], [[1.0], [10.0]]) == "Rank 1's values are counted twice."
    assert whose([22.5], [[1.0], [10.0]]) == ""


def test_counts_have_their_plural():
    assert [count(1, "entry"), count(2, "entry"), count(1, "rank")] == [
        "1 entry",
        "2 entries",
        "1 rank",
    ]
    assert check.MARKS.keys() == {"to do", "passed", "not yet"}


@pytest.mark.parametrize("number", ["01.4", "07.4"])
def test_a_right_answer_passes_after_its_notebook_was_saved_with_it(number, monkeypatch):
    saved = cells.sources() | {find(number).file: find(number).ours}
    monkeypatch.setattr(cells, "sources", lambda: saved)
    assert checked(number, find(number).ours).state == "passed"


def test_our_version_is_refused_after_its_notebook_was_saved_with_it(monkeypatch):
    answer = "from ring_allreduce import ring_reduce_scatter as reduce_scatter\n"
    saved = cells.sources() | {find("04.2").file: answer}
    monkeypatch.setattr(cells, "sources", lambda: saved)
    assert "imports ring_allreduce: that is the course's own" in said("04.2", answer)


@pytest.mark.parametrize("number", ["00.1", "04.2", "06.1"])
def test_an_answer_that_does_not_run_is_not_yet_right_with_its_line(number):
    found = said(number, "import torch\nraise ValueError('typo')\n")
    assert f"workers/{find(number).file}, line 2" in found


@pytest.mark.parametrize("number", ["00.1", "04.2", "06.1"])
def test_an_answer_that_ends_the_script_is_not_yet_right(number):
    assert "Is there an exit() in it?" in said(number, find(number).ours + "\nexit()\n")
