"""Runs a demo for an audience: first live, then to measure it and the notebook's claims."""

import re
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from course_utils import notes, paths, proofs
from course_utils.files import script_path
from nbtorchrun.display import text
from nbtorchrun.display.console import GREEN, RED, open_console, show_failure
from nbtorchrun.display.text import duration
from nbtorchrun.errors import InputError, LaunchError, Stopped
from nbtorchrun.formats import number, rate, size
from nbtorchrun.launcher.options import Options
from nbtorchrun.launcher.request import ranks_environ
from nbtorchrun.launcher.running import Screen, launch_path
from nbtorchrun.runs import Rank, Run
from tools.demos import Demo, Step, launching, title
from tools.near_miss import explained
from tools.wrapping import wrapped

TOOK = ".demos.json"  # seconds that each demo took last time, by name
PACED = ("step", "epoch")  # what takes the same time again and again, so that a rate says something
METERED = paths.ROOT / "tools" / "metered.py"


def perform(
    demo: Demo,
    arguments: Sequence[str],
    compare: bool,
    nproc: int,
    nnodes: int,
    **options: Any,
) -> bool:
    """Run a demo live, then measure its claims; return whether all went well.

    Args:
        arguments: options of its script; if empty, those of its notebook.
        compare: run it twice more, silently, to measure the speed-up over one rank and the bytes.
        nproc: number of ranks on this machine.
        nnodes: number of machines.
        **options: the other options of `launch`.

    Raises:
        InputError: one rank leaves nothing to compare, or the script refuses an option.
    """
    began = time.monotonic()
    main = replace(demo.main, nproc=nproc, arguments=tuple(arguments) or demo.main.arguments)
    if compare and (nproc == 1 or nnodes > 1):
        raise InputError("--compare needs 2 ranks or more, on one machine")
    print(wrapped(introduction(demo), 0), flush=True)
    try:
        run = start(main, screen=audience, nnodes=nnodes, **options)
        if reason := refusal(run):
            run.folder.discard()
            raise InputError(f"demo {demo.name}: {reason} (./run.sh demo {demo.name} --help)")
        if not run.ok:
            raise LaunchError(str(run.verdict), run)
        print(summary(run), flush=True)
        if compare:
            print("Running it again on one rank, and then under the meter ...", flush=True)
            print(speed_up(main, run, **options), flush=True)
            print(bytes_moved(main, **options), flush=True)
        held = measure_claims(demo, run)
        if not (arguments or compare):
            with notes.changing(TOOK) as took:
                took[demo.name] = time.monotonic() - began
        print(f"\n{wrapped(next_step(demo), 0)}", flush=True)
        return held
    except Stopped as stopped:  # what it says is worth reading; the command says that it ended
        show_failure(stopped.run)
        raise
    except LaunchError as error:
        if error.run is None:
            raise
        show_failure(error.run)
        return False


def introduction(demo: Demo) -> str:
    """What the audience is about to see, and how long that may take."""
    said = f"Demo {demo.name}: {demo.about.rstrip('.')}."
    said += " Then the claims of its notebook are measured." * bool(demo.proofs)
    if took := notes.read(TOOK).get(demo.name):
        return f"{said} Last time it took {duration(took)}."
    return f"{said} Allow {f'{demo.minutes} minutes' if demo.minutes else 'a minute or two'}."


def start(
    step: Step,
    screen: Callable[[Run, Options], Screen] = lambda run, options: Screen(),
    **options: Any,
) -> Run:
    """Make a launch; without a `screen` it shows nothing."""
    path, settings = script_path(step.file), Options(nproc=step.nproc, **options)
    return launch_path(path, step.arguments, settings, screen)


def audience(run: Run, options: Options) -> Screen:
    """The terminal for a demo: its claims go into the table, and a refusal to the caller."""
    from nbtorchrun.display.terminal import Terminal  # and with it rich

    class Audience(Terminal):
        def close(self, run: Run) -> None:
            if refusal(run):
                self.fold()
            else:
                super().close(run)

        def results(self, rank: Rank) -> list[str]:
            return text.results([report for report in rank.reports if not proofs.is_claim(report)])

    return Audience(run, options.notice or run.note, options.nproc * options.nnodes == 1)


def refusal(run: Run) -> str:
    """What a script's argparse said is wrong with its options; '' if it took them."""
    for rank in run.ranks:
        usage = r"^usage: (?P<usage>.*)^\S+: error: (?P<reason>[^\n]+)"
        if rank.exitcode == 2 and (said := re.search(usage, rank.stderr, re.DOTALL | re.MULTILINE)):
            of_launching = launching(ArgumentParser()).format_usage()
            return explained(said["reason"], said["usage"] + of_launching)
    return ""


def next_step(demo: Demo) -> str:
    """Where to go from here."""
    return f"Next: {title(demo.notebook)} explains it: ./run.sh lab. More demos: ./run.sh list."


def summary(run: Run) -> str:
    """How long a run took and, if its script reports one, its rate per second."""
    amount, unit = pace(run)
    took = f"{run.seconds:.1f} s in total, including the import of torch"
    return f"{took} · {rate(amount)} {unit}" if amount else took


def pace(run: Run) -> tuple[float, str]:
    """Rank 0's latest reported rate, otherwise steps per second; (0, '') if there is neither.

    Steps are those of the first rank that says how far it is. A script that counts something else
    names it, `report(step=, total=, unit="epoch")`: then the rate has that unit.
    """
    # What scripts report is summed over all ranks.
    for name, unit in (("tokens_per_second", "tokens/s"), ("images_per_second", "images/s")):
        if reported := run.series(name):
            return reported[-1], unit
    for rank in run.ranks:
        events = [
            (event["at"], event["data"])
            for event in rank.events()
            if event["kind"] == "report" and text.share_done(event["data"]) is not None
        ]
        done = seconds = 0
        for (earlier, before), (later, now) in pairwise(events):
            if now["step"] >= before["step"]:  # else a training begins, or begins again
                done += now["step"] - before["step"]
                seconds += (later - earlier) / 1e9
        unit = events[-1][1].get("unit", "step") if events else ""
        if done and unit in PACED:
            return done / seconds, f"{unit}s/s"
    return 0.0, ""


def speed_up(main: Step, run: Run, **options: Any) -> str:
    """Run a demo on one rank and say how much faster `run` was.

    To be fair, the single rank gets as many threads as a rank of `run` had, and the same device.
    """
    ranks = len(run.ranks)
    env = {"OMP_NUM_THREADS": ranks_environ(Options(nproc=ranks))["OMP_NUM_THREADS"]}
    if "cpu" in run.place:
        env["COURSE_DEVICE"] = "cpu"
    alone = start(replace(main, nproc=1), env=env, **options)
    if not alone.ok:  # a parameter server without a worker, for example
        return "speed-up: unknown, because the script does not run on one rank"
    (one, unit), (all_, unit_of_all) = pace(alone), pace(run)
    if not one or unit != unit_of_all:
        return "speed-up: unknown, because the script reports neither a rate nor its steps"
    return (
        f"speed-up: {ranks} ranks are {all_ / one:.2f} times as fast as one, "
        f"which does {rate(one)} {unit}"
    )


def bytes_moved(main: Step, **options: Any) -> str:
    """Run a demo under the meter, which slows it down, and say what its ranks sent."""
    script = str(script_path(main.file))
    settings = Options(nproc=main.nproc, show=False, **options)
    run = launch_path(METERED, [script, *main.arguments], settings)
    counted = [run.series("metered", rank.index) for rank in run.ranks]
    if not run.ok or not all(counted):
        return "bytes: unknown, because the script did not finish under the meter"
    ((sent, calls),) = max(counted)
    return (
        f"bytes: the busiest rank sent {size(sent)} in {calls:,} collectives and messages, "
        "as counted by the meter"
    )


def measure_claims(demo: Demo, shown: Run) -> bool:
    """Print a demo's claims as a table: what it reported itself, and what its proofs measure.

    Returns:
        Whether all of them hold.

    Raises:
        LaunchError: a script that measures failed.
    """
    rows, silent = proofs.reported(shown), []
    if not (rows or demo.proofs):
        return True
    console = open_console()
    measuring = f"Measuring the claims of notebook {demo.notebook[:2]} ..."
    console.print(f"\n{measuring if demo.proofs else 'What this run has measured:'}")
    with console.status("") as status:
        for number, proof in enumerate(demo.proofs, 1):
            status.update(f"{number} of {len(demo.proofs)}: {proof.file}")
            run = start(proof)
            if not run.ok:
                raise LaunchError(str(run.verdict), run)
            found = proofs.reported(run)
            rows += found
            silent += [] if found else [f"not measured: {proof.file} reported no claim"]
    rows = proofs.worst_of_each(rows)
    broken = [f"fails: {row.claim}" for row in rows if not row.holds] + silent
    show_claims(console, rows)
    for sentence in broken:
        console.print(wrapped(sentence, 2), style=f"bold {RED}")
    if not broken:
        few = {1: "the claim holds", 2: "both claims hold"}
        held = few.get(len(rows), f"all {len(rows)} claims hold")
        console.print(held, style=GREEN)
    return not broken


def show_claims(console: Any, rows: list[proofs.Proof]) -> None:
    """A table of claims: on a terminal as wide as that is, broken at words; else plain lines."""
    if not console.is_interactive:
        console.print(proofs.text(rows))
        return
    from rich.table import Table

    table = Table("", "claim", "measured on", "worst ≤", "bound", box=None, pad_edge=False)
    for row in rows:
        table.add_row(proofs.mark(row), row.claim, row.on, row.measured, number(row.bound))
    console.print(table, soft_wrap=False)
