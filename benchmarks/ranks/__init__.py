"""What the ranks of the benchmarks run, and how a benchmark runs it."""

from pathlib import Path

from course_utils import files
from nbtorchrun.errors import LaunchError
from nbtorchrun.launcher.options import Options
from nbtorchrun.launcher.running import launch_path
from nbtorchrun.runs import Run

PATIENCE = 900.0  # seconds


def script(name: str) -> Path:
    """A file of this folder, with the worker files that it imports written."""
    path = Path(__file__).with_name(name)
    for file in files.imported(path):
        files.write_missing(file)
    return path


def measured(path: Path, *arguments: str, nproc: int = 2, env: dict[str, str] | None = None) -> Run:
    """The finished run of a script, with the environment variables `env` besides one's own.

    Raises:
        LaunchError: it failed.
    """
    done = launch_path(path, arguments, Options(nproc, PATIENCE, stall=120, env=env, show=False))
    if not done.ok:
        raise LaunchError(str(done.verdict), done)
    return done
