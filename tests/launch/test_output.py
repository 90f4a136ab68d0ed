"""Scripts that print much or oddly: shown capped, kept whole, and quickly."""

import re

import pytest

from course_utils import launch as loud
from nbtorchrun.display import text


def shown(capsys) -> list[str]:
    return capsys.readouterr().out.splitlines()


@pytest.fixture
def run_and_show(worker, capsys):
    """Run a script as a terminal that is piped shows it; give the Run and the lines shown."""

    def call(source, **options):
        run = loud(worker("prints.py", source), **{"timeout": 60, **options})
        return run, shown(capsys)

    return call


def test_lines_of_ranks_that_print_at_once_stay_whole(run_and_show):
    source = "import os\nfor i in range(500):\n    print('r' + os.environ['RANK'] * 40, i)\n"
    run, lines = run_and_show(source, nproc=4)
    for rank in range(4):
        expected = [f"r{str(rank) * 40} {i}" for i in range(500)]
        assert text.lines(run.ranks[rank].stdout) == expected
    pattern = re.compile(r"\[rank (\d)\] (r\1{40} \d+|\.\.\. \d+ more lines: .+)")
    assert all(pattern.fullmatch(line) for line in lines[1:-1])


def test_100_000_lines_are_capped_and_kept(run_and_show):
    run, lines = run_and_show("for i in range(100_000): print('line', i)\n")
    assert run.ranks[1].stdout.count("\n") == 100_000
    assert len(text.block(run).splitlines()) < 40
    assert 'run.dir / "rank_0/stdout.log"' in text.block(run)
    assert lines[-1].endswith("· ok")


def test_50_MB_without_a_newline(run_and_show):
    source = "for _ in range(50): print('x' * 1_000_000, end='')\n"
    run, lines = run_and_show(source, nproc=1)
    assert len(run.ranks[0].stdout) == 50_000_000
    assert max(map(len, lines)) < 300
    assert "(50000000 characters)" in text.block(run)


def test_what_is_not_utf_8_is_shown_escaped(run_and_show):
    run, lines = run_and_show(
        "import os\nos.write(1, b'caf\\xe9 \\xf0\\x9f\\x98\\x80\\n')\n", nproc=1
    )
    assert "caf\\xe9 😀" in lines
    assert run.ranks[0].stdout == "caf\\xe9 😀\n"


def test_a_progress_bar_shows_its_last_state(run_and_show):
    run, lines = run_and_show(
        "for i in range(101): print(f'\\r{i} %', end='')\nprint('\\rdone ')\n", nproc=1
    )
    assert "done " in lines
    assert run.ranks[0].stdout.count("\r") == 102


def test_what_the_ranks_said_before_they_failed_is_kept(worker, launch):
    source = "import os\nprint('begin', flush=True)\nos.write(2, b'native\\n')\nos.abort()\n"
    run = launch(worker("dies.py", source), check=False)
    failed = run.ranks[run.verdict.rank]  # torchrun may end the other before it says anything
    assert failed.stdout == "begin\n"
    assert "native" in failed.stderr


ALIKE = """
import os
rank = int(os.environ["RANK"])
os.write(2, b"before\\n")
raise ValueError(f"alike\\nand more of rank {rank}")
"""


def test_of_ranks_that_raise_alike_only_one_traceback_is_shown(run_and_show):
    run, lines = run_and_show(ALIKE, nproc=3, check=False)
    blamed = run.verdict.rank
    assert [line for line in lines if "Traceback" in line] == [
        f"[rank {blamed}] Traceback (most recent call last):"
    ]
    assert f"[rank {blamed}] and more of rank {blamed}" in lines
    assert sum(bool(re.search(r"and more of rank \d", line)) for line in lines) == 1
    raised = [rank for rank in run.ranks if "Traceback" in rank.stderr]
    assert raised  # torchrun may end the others before they raise
    assert all(f"[rank {rank.number}] before" in lines for rank in raised)


CAUGHT = """
import sys, time, traceback
for number in (1, 2):
    try:
        [][number]
    except IndexError:
        traceback.print_exc()
    time.sleep(0.2)
    print("goes on", number, file=sys.stderr, flush=True)
    time.sleep(0.2)
[].pop()
"""


def test_a_traceback_that_a_rank_survives_is_shown_where_it_stands(run_and_show):
    _, lines = run_and_show(CAUGHT, nproc=1, check=False)
    said = [line for line in lines if "Traceback" in line or "goes on" in line]
    first = "Traceback (most recent call last):"
    assert said == [first, "goes on 1", first, "goes on 2", first]


def test_tracebacks_of_a_run_that_ends_well_are_all_shown(run_and_show):
    source = "import traceback\ntry: [].pop()\nexcept IndexError: traceback.print_exc()\n"
    run, lines = run_and_show(source, nproc=3)
    assert run.ok
    assert sum(line.endswith("IndexError: pop from empty list") for line in lines) == 3
