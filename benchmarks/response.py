"""How soon a failure is known: from a rank's exception, or from Ctrl-C, to the prompt's return.

Two ranks over gloo; rank 1 raises while rank 0 waits for it, or both sleep and are interrupted.
Plain torchrun runs as in a terminal, and is over when its process is.
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from course_utils import LaunchError
from nbtorchrun.launcher.options import Options
from nbtorchrun.launcher.running import launch_path

ROUNDS = 5
PATIENCE = 30.0  # seconds
SCRIPT = """
import sys, time
from pathlib import Path
import torch.distributed as dist
dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank() == 1:
    Path(sys.argv[2]).write_text(str(time.monotonic()))
    if sys.argv[1] == "raises":
        raise ValueError("as asked")
(dist.barrier if sys.argv[1] == "raises" else time.sleep)(1000)
"""


def run() -> dict:
    """Seconds by failure and way, round after round."""
    seconds: dict[str, dict[str, list[float]]] = {"raises": {}, "is interrupted": {}}
    with tempfile.TemporaryDirectory() as folder:
        script, note = Path(folder, "fails.py"), Path(folder, "at")
        script.write_text(SCRIPT)
        ways = {"plain torchrun": plainly, "launch, cold": coldly, "launch, warm": warmly}
        for _ in range(ROUNDS):
            for failure, of_ways in seconds.items():
                for name, way in ways.items():
                    note.unlink(missing_ok=True)
                    took = way(script, failure, note)
                    of_ways.setdefault(name, []).append(took)
    return {"seconds": seconds, "rounds": ROUNDS, "cores": os.cpu_count()}


def plainly(script: Path, failure: str, note: Path) -> float:
    """Run with `python -m torch.distributed.run`; return the seconds from failure to end."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    process = subprocess.Popen(
        [*command, "--nproc-per-node", "2", script, failure, note],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    start = when(note)
    if failure != "raises":
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
    process.wait(PATIENCE)
    return time.monotonic() - start


def coldly(script: Path, failure: str, note: Path) -> float:
    """The same with `launch`, each rank a new Python."""
    return launched(script, failure, note, warm=False)


def warmly(script: Path, failure: str, note: Path) -> float:
    """The same with `launch`, ranks forked from a process that has torch imported."""
    return launched(script, failure, note, warm=True)


def launched(script: Path, failure: str, note: Path, warm: bool) -> float:
    """Seconds from failure until `launch` has returned, or the interrupt is raised here."""
    start = [0.0]

    def interrupt() -> None:
        when(note)
        start[0] = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    if failure != "raises":
        threading.Thread(target=interrupt).start()
    with suppress(KeyboardInterrupt, LaunchError):
        launch_path(script, [failure, str(note)], Options(warm=warm, show=False))
    return time.monotonic() - (start[0] or when(note))


def when(note: Path) -> float:
    """The moment that rank 1 noted down, once it has."""
    end = time.monotonic() + PATIENCE
    while not (note.exists() and note.read_text()):
        if time.monotonic() > end:
            raise TimeoutError("rank 1 did not come to its failure")
        time.sleep(0.005)
    return float(note.read_text())


def table(result: dict) -> str:
    """The medians and spreads."""
    lines = []
    for failure, ways in result["seconds"].items():
        lines.append(f"{'a rank ' + failure if failure == 'raises' else 'the run ' + failure:28}")
        for name, seconds in ways.items():
            low, median, high = min(seconds), statistics.median(seconds), max(seconds)
            lines.append(f"  {name:26}{median:8.3f}s  ({low:.3f} to {high:.3f})")
    lines.append(f"{result['rounds']} rounds on {result['cores']} cores")
    return "\n".join(lines)
