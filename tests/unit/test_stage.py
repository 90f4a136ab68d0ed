"""A demo as its audience sees it: on a terminal, and piped."""

import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path
from subprocess import PIPE

import psutil
import pytest

from course_utils import paths
from nbtorchrun.display import console, text
from tools import stage
from tools.wrapping import wrapped

TERMINAL = {"TERM": "xterm-256color", "COLUMNS": "80", "NO_COLOR": ""}


def lines_of(written: str) -> list[str]:
    """What a terminal was sent, line by line, without colours and movements of the cursor."""
    return [line.strip() for line in re.split(r"[\r\n]+", re.sub(r"\033\[[\d;?]*\w", "", written))]


class Screen:
    """A terminal that a process writes to."""

    def __init__(self):
        self._ours, self.theirs = pty.openpty()
        self._written = b""

    @property
    def text(self) -> str:
        """All that was written so far."""
        return self._written.decode(errors="ignore")  # the last character may be half there

    def read_until(self, pattern: str | None, seconds: float = 200.0) -> str:
        """What was written, up to what matches `pattern`, or for None to the end."""
        deadline = time.monotonic() + seconds
        while pattern is None or not re.search(pattern, self.text):
            assert time.monotonic() < deadline, f"{pattern} did not come: {self.text}"
            if select.select([self._ours], [], [], 0.2)[0]:
                try:
                    added = os.read(self._ours, 65536)
                except OSError:  # so Linux says that everyone has closed the other end
                    added = b""
                if not added:
                    break
                self._written += added
        return self.text

    def close(self):
        os.close(self._ours)


@pytest.fixture
def on_a_terminal(small_course):
    """Start the command line on a terminal of 80 columns; give its process and the screen."""
    screens, started = [], []

    def start(*arguments, **env):
        screen = Screen()
        screens.append(screen)
        process = small_course.start(
            *arguments,
            env=TERMINAL | env,
            stdout=screen.theirs,
            stderr=screen.theirs,
            start_new_session=True,
        )
        os.close(screen.theirs)
        started.append(process)
        return process, screen

    yield start
    for process in started:
        process.kill()
        process.wait()
    for screen in screens:
        screen.close()


def test_a_terminal_shows_colours_how_far_it_is_and_a_summary(on_a_terminal):
    process, screen = on_a_terminal("demo", "count", "--to", "8", "--pause", "0.2")
    shown = screen.read_until(None)
    assert process.wait(60) == 0
    for rank, colour in enumerate((75, 208)):
        assert f"\033[38;5;{colour}m[rank {rank}]\033[0m count 7" in shown
    lines = lines_of(shown)
    assert lines.index("gloo · cpu") < lines.index("[rank 0] count 1")  # before it is over
    bar = re.compile(r"━*[╸╺]?━* (step \d of 8)(?:   .*)?")  # after 10 s with the time
    assert len({found[1] for line in lines if (found := bar.fullmatch(line))}) > 1
    assert "of 8" not in " ".join(lines[-6:])  # it is gone in the end
    assert shown.rindex("\033[?25h") > shown.rindex("\033[?25l")  # and the cursor is back
    assert re.search(r"\d\.\d s in total, including the import of torch · \d\.\d steps/s", shown)
    assert "the claim holds\033[0m" in shown


@pytest.mark.parametrize("no_color", ["", "1"], ids=["coloured", "NO_COLOR"])
def test_a_failure_is_a_card_on_a_terminal(on_a_terminal, no_color):
    process, screen = on_a_terminal("demo", "count", "--fail", NO_COLOR=no_color)
    shown = screen.read_until(None)
    assert process.wait(60) == 1
    assert ("\033[38;5;208mrank 1\033[0m raised" in shown) == (not no_color)
    assert bool(re.search(r"\033\[[\d;]*m", shown)) == (not no_color)
    lines = lines_of(shown)
    card = lines[next(n for n, line in enumerate(lines) if line.startswith("╭─ raised ─")) :]
    assert card[1].split() == "│ rank 1 raised ValueError: cannot count on │".split()
    assert any(row.startswith("│   >") and 'ValueError("cannot' in row for row in card)
    assert any(row.startswith("Logs: /") for row in card)
    assert shown.count("cannot count on") == 2  # the finding and the line of the script


def test_no_line_is_lost_or_mixed_up_beside_the_bar(on_a_terminal):
    process, screen = on_a_terminal("demo", "count", "--to", "1200")
    lines = lines_of(screen.read_until(None))
    assert process.wait(60) == 0
    for rank in range(2):
        said = [line for line in lines if line.startswith(f"[rank {rank}]")]
        expected = 0
        for line in said:
            match = re.fullmatch(
                r"\[rank \d\] (?:count (\d+)|\.\.\. (\d+) more lines:(?: .*)?|total .*)", line
            )
            assert match, line
            if match[1]:
                assert int(match[1]) == expected
            expected += int(match[2] or 1)
        assert expected in (1200, 1201)  # and the total


def test_a_failure_is_plain_text_when_piped(small_course):
    done = small_course("demo", "count", "--fail", env=TERMINAL)
    assert done.returncode == 1
    assert "\033" not in done.stdout
    assert "╭" not in done.stdout
    assert "\nrank 1 raised ValueError: cannot count on\n" in done.stdout
    log = re.search(r"Its full traceback: (/.*/rank_1/stderr.log)$", done.stdout, re.MULTILINE)
    assert "cannot count on" in Path(log[1]).read_text()
    assert done.stderr == ""


def test_ctrl_c_ends_a_demo_in_one_line_and_leaves_nothing(on_a_terminal):
    process, screen = on_a_terminal("demo", "count", "--to", "1000", "--pause", "0.1")
    screen.read_until(r"step \d+ of 1000")
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) > 2
    process.send_signal(signal.SIGINT)
    shown = screen.read_until(None)
    assert process.wait(60) == 130
    assert psutil.wait_procs(family, timeout=60)[1] == []
    assert lines_of(shown.rstrip())[-1] == "interrupted; no rank is left running"
    assert shown.rindex("\033[?25h") > shown.rindex("\033[?25l")  # the cursor is back
    assert "Traceback" not in shown


def test_ctrl_c_shows_what_the_ranks_were_doing(on_a_terminal):
    process, screen = on_a_terminal("demo", "count", "--to", "1000", "--pause", "0.1")
    screen.read_until(r"step \d+ of 1000")
    process.send_signal(signal.SIGINT)
    lines = lines_of(screen.read_until(None))
    assert process.wait(60) == 130
    card = " ".join(lines[next(n for n, line in enumerate(lines) if "─ stopped ─" in line) :])
    assert "you stopped the run after" in card
    assert re.search(
        r"(rank 0 is|ranks 0 and 1 are) at workers/count.py, line \d+|ranks? 0 .*waits? in .*"
        r"\(workers/count.py, line \d+\)",
        card,
    )


def test_before_the_ranks_start_a_terminal_says_what_it_is_doing_and_at_last_what_is_next(
    on_a_terminal,
):
    process, screen = on_a_terminal("demo", "count")
    lines = lines_of(screen.read_until(None))
    assert process.wait(60) == 0
    assert lines[0].startswith("Demo count: Count to a number. Then the claims")
    assert "Allow a minute or two." in " ".join(lines[:3])
    assert any("starting torch · " in line for line in lines)
    end = [line for line in lines if line]
    assert " ".join(end[-2:]).endswith("More demos: ./run.sh list.")
    process, screen = on_a_terminal("demo", "count")  # now it knows how long that takes
    assert "Last time it took " in " ".join(lines_of(screen.read_until("count 1"))[:3])


LAST_REPORTS = """\
import time
import torch.distributed as dist
from nbtorchrun.worker import init, report
init()
for step in range(1, 9):
    if dist.get_rank() == 1:
        report(step=step, total=8)
    time.sleep(0.2)
"""


def test_the_bar_follows_whichever_rank_reports(small_course):
    workers = small_course.home / "workers"
    workers.mkdir(parents=True)
    (workers / "last.py").write_text(LAST_REPORTS)
    code = "from course_utils import launch; launch('last.py')"
    screen = Screen()
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ
        | TERMINAL
        | {"COURSE_HOME": str(small_course.home), "PYTHONPATH": str(paths.ROOT)},
        stdout=screen.theirs,
        stderr=screen.theirs,
    )
    os.close(screen.theirs)
    try:
        assert re.search(r"step \d of 8", screen.read_until(None))
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        screen.close()


def test_words_stay_whole_on_a_narrow_terminal(on_a_terminal):
    process, screen = on_a_terminal("list", COLUMNS="24")
    lines = screen.read_until(None).replace("\r", "").split("\n")
    assert process.wait(60) == 0
    plain = [re.sub(r"\033\[[\d;?]*\w", "", line).rstrip() for line in lines]
    assert plain[1:3] == ["  count   Count to a", "          number."]


@pytest.mark.parametrize(
    "command",
    [
        "./run.sh list",
        "./run.sh demo ring",
        "./run.sh demo audit -n 4",
        "./run.sh demo links --help",
    ],
)
def test_a_command_stays_on_one_line(command, monkeypatch):
    terminal = StringIO()
    terminal.isatty = lambda: True
    for columns in range(len(command) + 1, 80):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = wrapped(f"More demos than this one: {command}. And so on.", 0, terminal).split("\n")
        assert any(command in line for line in lines)
        assert max(map(len, lines)) <= columns


def test_what_a_rank_says_is_broken_at_words(on_a_terminal):
    process, screen = on_a_terminal("demo", "count", "--fail", "--to", "1", COLUMNS="15")
    lines = lines_of(screen.read_until(None))
    assert process.wait(60) == 1
    at = lines.index("[rank 0] count")
    assert lines[at + 1] == "0"


def test_compare_says_the_speed_up_and_what_each_rank_sent(small_course):
    arguments = ("demo", "count", "--to", "5", "--pause", "0.05", "--compare")
    done = small_course(*arguments)
    assert done.returncode == 0, done.stderr
    assert re.search(r"speed-up: 2 ranks are \d+\.\d\d times as fast as one, which", done.stdout)
    # 5 all-reduces of 1000 float32: 2 (N-1)/N of 4 kB each, for N = 2
    assert "bytes: the busiest rank sent 20.0 kB in " in done.stdout


def test_a_demo_that_counts_nothing_has_no_speed_up(small_course):
    done = small_course("demo", "count", "--to", "1", "--compare")
    assert done.returncode == 0, done.stderr
    assert "speed-up: unknown" in done.stdout
    assert "steps/s" not in done.stdout


def test_a_terminal_that_cannot_redraw_gets_plain_text(on_a_terminal):
    process, screen = on_a_terminal("list", TERM="dumb")
    assert "count" in screen.read_until(None)
    assert process.wait(60) == 0
    assert "\033" not in screen.text


def test_a_torch_that_cannot_be_imported_is_a_sentence_that_names_the_doctor(
    small_course, tmp_path
):
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart.so is not there')")
    path = os.pathsep.join([str(tmp_path), str(paths.ROOT)])
    demo = small_course.start("demo", "count", env={"PYTHONPATH": path}, stderr=PIPE, text=True)
    _, said = demo.communicate(timeout=60)
    assert demo.returncode == 1
    assert re.fullmatch(r"run.sh: torchrun cannot start: .* \./run.sh doctor .*\n", said)


COUNTS = """\
import time
from nbtorchrun.worker import rank, report
{body}
"""


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        # Three trainings of ten steps, one after another, with a pause between two of them.
        (
            "for training in range(3):\n"
            "    time.sleep(1)\n"
            "    for step in range(11):\n"
            "        report(step=step, total=10)\n"
            "        time.sleep(0.05)\n",
            "steps/s",
        ),
        (
            "for step in range(11):\n"
            "    report(step=step, total=10, unit='epoch')\n"
            "    time.sleep(0.05)\n",
            "epochs/s",
        ),
        (
            "for step in range(11):\n"
            "    if rank() == 1:\n"
            "        report(step=step, total=10)\n"
            "    time.sleep(0.05)\n",
            "steps/s",
        ),
        ("for step in range(9): report(step=step, total=8, unit='method')\n", ""),
        ("for step in range(9): report(step=step)\n", ""),
    ],
    ids=["trainings", "epochs", "another rank", "methods", "no total"],
)
def test_a_rate_counts_what_the_script_counts(worker, launch, body, shown):
    amount, unit = stage.pace(launch(worker("counts.py", COUNTS.format(body=body)), nproc=2))
    assert unit == shown
    assert 0 <= amount <= 20  # a sleep of 0.05 s a step, and no pause counted as a step
    assert bool(amount) == bool(shown)


def test_the_bar_says_what_a_script_counts():
    assert text.progress({"step": 3, "total": 8, "unit": "method"}) == "method 3 of 8"
    assert text.progress({"step": 3, "total": 8, "loss": 0.5}) == "step 3 of 8   loss 0.5"


def test_the_bar_leaves_out_whole_values_that_do_not_fit():
    report = {"step": 3, "total": 8, "loss": 0.5, "accuracy": 0.75}
    assert text.progress(report, 39) == "step 3 of 8   loss 0.5   accuracy 0.75"
    assert text.progress(report, 37) == "step 3 of 8   loss 0.5"
    assert text.progress(report, 5) == "step 3 of 8"


OWN_CLAIMS = """\
from nbtorchrun.worker import init, report
init()
report(claim="it holds", on="2 ranks", worst=0.05, bound=0.05)
report(other=7)
"""


def test_a_demo_s_own_claims_stand_in_the_table_once(small_course):
    small_course.add("own.py", OWN_CLAIMS, "demo:own")
    done = small_course("demo", "own", "-n", "3")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"it holds +2 ranks +(< 0.05) +(0.05)\n", done.stdout) == [("< 0.05", "0.05")]
    assert done.stdout.count("it holds") == 1
    assert "the claim holds" in done.stdout
    assert "[rank 2] other 7" in done.stdout


def test_a_claim_of_a_demo_itself_that_fails_gives_status_1(small_course):
    small_course.add("own.py", OWN_CLAIMS.replace("worst=0.05", "worst=0.5"), "demo:own")
    done = small_course("demo", "own")
    assert done.returncode == 1
    assert "\nfails: it holds\n" in done.stdout


def test_a_single_rank_needs_no_label(small_course):
    small_course.add("alone.py", "print('I am', 'alone')\n", "demo:alone", nproc=1)
    done = small_course("demo", "alone")
    assert "\nI am alone\n" in done.stdout
    assert "[rank" not in done.stdout


@pytest.mark.parametrize("width", [80, 120])
def test_a_line_that_is_too_long_goes_on_below_its_last_column(monkeypatch, width):
    monkeypatch.setattr("sys.stdout", StringIO())
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    words = " ".join(["word"] * 40)
    first, *rest = console.wrapped(f"[rank 0] name   12.0  {words}", 9).split("\n")
    assert all(len(line) <= width for line in (first, *rest))
    assert first.startswith("[rank 0] name   12.0  word")
    assert rest
    assert all(line.startswith(" " * 22 + "word") for line in rest)


def test_a_command_is_broken_between_its_words_and_can_still_be_copied(monkeypatch):
    command = "torchrun --standalone workers/x.py " + "--option 'two words' " * 6
    assert console.command_line(command) == command  # piped
    monkeypatch.setattr("sys.stdout", StringIO())
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    shown = console.command_line(command)
    assert all(len(line) <= 60 for line in shown.split("\n"))
    assert len(shown.split("\n")) > 2
    assert shlex.split(shown.replace("\\\n", "")) == shlex.split(command)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("arguments", [(), ("-n", "4", "--epochs", "3"), ("--no-such-option",)])
def test_the_first_sentence_comes_before_anything_is_imported(arguments):
    """It needs no torch, whose import takes seconds of processor time."""
    command = [sys.executable, "-m", "tools", "demo", "pipeline", *arguments]
    demo = subprocess.Popen(command, stdout=PIPE, stderr=PIPE, text=True, cwd=paths.ROOT)
    try:
        assert demo.stdout.readline().startswith("Demo pipeline: ")
        mapped = Path(f"/proc/{demo.pid}/maps")
        if mapped.exists():  # on Linux
            loaded = mapped.read_text()
            assert "/torch/" not in loaded
            assert "/numpy/" not in loaded
    finally:
        demo.send_signal(signal.SIGINT)
        demo.communicate(timeout=60)
