"""Tries out torch, and a run of two ranks, in processes of their own: both may crash."""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TIMEOUT = 120  # seconds; a cold disk needs up to a minute to import torch
OLDEST, NEWEST = (2, 11), (2, 15)  # the releases of torch that the course is tested with
TESTED = "the course is tested with {}.{} to {}.{}".format(*OLDEST, *NEWEST)

ASK_TORCH = """
import json
from importlib.util import find_spec
found = {"gpus": []}
try:
    import torch, torch.distributed as dist
    found |= {"torch": torch.__version__, "cuda": torch.version.cuda}
    has = {name: getattr(dist, f"is_{name}_available", bool) for name in ("gloo", "nccl")}
    found["backends"] = [name for name in has if has[name]()]
    # A torch that was built without torch.distributed has no torchrun.
    found["torchrun"] = hasattr(dist, "__path__") and bool(find_spec("torch.distributed.run"))
    for gpu in range(torch.cuda.device_count()):
        try:
            found["gpus"].append(torch.cuda.get_device_name(gpu))
            torch.ones(1, device=f"cuda:{gpu}").sum().item()
        except Exception as error:
            found["gpu error"] = f"GPU {gpu}: {error}"
    torch.cuda.is_available()  # warns if the driver is too old
    import torchvision
    found["torchvision"] = torchvision.__version__
except Exception as error:
    found["error"] = f"{type(error).__name__}: {error}"
print("\\n" + json.dumps(found))
"""

ADD_UP = """
import torch
import torch.distributed as dist
from nbtorchrun.worker import device, init, report

init()
number = torch.tensor(1.0 + dist.get_rank(), device=device())
dist.all_reduce(number)
report(sum=number.item())
"""


def release(version: str) -> tuple[int, int]:
    """The release of a version of torch: `(2, 11)` of `2.11.0+cu128`."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def is_tested(version: str) -> bool:
    """Whether the course is tested with this version of torch."""
    return OLDEST <= release(version) <= NEWEST


def ask_torch() -> dict:
    """What `ASK_TORCH` prints, and the warnings of the import."""
    command = [sys.executable, "-c", ASK_TORCH]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
        return json.loads(done.stdout.splitlines()[-1]) | {"warnings": done.stderr}
    except subprocess.TimeoutExpired:
        return {"error": f"importing it took more than {TIMEOUT} s"}
    except (IndexError, ValueError):
        last = last_line(done.stderr)
        return {"error": f"importing it crashed Python (exit status {done.returncode}): {last}"}


def two_ranks() -> tuple[str, bool]:
    """What came of a run in which two ranks add up 1 and 2, and whether they got 3.

    If it failed, what came of it is the last line of what failed.
    """
    from nbtorchrun.errors import LaunchError
    from nbtorchrun.launcher.options import Options
    from nbtorchrun.launcher.running import launch_path

    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "add_up.py")
            path.write_text(ADD_UP, encoding="utf-8")
            run = launch_path(path, [], Options(nproc=2, timeout=TIMEOUT, stall=TIMEOUT))
    except LaunchError as error:
        return last_line(str(error)), False
    except Exception as error:  # whatever it is, labs would meet it, too
        return last_line(f"{type(error).__name__}: {error}"), False
    sums = [rank.last("report") for rank in run.ranks]
    if run.ok and all(found and found["sum"] == 3 for found in sums):
        return f"two ranks added up their numbers in {run.seconds:.1f} s", True
    if run.ok:
        found = [found and found["sum"] for found in sums]
        return f"two ranks added up 1 and 2, and got {found}", False
    said = [last_line(rank.stderr) for rank in run.ranks if rank.stderr.strip()]
    return "; ".join([run.verdict.headline, *said[:1]]), False


def last_line(text: str) -> str:
    """The last line that is not empty, at most 300 characters of it, without colours."""
    plain = re.sub(r"\x1b\[[\d;]*m", "", text)  # FORCE_COLOR asks for them even where nobody sees
    return plain.strip().rpartition("\n")[2][:300]
