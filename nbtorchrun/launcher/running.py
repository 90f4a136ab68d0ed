"""A run from start to end: starts the ranks, watches them, and judges what they left behind."""

import contextlib
import shlex
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from nbtorchrun import settings
from nbtorchrun.diagnosis.judging import judge
from nbtorchrun.diagnosis.verdict import Line, Says, Verdict, fact
from nbtorchrun.errors import LaunchError, Stopped
from nbtorchrun.formats import signal_name
from nbtorchrun.launcher import client, interrupts, processes
from nbtorchrun.launcher.activity import Activity
from nbtorchrun.launcher.folder import RunFolder
from nbtorchrun.launcher.options import Options
from nbtorchrun.launcher.output import Output
from nbtorchrun.launcher.request import needs_fresh_ranks, request_for
from nbtorchrun.runs import Rank, Run

POLL = 0.02  # seconds between two looks at the ranks' logs
GRACE = 1.0  # seconds the ranks have to end when they are asked to
STOPPED_BEFORE = "the run was stopped before its ranks were started"
STOPPED = "the run was stopped; its ranks have ended"

_one_at_a_time = threading.Lock()  # the agent handles one run at a time
_running = ""  # the command of that run


class Screen:
    """What shows a run while it lives; this one shows nothing."""

    def prepare(self) -> None:
        """Show that the ranks cannot start yet: a process of ours still imports torch."""

    def wait(self, command: str) -> None:
        """Show that the run of that command, which another thread started, must end first."""

    def update(self) -> None:
        """Show what has happened since the last call."""

    def fold(self) -> None:
        """Take away what is shown only while the run lives."""

    def close(self, run: Run) -> None:
        """Show how the run ended."""


class Guarded(Screen):
    """Shows a run on another screen until that fails: no error of a display ends a healthy run."""

    def __init__(self, screen: Screen):
        self._screen = screen

    def prepare(self) -> None:
        """Show that torch is being imported, or from the first error on nothing."""
        self._try("prepare")

    def wait(self, command: str) -> None:
        """Show which run must end first, or from the first error on nothing."""
        self._try("wait", command)

    def update(self) -> None:
        """Show what has happened, or from the first error on nothing."""
        self._try("update")

    def _try(self, name: str, *arguments: Any) -> None:
        try:
            getattr(self._screen, name)(*arguments)
        except BrokenPipeError:  # as with `| head`: whoever calls ends too
            raise
        except Exception as error:
            self._screen = Screen()
            with contextlib.suppress(Exception):  # the page may take nothing from this thread
                warnings.warn(f"the run goes on, but cannot be shown: {error!r}", stacklevel=2)

    def fold(self) -> None:
        """Take away what is shown only while the run lives, or from the first error on nothing."""
        self._try("fold")

    def close(self, run: Run) -> None:
        """Show how the run ended, or say that this cannot be shown."""
        self._try("close", run)


def launch_path(
    path: Path,
    arguments: Iterable[str],
    options: Options,
    screen_for: Callable[[Run, Options], Screen] = lambda run, options: Screen(),
) -> Run:
    """Run a script, wherever it lies; it can import the files beside the scripts.

    Args:
        path: the script.
        arguments: passed to it.
        options: how it is launched.
        screen_for: makes what shows the run while it lives; the default shows nothing.
    """
    arguments, folder = list(arguments), RunFolder(path.stem)
    command = ["torchrun", *options.meeting, "--nproc-per-node", str(options.nproc)]
    run = Run(
        name=options.name,
        command=shlex.join([*command, settings.shown(path), *arguments]),
        folder=folder,
        ranks=[Rank(index, folder) for index in range(options.nproc)],
    )
    if path.exists():
        why = options.warm and needs_fresh_ranks(options)
        if why:
            run.note = f"the ranks are new Pythons, which takes some seconds: {why}"
        warm = options.warm and not why
        request = request_for(path, arguments, folder.path, options, warm)
        screen = Guarded(screen_for(run, options))
        with _turn(run, screen):
            _execute(run, request, options, screen)
    else:
        run.verdict = _missing(path)
    if not run.ok:
        processes.kill_strays(run.dir)
        folder.keep()
    return run


@contextlib.contextmanager
def _turn(run: Run, screen: Screen) -> Iterator[None]:
    """Wait until no other thread's run is under way."""
    global _running
    try:
        while not _one_at_a_time.acquire(timeout=POLL):
            interrupts.check()
            screen.wait(_running)
    except KeyboardInterrupt:
        screen.fold()
        run.verdict = Verdict("stopped", STOPPED_BEFORE)
        raise Stopped(STOPPED_BEFORE, run) from None
    try:
        _running = run.command
        yield
    finally:
        _one_at_a_time.release()


def _execute(run: Run, request: dict[str, Any], options: Options, screen: Screen) -> None:
    """Let an agent run `request`, show it, and fill in how it ended."""
    start = time.monotonic()
    agent = client.kept_agent(options.warm)
    activity, output = Activity(run), Output(run)
    interrupted = False
    try:
        try:
            _wait_until_ready(agent, screen)
            agent.send(request)
            outcome = _watch(run, agent, screen, options, activity, output)
        except KeyboardInterrupt:
            interrupted = True
            seconds = time.monotonic() - start
            outcome = _stopped_by_hand(run, agent, seconds, activity, output)
            processes.kill_strays(run.dir)
    except BaseException as error:  # a second interrupt too: the ranks must not outlive it
        _give_up(run, agent, screen)
        if isinstance(error, KeyboardInterrupt):
            run.verdict = Verdict("stopped", STOPPED)
            raise Stopped(STOPPED, run) from None
        if isinstance(error, LaunchError):
            run.folder.keep()  # and so the agent's log beside it, which the error names
        raise
    finally:
        processes.kill_ranks(run.dir)  # a good rank may leave processes behind, too
        output.cut()
    run.seconds = time.monotonic() - start
    _fill_in_exit_codes(run, outcome)
    outcome["debug"] = request["environ"].get("TORCH_DISTRIBUTED_DEBUG", "")
    run.verdict = _judged(run, outcome, options)
    screen.close(run)
    if interrupted:
        run.folder.keep()
        raise Stopped(f"{run.verdict}\n  {STOPPED}", run) from None


def _judged(run: Run, outcome: dict[str, Any], options: Options) -> Verdict | None:
    """The verdict on a run; what the ranks left behind stays, even if it cannot be judged."""
    try:
        return judge(run, outcome, options.nnodes * options.nproc)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        ends = ", ".join(f"rank {rank.index}: {_ended(rank.exitcode)}" for rank in run.ranks)
        lines = [
            fact(f"What is known of the end: {outcome.get('over') or ends}."),
            fact(
                f"This is a mistake of nbtorchrun: please report it ({where.filename}, line "
                f"{where.lineno})."
            ),
            Line(Says.LOG, "What the first rank wrote last: ", "rank_0/stderr.log"),
        ]
        title = f"how this run ended cannot be judged: {type(error).__name__}: {error}"
        return Verdict("launcher", title, tuple(lines), run=run.name, ranks=tuple(run.ranks))


def _ended(code: int | None) -> str:
    """How a rank's process ended, by its exit code."""
    if code is None:
        return "ended by the launcher"
    return f"killed by {signal_name(-code)}" if code < 0 else f"exit status {code}"


def _wait_until_ready(agent: client.Agent, screen: Screen) -> None:
    """Wait until the agent has imported torch, and let the screen say so."""
    while not agent.is_ready(POLL):
        interrupts.check()
        screen.prepare()


def _watch(
    run: Run,
    agent: client.Agent,
    screen: Screen,
    options: Options,
    activity: Activity,
    output: Output,
) -> dict[str, Any]:
    """Wait for the agent's reply and keep the screen up to date; stop the run at its limits."""
    start = time.monotonic()
    while (outcome := agent.wait(POLL)) is None:
        interrupts.check()
        screen.update()
        gone = activity.gone()
        # Without an error torchrun waits for the other ranks, which may wait for this one.
        if processes.is_over(run.dir):  # it ends the others already, which then record nothing
            unrecorded = set()
        else:
            unrecorded = {index for index in gone if not run.ranks[index].last("end")}
        full = output.too_much()
        over = full or _over(options, time.monotonic() - start, activity)
        if unrecorded or over:
            endless = output.without_end()
            if over and endless and not full:
                over += f"; {endless}"
            found = {"over": over, "gone ranks": unrecorded, "endless": bool(full or endless)}
            return _examine_and_stop(run, agent, activity, at_once=bool(full)) | found
        if gone:  # torchrun ends the others, but waits 30 s for those that do not
            processes.kill_ranks(run.dir)
    return outcome


def _examine_and_stop(
    run: Run, agent: client.Agent, activity: Activity, at_once: bool = False
) -> dict[str, Any]:
    """Have the ranks write down where they are, and end them; `at_once` without asking."""
    processes.declare_over(run.dir)
    stopped = activity.stopped()
    left = {rank.index for rank in run.ranks if (rank.last("left") or {}).get("by")}
    # A script that handles the signals it gets from here on may leave a call by that.
    calls: dict[Path, bytes] = {}
    for path in run.dir.glob("rank_*/calls.txt"):
        with contextlib.suppress(OSError):
            calls[path] = path.read_bytes()
    activity.ask()
    processes.dump_stacks(run.dir, left, stopped)
    time.sleep(0.2)  # the ranks need a moment to finish that
    if at_once:
        processes.kill_ranks(run.dir)
    outcome = _stop(run, agent) or {}
    for path, noted in calls.items():
        with contextlib.suppress(OSError):  # the run's folder was removed
            path.write_bytes(noted)
    return outcome | {"stopped ranks": stopped}


def _stopped_by_hand(
    run: Run, agent: client.Agent, seconds: float, activity: Activity, output: Output
) -> dict[str, Any]:
    """End an interrupted run; what its ranks were doing is the more worth knowing."""
    found = {"over": f"you stopped the run after {seconds:.0f} s", "by hand": True}
    if not agent.ready:  # it goes on importing torch, for the next run
        found["over"] += ", before its ranks could start"
        return found
    if endless := output.without_end():
        found["over"] += f"; {endless}"
    found["quiet"] = activity.quiet()
    return _examine_and_stop(run, agent, activity) | found


def _over(options: Options, seconds: float, activity: Activity) -> str | None:
    """Why a run must be stopped after `seconds`; or None."""
    if seconds > options.timeout:
        return f"the run was stopped at its timeout of {options.timeout:g} s"
    if activity.quiet() > options.stall:
        return f"the run hangs: for {options.stall:g} s no rank computed, printed or reported"
    if activity.mismatched(options.stall):
        return f"the run hangs: for {options.stall:g} s the ranks waited in calls that can't match"
    return None


def _stop(run: Run, agent: client.Agent) -> dict[str, Any] | None:
    """End a run from outside; if the agent cannot end it, end the agent too."""
    outcome = None
    try:
        agent.send(None)
        outcome = agent.wait(GRACE)
        if outcome is None:
            processes.kill_ranks(run.dir)
            outcome = agent.wait(GRACE)
    finally:
        if outcome is None:  # after an interrupt too: a late reply would pass for the next run's
            agent.kill()
    return outcome


def _give_up(run: Run, agent: client.Agent, screen: Screen) -> None:
    """End a run that nobody waits for any more; a second interrupt only makes that quicker."""
    try:
        with contextlib.suppress(KeyboardInterrupt):
            _stop(run, agent)
    finally:
        processes.kill_strays(run.dir)
        screen.fold()


def _fill_in_exit_codes(run: Run, outcome: dict[str, Any]) -> None:
    """Give each rank the exit code that torchrun saw, or else the one it recorded itself."""
    seen = {int(index): code for index, code in outcome.get("exitcodes", {}).items()}
    for index, rank in enumerate(run.ranks):
        recorded = rank.last("end") or {}  # it was about to exit when torchrun ended all ranks
        run.ranks[index] = replace(rank, exitcode=seen.get(index, recorded.get("status")))


def _missing(path: Path) -> Verdict:
    there = ", ".join(sorted(other.name for other in path.parent.glob("*.py"))) or "none"
    return Verdict(
        "launcher",
        f"{settings.shown(path)} does not exist. {settings.advice(path.name)}. "
        f"Files in {path.parent.name}/: {there}",
    )
