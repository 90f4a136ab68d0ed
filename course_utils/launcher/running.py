"""A run from start to end: starts the ranks, watches them, and judges what they left behind."""

import contextlib
import shlex
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from course_utils.diagnosis.judging import judge
from course_utils.diagnosis.verdict import Verdict
from course_utils.errors import LaunchError, Stopped
from course_utils.launcher import client, processes
from course_utils.launcher.activity import Activity
from course_utils.launcher.folder import RunFolder
from course_utils.launcher.options import Options
from course_utils.launcher.request import needs_fresh_ranks, request_for
from course_utils.runs import Rank, Run

POLL = 0.02  # seconds between two looks at the ranks' logs
GRACE = 1.0  # seconds the ranks have to end when they are asked to
STOPPED = "the run was stopped; its ranks have ended"

_one_at_a_time = threading.Lock()  # the agent handles one run at a time


class Screen:
    """What shows a run while it lives; this one shows nothing."""

    def prepare(self) -> None:
        """Show that the ranks cannot start yet: a process of ours still imports torch."""

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

    def update(self) -> None:
        """Show what has happened, or from the first error on nothing."""
        self._try("update")

    def _try(self, name: str) -> None:
        try:
            getattr(self._screen, name)()
        except Exception as error:
            warnings.warn(f"the run goes on, but cannot be shown: {error!r}", stacklevel=2)
            self._screen = Screen()

    def fold(self) -> None:
        """Take away what is shown only while the run lives."""
        self._screen.fold()

    def close(self, run: Run) -> None:
        """Show how the run ended."""
        self._screen.close(run)


def launch_path(
    path: Path,
    arguments: Iterable[str],
    options: Options,
    screen_for: Callable[[Run, Options], Screen] = lambda run, options: Screen(),
) -> Run:
    """Run a script, wherever it lies; it can import the files of `workers/`.

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
        command=shlex.join([*command, f"workers/{path.name}", *arguments]),
        folder=folder,
        ranks=[Rank(index, folder) for index in range(options.nproc)],
    )
    if path.exists():
        why = options.warm and needs_fresh_ranks(path, options)
        if why:
            run.note = f"the ranks are new Pythons, which takes some seconds: {why}"
        with _one_at_a_time:
            _execute(
                run,
                request_for(path, arguments, folder.path, options, options.warm and not why),
                options,
                Guarded(screen_for(run, options)),
            )
    else:
        run.verdict = _missing(path)
    if not run.ok:
        processes.kill_strays(run.dir)
        folder.keep()
    return run


def _execute(run: Run, request: dict[str, Any], options: Options, screen: Screen) -> None:
    """Let an agent run `request`, show it, and fill in how it ended."""
    start = time.monotonic()
    agent = client.kept_agent(options.warm)
    activity = Activity(run)
    interrupted = False
    try:
        try:
            _wait_until_ready(agent, screen)
            agent.send(request)
            outcome = _watch(run, agent, screen, options, activity)
        except KeyboardInterrupt:
            interrupted = True
            outcome = _stopped_by_hand(run, agent, time.monotonic() - start, activity)
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
    run.seconds = time.monotonic() - start
    _fill_in_exit_codes(run, outcome)
    run.verdict = judge(run, outcome, options.nnodes * options.nproc)
    screen.close(run)
    if interrupted:
        run.folder.keep()
        raise Stopped(f"{run.verdict}\n  {STOPPED}", run) from None


def _wait_until_ready(agent: client.Agent, screen: Screen) -> None:
    """Wait until the agent has imported torch, and let the screen say so."""
    while not agent.is_ready(POLL):
        screen.prepare()


def _watch(
    run: Run, agent: client.Agent, screen: Screen, options: Options, activity: Activity
) -> dict[str, Any]:
    """Wait for the agent's reply and keep the screen up to date; stop the run at its limits."""
    start = time.monotonic()
    while (outcome := agent.wait(POLL)) is None:
        screen.update()
        gone = activity.gone()
        # Without an error torchrun waits for the other ranks, which may wait for this one.
        unrecorded = {index for index in gone if not run.ranks[index].last("end")}
        over = _over(options, time.monotonic() - start, activity.quiet())
        if unrecorded or over:
            found = {"over": over, "gone ranks": unrecorded}
            return _examine_and_stop(run, agent, activity) | found
        if gone:  # torchrun has asked the others to end, but waits 30 s for those that do not
            processes.kill_ranks(run.dir)
    return outcome


def _examine_and_stop(run: Run, agent: client.Agent, activity: Activity) -> dict[str, Any]:
    """Have the ranks write down where they are, and end them."""
    stopped = activity.stopped()
    left = {rank.index for rank in run.ranks if rank.last("left")}
    processes.dump_stacks(run.dir, left, stopped)
    time.sleep(0.2)  # the ranks need a moment to finish that
    return (_stop(run, agent) or {}) | {"stopped ranks": stopped}


def _stopped_by_hand(
    run: Run, agent: client.Agent, seconds: float, activity: Activity
) -> dict[str, Any]:
    """End an interrupted run; what its ranks were doing is the more worth knowing."""
    found = {"over": f"you stopped the run after {seconds:.0f} s", "by hand": True}
    if not agent.ready:  # it goes on importing torch, for the next run
        found["over"] += ", before its ranks could start"
        return found
    found["quiet"] = activity.quiet()
    return _examine_and_stop(run, agent, activity) | found


def _over(options: Options, seconds: float, quiet: float) -> str | None:
    """Why a run must be stopped after `seconds`, the last `quiet` without activity; or None."""
    if seconds > options.timeout:
        return f"the run was stopped at its timeout of {options.timeout:g} s"
    if quiet > options.stall:
        return f"the run hangs: for {options.stall:g} s no rank computed, printed or reported"
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
        f"workers/{path.name} does not exist, and no notebook has a cell that writes it. "
        f"Write it with %%worker {path.name}. Files in workers/: {there}",
    )
