"""What holds for every test session, notebooks under nbval included.

A plugin and not a conftest: nbval's cells know no fixtures, and notebooks lie beside this folder.
"""

import gc
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from nbtorchrun.launcher.client import close_kept_agent
from tests import dead_kernels, kernel_ports
from tools.kernels import without_the_users_settings

TESTS = Path(__file__).resolve().parent


def pytest_addoption(parser):
    """Options for what takes too long to run every time."""
    parser.addoption("--run-all", action="store_true", help="run every notebook in the browser")
    parser.addoption(
        "--write-claims", metavar="PART", help="look for the faults of scripts, write the table"
    )
    parser.addoption(
        "--all-mistakes", action="store_true", help="try every mistake of an exercise, not five"
    )
    parser.addoption(
        "--all-workers", action="store_true", help="start every worker file by hand, not a sample"
    )
    parser.addoption(
        "--all-scripts", action="store_true", help="pretend 2 and 4 GPUs for every script"
    )
    parser.addoption(
        "--all-cpus", action="store_true", help="try every notebook as on other CPUs, not a sample"
    )


def pytest_configure(config):
    """Keep this session's worker files and run folders apart from the user's."""
    config.course_home = tempfile.mkdtemp(prefix="course-")
    os.environ["COURSE_HOME"] = config.course_home
    temporary = os.path.join(config.course_home, "tmp")
    os.mkdir(temporary)
    os.environ["TMPDIR"] = tempfile.tempdir = temporary  # others' files are not counted there
    config.kernels = without_the_users_settings()  # nbval's, too
    config.kernels.__enter__()
    # As on a student's machine: a container's settings would hide failures that happen there.
    os.environ.pop("PYTHONUNBUFFERED", None)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # Tests send signals, which the process that started them may ignore, as nohup and `&` do.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if os.environ.get("PYTEST_XDIST_WORKER"):
        # Workers share the cores: where a kernel's second thread gets none, each operation waits.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    kernel_ports.use()
    dead_kernels.notice()
    if config.option.nbval_sanitize_with is None:
        config.option.nbval_sanitize_with = str(TESTS / "rounding.cfg")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep the garbage collector off all that the tests import: searching it takes seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist nobody calls it
def pytest_xdist_make_scheduler(config, log):
    """Leave each notebook to one worker, whatever the arguments: a cell needs those before it."""
    from xdist.scheduler import LoadFileScheduling

    asked_for = [Path(argument.split("::")[0]).resolve() for argument in config.args]
    only_tests = all(path.is_relative_to(TESTS) for path in asked_for)
    deals_single_tests = config.option.dist in ("load", "worksteal")
    if deals_single_tests and not only_tests:
        return LoadFileScheduling(config, log)
    return None  # as the arguments say


def pytest_unconfigure(config):
    """Leave neither a process nor a file."""
    gc.unfreeze()  # or triton, when the interpreter ends, reports what is still there as leaks
    close_kept_agent()
    config.kernels.__exit__(None, None, None)
    shutil.rmtree(config.course_home, ignore_errors=True)


def pytest_collectstart(collector):
    """Let nbval compare everything a cell shows but stderr and SVG."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += "stderr", "image/svg+xml"
