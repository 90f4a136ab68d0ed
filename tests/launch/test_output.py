"""Scripts that print much or oddly: shown capped, kept whole, and quickly."""

import re

import pytest

from course_utils import launch as loud
from course_utils.display import text


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
    assert "[rank 0] caf\\xe9 😀" in lines
    assert run.ranks[0].stdout == "caf\\xe9 😀\n"


def test_a_progress_bar_shows_its_last_state(run_and_show):
    run, lines = run_and_show(
        "for i in range(101): print(f'\\r{i} %', end='')\nprint('\\rdone ')\n", nproc=1
    )
    assert "[rank 0] done " in lines
    assert run.ranks[0].stdout.count("\r") == 102


def test_what_the_ranks_said_before_they_failed_is_kept(worker, launch):
    source = "import os\nprint('begin', flush=True)\nos.write(2, b'native\\n')\nos.abort()\n"
    run = launch(worker("dies.py", source), check=False)
    assert run.ranks[0].stdout == "begin\n"
    assert "native" in run.ranks[0].stderr
