"""Signals: a script's own handlers and the launcher's never meet; death by any has its verdict."""

import os
import signal

import pytest

from nbtorchrun.launcher import running
from tests.launch.fault import START

both_ways = pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
HANGS = "if rank == 0:\n    dist.barrier()\ntime.sleep(1000)  # here\n"
HANDLERS = {
    "SIGUSR1 ends it": "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(print('asked')))\n",
    "SIGUSR1 is Python's own": "signal.signal(signal.SIGUSR1, signal.SIG_DFL)\n",
    "SIGTERM ends it": "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n",
    "SIGTERM raises": "signal.signal(signal.SIGTERM, lambda *_: 1 / 0)\n",
    "SIGTERM is ignored": "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n",
    "a dump of its own": "import faulthandler\nfaulthandler.register(signal.SIGUSR1)\n",
}
ALL = (
    "for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:\n"
    "    if number not in (32, 33):\n        signal.signal(number, lambda *_: sys.exit(0))\n"
)


@both_ways
@pytest.mark.parametrize("handles", HANDLERS.values(), ids=HANDLERS)
def test_a_script_that_handles_a_signal_and_hangs_is_told_where(worker, launch, handles, warm):
    script = START + handles + HANGS
    line = script.splitlines().index("time.sleep(1000)  # here") + 1
    run = launch(worker("handles.py", script), stall=2, warm=warm, check=False)
    assert (run.verdict.kind, run.verdict.rank, run.verdict.line) == ("hung", 1, line)
    assert f"rank 0 waits in barrier #1 (workers/handles.py, line {line - 1})" in run.verdict.text
    assert "asked" not in run.ranks[0].stdout + run.ranks[1].stdout
    assert [rank.exitcode for rank in run.ranks] == [None, None]


def test_of_a_script_that_handles_every_signal_nothing_false_is_said(worker, launch):
    run = launch(worker("handles.py", START + ALL + HANGS), stall=2, check=False)
    assert (run.verdict.kind, run.verdict.rank) == ("hung", 1)
    assert "rank 0 waits in barrier #1" in run.verdict.text
    assert "rank 1 was last seen in init_process_group" in run.verdict.text
    assert "ended" not in run.verdict.text


@both_ways
def test_a_script_still_gets_the_signals_it_handles(worker, launch, warm):
    body = (
        "import os, signal\n"
        "print(signal.getsignal(signal.SIGUSR1), signal.getsignal(signal.SIGRTMIN + 10))\n"
        "signal.signal(signal.SIGUSR1, lambda *_: print('preempted'))\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\n"
    )
    run = launch(worker("preempted.py", body), warm=warm)
    assert [rank.stdout for rank in run.ranks] == ["0 0\npreempted\n"] * 2


@both_ways
def test_a_rank_that_torchrun_ends_is_not_blamed_for_how_it_ends(worker, launch, warm):
    ends = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))\n"
    script = START + ends + "if rank == 1:\n    sys.exit(3)\ntime.sleep(1000)\n"
    run = launch(worker("ends.py", script), warm=warm, check=False)
    assert run.verdict.title == "rank 1 ended with exit status 3"
    ignores = "signal.signal(signal.SIGTERM, [sys.exit, signal.SIG_DFL, signal.SIG_IGN][rank])\n"
    killed = START + ignores + "if rank == 1:\n    os.kill(os.getpid(), 9)\ntime.sleep(1000)\n"
    run = launch(worker("killed.py", killed), nproc=3, warm=warm, check=False)
    assert run.verdict.title == "rank 1 was killed by SIGKILL"


@both_ways
@pytest.mark.parametrize(
    ("number", "name"), [(40, "signal 40"), (int(signal.SIGRTMAX), "SIGRTMAX"), (10, "SIGUSR1")]
)
def test_death_by_any_signal_has_its_verdict(worker, launch, number, name, warm):
    kills = f"if rank == 1:\n    os.kill(os.getpid(), {number})\ndist.barrier()\n"
    run = launch(worker("killed.py", START + kills), warm=warm, check=False)
    assert (run.verdict.kind, run.verdict.rank) == ("killed", 1)
    assert run.verdict.title == f"rank 1 was killed by {name}"
    assert run.ranks[1].exitcode == -number


def test_a_forkserver_that_dies_by_a_signal_without_a_name_is_a_sentence(worker, launch):
    body = "import os, time\nif os.environ['RANK'] == '1':\n    os.kill(os.getppid(), 50)\n"
    run = launch(worker("kills.py", body + "time.sleep(60)\n"), check=False)
    assert "(the forkserver) ended (signal 50)" in run.verdict.text


@both_ways
@pytest.mark.parametrize(
    ("call", "title"),
    [
        ("os._exit(status=3)", "rank 1 called `os._exit` before the end of the script"),
        (
            "os.execve(path='/bin/true', argv=['true'], env={})",
            "rank 1 called `os.execve`: it became another program, /bin/true",
        ),
        ("os.execv()", "rank 1 raised TypeError: execv expected 2 arguments, got 0"),
    ],
)
def test_a_rank_leaves_with_named_arguments_too(worker, launch, call, title, warm):
    script = START + f"if rank == 1:\n    {call}\ndist.barrier()\n"
    run = launch(worker("leaves.py", script), warm=warm, check=False)
    assert run.verdict.title == title


def test_a_rank_that_cannot_become_another_program_has_not_left(worker, launch):
    tries = "try:\n    os.execv('/no/such/program', ['it'])\nexcept OSError:\n    pass\n"
    run = launch(worker("tries.py", START + tries + HANGS), stall=2, check=False)
    assert (run.verdict.kind, run.verdict.rank) == ("hung", 1)
    assert "rank 1 is at workers/tries.py, line" in run.verdict.text


def test_what_cannot_be_judged_is_said_and_the_run_is_kept(worker, launch, monkeypatch):
    def fails(*_):
        raise LookupError("no such rule")

    monkeypatch.setattr(running, "judge", fails)
    body = "import os\nfrom course_utils.worker import report\nreport(x=1)\nos.kill(os.getpid(), 9)"
    run = launch(worker("killed.py", body), nproc=1, check=False)
    assert run.verdict.kind == "launcher"
    for part in ("cannot be judged: LookupError: no such rule", "rank 0: killed by SIGKILL"):
        assert part in run.verdict.text
    assert run.reports == [{"rank": 0, "x": 1}]
    assert os.path.isdir(run.dir)


@pytest.mark.parametrize("written", ["12", "[]", "null", '{"kind": "end"}', "\\x00", "{"])
def test_what_a_script_writes_among_the_events_does_no_harm(worker, launch, written):
    body = (
        "import os\nfrom course_utils.worker import report\n"
        "folder = os.environ['NBTORCHRUN_RUN_DIR'] + '/rank_' + os.environ['RANK']\n"
        f"open(folder + '/events.jsonl', 'a').write('{written}\\n')\nreport(rank=7, x=1)\n"
    )
    assert launch(worker("writes.py", body)).reports == [{"rank": rank, "x": 1} for rank in (0, 1)]
