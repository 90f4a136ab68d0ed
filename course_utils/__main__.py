"""The command line behind `run.sh`."""

import argparse
import itertools
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from course_utils import paths
from course_utils.display.console import say, wrapped
from course_utils.errors import InputError, LaunchError
from course_utils.launcher.options import Options, add_flags, flags
from course_utils.notebook import cells, copies, demos, files

ABOUT = """The commands of the course. Without a command, ./run.sh runs `demo transformer`:
it trains the Transformer of notebook 07 on 2 ranks and tests that the training is right."""
DEMO_TIMEOUT = 600.0  # seconds
GRADE_TIMEOUT = 180.0  # seconds, for one exercise


class Parser(argparse.ArgumentParser):
    """A parser that says in one sentence what is wrong."""

    def error(self, message: str) -> NoReturn:
        """Print the sentence and end with status 2."""
        self.exit(2, f"run.sh: {message}\n")


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
        added.set_defaults(run=run)
        return added

    command("list", _list, "list the demos")
    about = "run a demo and its claims (its options: demo NAME --help)"
    demo = command("demo", _demo, about, add_help=False)  # --help is for its script, too
    demo.add_argument("name", nargs="?")
    launching(demo)
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


def launching(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the options that every demo has, beside those of its script."""
    group = parser.add_argument_group("launch options")
    add_flags(group, nproc=None, timeout=DEMO_TIMEOUT)
    group.add_argument(
        "--compare", action="store_true", help="run it twice more, to measure speed-up and bytes"
    )
    return parser


def main(arguments: Sequence[str]) -> int:
    """Carry out one command; return the exit status."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # a terminal that has no · shows ?
    options, rest = parser().parse_known_args(arguments)
    if rest and options.command != "demo":
        parser().error(f"{options.command} has no option {rest[0]}")
    try:
        if options.check and options.command != "demo":
            return 0
        return options.run(options, rest)
    except InputError as error:
        print(f"run.sh: {error}", file=sys.stderr)
        return 2
    except LaunchError as error:  # no rank was started: otherwise stage.py shows the verdict
        print(f"run.sh: {error}. Run ./run.sh doctor to see what to fix", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would break into cleaning up
        over_the_echo = "\r" if sys.stderr.isatty() else ""  # the terminal has written ^C
        print(f"{over_the_echo}interrupted; no rank is left running", file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenPipeError:  # as with `| head`: what is left to flush has nowhere to go
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


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
    Options(**launching_with)  # raises InputError, before anything is installed for the demo
    if options.check:
        return 0
    if {"--help", "-h"} & set(rest):
        print(f"usage: ./run.sh demo {found.name} [options]\n\n{demos.options_help(found)}")
        print(launching(Parser(usage=argparse.SUPPRESS, add_help=False)).format_help())
        return 0
    from course_utils.notebook import gpus, stage  # needs more than Python

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
    from course_utils.doctor import doctor

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
    from course_utils.clean import clean

    clean(everything=options.all)
    return 0


def _grade(options: argparse.Namespace, rest: list[str]) -> int:
    from course_utils.grade import grade  # needs more than Python

    return grade(options.file, options.timeout, options.json, options.only)


def _setup(options: argparse.Namespace, rest: list[str]) -> int:
    print(f"The course uses {sys.executable}.")
    return 0


def _execute(options: argparse.Namespace, rest: list[str]) -> int:
    from course_utils.notebook.execute import execute

    for path in options.notebook:
        cells.read(path)  # report a bad path before the first notebook runs
    for path in options.notebook:
        execute(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
