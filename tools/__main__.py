"""The command line behind `run.sh`."""

import argparse
import itertools
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from course_utils import cells, files, paths
from nbtorchrun.display.console import say
from nbtorchrun.errors import InputError, LaunchError
from nbtorchrun.launcher.options import Options, flags
from tools import copies, demos, near_miss
from tools.near_miss import explained, suggestion
from tools.wrapping import wrapped

ABOUT = """The commands of the course. Without a command, ./run.sh runs `demo transformer`:
it trains the Transformer of notebook 07 on 2 ranks and tests that the training is right."""
GRADE_TIMEOUT = 180.0  # seconds, for one exercise


class Parser(argparse.ArgumentParser):
    """A parser that says in one sentence what is wrong."""

    def error(self, message: str) -> NoReturn:
        """Print the sentence and end with status 2."""
        complain(explained(message, self.format_usage()))
        self.exit(2)


def complain(message: object) -> None:
    """Say on stderr what is wrong."""
    print(wrapped(f"run.sh: {message}", 0, sys.stderr), file=sys.stderr)


def parser() -> Parser:
    """The commands and their options."""
    top = Parser(prog="./run.sh", description=ABOUT, allow_abbrev=False)
    # run.sh asks this before it installs anything: is the call valid? It starts nothing.
    top.add_argument("--check", action="store_true", help=argparse.SUPPRESS)
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, run: Any, about: str, **options: Any) -> argparse.ArgumentParser:
        added = commands.add_parser(
            name, help=about, description=about, allow_abbrev=False, **options
        )
        added.set_defaults(run=run, usage=added.format_usage)
        return added

    command("list", _list, "list the demos")
    about = "run a demo and its claims (its options: demo NAME --help)"
    demo = command("demo", _demo, about, add_help=False)  # --help is for its script, too
    demo.add_argument("name", nargs="?")
    demos.launching(demo)
    command("doctor", _doctor, "check this machine and say what to fix")
    bench = command("bench", _bench, "run the benchmarks; print tables and write JSON")
    bench.add_argument("name", nargs="?")
    command("extract", _extract, "write every worker file of every notebook into workers/")
    about = "remove workers/, run folders and caches; move worker files that you changed aside"
    clean = command("clean", _clean, about)
    clean.add_argument("--all", action="store_true", help="delete changed and kept files as well")
    about = "run notebooks in a new kernel and save them, for contributors"
    command("execute", _execute, about).add_argument("notebook", nargs="+", type=Path)
    about = "check the exercises in students' notebooks or worker files, each alone"
    grade = command("grade", _grade, about)
    grade.add_argument("file", nargs="+", type=Path)
    about = "write what was found as JSON, which Gradescope reads"
    grade.add_argument("--json", type=Path, metavar="OUT", help=about)
    about = "only this exercise, as 03.2; may be given several times"
    grade.add_argument("--only", action="append", metavar="NN.M", default=[], help=about)
    about = f"seconds that one exercise may take (default: {GRADE_TIMEOUT:g})"
    grade.add_argument("--timeout", type=float, metavar="S", default=GRADE_TIMEOUT, help=about)
    command("setup", _setup, "make the environment and nothing else")
    about = "start JupyterLab on your own copies of the notebooks, open to this machine only"
    command("lab", _lab, about)
    # run.sh itself carries these out; they are here so that --help lists them.
    command("test", None, "run the tests; arguments are passed to pytest")
    command("site", None, "build the web site from the saved outputs (its options: site --help)")
    return top


def main(arguments: Sequence[str]) -> int:
    """Carry out one command; return the exit status."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # a terminal that has no · shows ?
    options, rest = parser().parse_known_args(_with_paths(arguments))
    if rest and options.command != "demo":
        meant = suggestion(rest[0], near_miss.options(options.usage()))
        parser().error(f"{options.command} has no option {rest[0]}{meant}")
    try:
        if options.check and options.command != "demo":
            return 0
        return options.run(options, rest)
    except InputError as error:
        complain(error)
        return 2
    except LaunchError as error:  # no rank was started: otherwise stage.py shows the verdict
        complain(f"{error}. Run ./run.sh doctor to see what to fix")
        return 1
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would break into cleaning up
        over_the_echo = "\r" if sys.stderr.isatty() else ""  # the terminal has written ^C
        print(f"{over_the_echo}interrupted; no rank is left running", file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenPipeError:  # as with `| head`: what is left to flush has nowhere to go
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def _with_paths(arguments: Sequence[str]) -> list[str]:
    """A call of `grade` in which no file is taken for an option: students choose their names."""
    if "grade" not in arguments[:2]:  # --check may stand before it
        return [*arguments]
    return [
        f"./{word}" if word.startswith("-") and word.lower().endswith((".ipynb", ".py")) else word
        for word in arguments
    ]


def _list(options: argparse.Namespace, rest: list[str]) -> int:
    found = demos.find_all().values()
    width = max((len(demo.name) for demo in found), default=0)
    for notebook, group in itertools.groupby(found, key=lambda demo: demo.notebook):
        say(demos.title(notebook), style="bold")
        for demo in group:
            print(wrapped(f"  {demo.name.ljust(width)}   {demo.about}", width + 5))
    print("\n" + wrapped("Run one: ./run.sh demo NAME. Its options: ./run.sh demo NAME --help.", 0))
    return 0


def _demo(options: argparse.Namespace, rest: list[str]) -> int:
    if not options.name:
        raise InputError("demo needs a name: ./run.sh list shows them all")
    found = demos.find(options.name)
    launching_with = flags(options)
    if options.nproc is None:
        launching_with["nproc"] = found.main.nproc
    # These raise InputError, before anything is installed for the demo.
    Options(**launching_with)
    demos.check_arguments(found, rest)
    demos.check_ranks(found, launching_with["nproc"] * options.nnodes)
    if options.check:
        return 0
    if {"--help", "-h"} & set(rest):
        print(f"usage: ./run.sh demo {found.name} [options]\n\n{demos.options_help(found)}")
        print(demos.launch_help(found))
        return 0
    demos.check_packages(found)
    from tools import gpus, stage  # needs more than Python

    if options.nproc is None and options.nnodes == 1:
        launching_with["nproc"], why = gpus.ranks_for(found, gpus.gpus_here())
        print(wrapped(why, 0) + "\n" if why else "", end="", flush=True)
    went_well = stage.perform(found, rest, options.compare, **launching_with)
    return 0 if went_well else 1


def _lab(options: argparse.Namespace, rest: list[str]) -> int:
    folder = paths.my()
    for news in copies.update(folder):
        print(wrapped(news, 0), file=sys.stderr)
    print(folder)  # run.sh starts JupyterLab there
    return 0


def _doctor(options: argparse.Namespace, rest: list[str]) -> int:
    from tools.doctor import doctor

    return doctor()


def _bench(options: argparse.Namespace, rest: list[str]) -> int:
    sys.path.insert(0, str(paths.ROOT))
    from benchmarks import run

    return run(options.name)


def _extract(options: argparse.Namespace, rest: list[str]) -> int:
    sources = cells.sources()
    files.write_missing(*sources)
    has = f"now has all {len(sources)} worker files of the notebooks"
    print(f"{paths.workers()} {has}; files you changed stay")
    return 0


def _clean(options: argparse.Namespace, rest: list[str]) -> int:
    from tools.clean import clean

    clean(everything=options.all)
    return 0


def _grade(options: argparse.Namespace, rest: list[str]) -> int:
    try:
        from tools.grade import grade
    except ModuleNotFoundError as error:  # a Python of the user's own: IPython reads notebooks
        raise InputError(
            f"{sys.executable} has no {error.name}, which reads notebooks: install it there "
            f"({sys.executable} -m pip install {error.name.lower()})"
        ) from None
    return grade(options.file, options.timeout, options.json, options.only)


def _setup(options: argparse.Namespace, rest: list[str]) -> int:
    print(f"The course uses {sys.executable}.")
    return 0


def _execute(options: argparse.Namespace, rest: list[str]) -> int:
    from tools.execute import execute

    for path in options.notebook:
        cells.read(path)  # report a bad path before the first notebook runs
    for path in options.notebook:
        execute(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
