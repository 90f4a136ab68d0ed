"""Runs a demo for an audience: first live, then to measure it and the notebook's claims."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from course_utils import paths
from course_utils.display.console import GREEN, RED, open_console, show_failure, wrapped
from course_utils.display.text import duration
from course_utils.errors import InputError, LaunchError, Stopped
from course_utils.formats import number, rate, size
from course_utils.launcher.options import Options
from course_utils.launcher.request import ranks_environ
from course_utils.launcher.running import launch_path
from course_utils.notebook import notes, proofs
from course_utils.notebook.demos import Demo, Step, check_options, title
from course_utils.notebook.files import script_path
from course_utils.notebook.launching import launch
from course_utils.runs import Run

TOOK = ".demos.json"  # seconds that each demo took last time, by name
FIRST_TIME = "Allow a minute or two"
METERED = paths.ROOT / "course_utils" / "notebook" / "metered.py"


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
        InputError: an option or the number of ranks is invalid, or leaves nothing to compare. No
            rank of the demo was started.
    """
    began = time.monotonic()
    main = replace(demo.main, nproc=nproc, arguments=tuple(arguments) or demo.main.arguments)
    if compare and (nproc == 1 or nnodes > 1):
        raise InputError("--compare needs 2 ranks or more, on one machine")
    ranks = nproc * nnodes
    if arguments or ranks != demo.main.nproc:
        check_options(demo, main.arguments, ranks)
    print(wrapped(introduction(demo), 0), flush=True)
    try:
        run = launch(main.file, *main.arguments, nproc=nproc, nnodes=nnodes, **options)
        print(summary(run), flush=True)
        if compare:
            print("Running it again on one rank, and then under the meter ...", flush=True)
            print(speed_up(main, run, **options), flush=True)
            print(bytes_moved(main, **options), flush=True)
        held = measure_claims(demo)
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
    took = notes.read(TOOK).get(demo.name)
    return f"{said} {f'Last time it took {duration(took)}' if took else FIRST_TIME}."


def next_step(demo: Demo) -> str:
    """Where to go from here."""
    return f"Next: {title(demo.notebook)} explains it: ./run.sh lab. More demos: ./run.sh list."


def summary(run: Run) -> str:
    """How long a run took and, if its script reports one, its rate per second."""
    amount, unit = pace(run)
    took = f"{run.seconds:.1f} s in total, including the import of torch"
    return f"{took} · {rate(amount)} {unit}" if amount else took


def pace(run: Run) -> tuple[float, str]:
    """Rank 0's latest reported rate, otherwise its steps per second; (0, '') if it has neither.

    Steps are counted from its first to its last `report(step=, total=)`.
    """
    # What scripts report is summed over all ranks.
    for name, unit in (("tokens_per_second", "tokens/s"), ("images_per_second", "images/s")):
        if reported := run.series(name):
            return reported[-1], unit
    steps = [
        (event["at"], event["data"]["step"])
        for event in run.ranks[0].events()
        if event["kind"] == "report" and "step" in event["data"] and "total" in event["data"]
    ]
    done = steps[-1][1] - steps[0][1] if steps else 0
    return (done / (steps[-1][0] - steps[0][0]) * 1e9, "steps/s") if done > 0 else (0.0, "")


def speed_up(main: Step, run: Run, **options: Any) -> str:
    """Run a demo on one rank and say how much faster `run` was.

    To be fair, the single rank gets as many threads as a rank of `run` had, and the same device.
    """
    ranks = len(run.ranks)
    env = {"OMP_NUM_THREADS": ranks_environ(Options(nproc=ranks))["OMP_NUM_THREADS"]}
    if "cpu" in run.place:
        env["COURSE_DEVICE"] = "cpu"
    alone = launch(main.file, *main.arguments, nproc=1, env=env, check=False, show=False, **options)
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


def measure_claims(demo: Demo) -> bool:
    """Run what measures a demo's claims, and print them as a table; return whether all hold.

    Raises:
        LaunchError: a script that measures failed.
    """
    if not demo.proofs:
        return True
    console = open_console()
    console.print(f"\nMeasuring the claims of notebook {demo.notebook[:2]} ...")
    rows, broken = [], []
    with console.status("") as status:
        for number, proof in enumerate(demo.proofs, 1):
            status.update(f"{number} of {len(demo.proofs)}: {proof.file}")
            run = launch(proof.file, *proof.arguments, nproc=proof.nproc, show=False)
            found = proofs.reported(run)
            rows += found
            broken += [f"fails: {row.claim}" for row in found if not row.holds]
            broken += [] if found else [f"not measured: {proof.file} reported no claim"]
    show_claims(console, rows)
    for sentence in broken:
        console.print(wrapped(sentence, 2), style=f"bold {RED}")
    if not broken:
        held = "the claim holds" if len(rows) == 1 else f"all {len(rows)} claims hold"
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
        figures = (number(row.worst), number(row.bound))
        table.add_row(proofs.mark(row), row.claim, row.on, *figures)
    console.print(table, soft_wrap=False)
