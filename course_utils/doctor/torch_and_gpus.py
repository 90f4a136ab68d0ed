"""torch: whether it fits torchvision, what it can communicate by, and which GPUs it can use."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

from course_utils import paths
from course_utils.doctor.finding import Finding

OLDEST_TORCH, NEWEST_TORCH = (2, 11), (2, 15)
IMPORT_TIMEOUT = 120.0  # seconds; a cold disk needs up to a minute
ON_CPU = "every rank computes on the CPU, over gloo"

# torch is asked in a process of its own: what breaks its import cannot break the doctor.
ASK_TORCH = """
import json, os, warnings
found = {"visible": os.environ.get("CUDA_VISIBLE_DEVICES")}
try:
    import torch
    found["torch"] = torch.__version__
    found["cuda"] = torch.version.cuda
    import torch.distributed as dist
    if dist.is_available():
        ask = {"gloo": dist.is_gloo_available, "nccl": dist.is_nccl_available,
               "mpi": dist.is_mpi_available}
        found["backends"] = [name for name, has in ask.items() if has()]
    found["gpus"], found["broken gpus"] = [], {}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for gpu in range(torch.cuda.device_count()):
            found["gpus"].append(f"GPU {gpu}")
            try:
                found["gpus"][gpu] = torch.cuda.get_device_name(gpu)
                torch.ones(1, device=f"cuda:{gpu}").sum().item()
            except Exception as error:
                found["broken gpus"][gpu] = str(error)
        found["cuda available"] = torch.cuda.is_available()
    found["warned"] = [str(each.message) for each in warned]
    import torchvision
    found["torchvision"] = torchvision.__version__
except Exception as error:
    found["error"] = f"{type(error).__name__}: {error}"
print("\\n" + json.dumps(found))
"""


def look() -> Iterator[Finding]:
    """Ask torch, and the driver, and say what follows for the labs."""
    if importlib.util.find_spec("torch"):
        on_cpu = os.environ.get("COURSE_DEVICE") == "cpu"
        yield from findings(ask_torch(), ask_driver(), on_cpu)


def ask_torch() -> dict:
    """What `ASK_TORCH` prints."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", ASK_TORCH],
            capture_output=True,
            text=True,
            timeout=IMPORT_TIMEOUT,
        )
        return json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"error": f"importing it took more than {IMPORT_TIMEOUT:.0f} s"}
    except (IndexError, ValueError):
        said = done.stderr.strip().splitlines() or [""]
        return {"error": f"importing it ended Python with status {done.returncode}: {said[-1]}"}


def ask_driver() -> list[str]:
    """The GPUs that NVIDIA's driver lists; [] without one."""
    if not shutil.which("nvidia-smi"):
        return []
    with_name = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(with_name, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def findings(found: dict, listed: list[str], on_cpu: bool = False) -> Iterator[Finding]:
    """What the facts mean for the labs.

    Args:
        found: what `ASK_TORCH` printed.
        listed: the GPUs that the driver lists.
        on_cpu: whether the user has chosen the CPU, by COURSE_DEVICE.
    """
    if "torch" not in found:
        remedy = "install it anew: ./run.sh setup, or pip"
        yield Finding("problem", "torch", first_line(found["error"]), remedy)
        return
    names = found.get("backends", [])
    yield torch_version(found["torch"])
    yield torchvision(found)
    yield backends(names)
    yield gpus(found, names, listed, on_cpu)


def torch_version(version: str) -> Finding:
    """Whether this torch is one the course is tested with."""
    major, minor = (int(part) for part in version.split(".")[:2])
    if OLDEST_TORCH <= (major, minor) <= NEWEST_TORCH:
        return Finding("ok", "torch", version)
    return Finding("note", "torch", f"{version}; the course is tested with 2.11 to 2.15")


def torchvision(found: dict) -> Finding:
    """Whether torchvision is there and was built for this torch."""
    if "error" not in found:
        return Finding("ok", "torchvision", found["torchvision"])
    error, remedy = found["error"], "install it anew, together with torch"
    if re.search("torchvision::nms|undefined symbol", error):
        error = f"it does not fit torch {found['torch']}: {error}"
        remedy = (
            "install both in one command and from one place: pip install --force-reinstall "
            + " ".join(pins("torch", "torchvision"))
        )
    elif "No module named 'torchvision'" in error:
        error = "not installed"
        remedy = f"install the one for this torch: pip install torchvision torch=={found['torch']}"
    return Finding("problem", "torchvision", first_line(error), remedy)


def pins(*packages: str) -> list[str]:
    """The versions of `packages` that the course is tested with, as pip wants them."""
    lines = (paths.ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.partition("==")[0] in packages]


def first_line(text: str) -> str:
    """The first line of a message, which says what is wrong."""
    return text.partition("\n")[0]


def backends(names: list[str]) -> Finding:
    """Which ways of communicating torch was built with; gloo is the one labs cannot do without."""
    if "gloo" in names:
        return Finding("ok", "back ends", ", ".join(names))
    return Finding(
        "problem",
        "back ends",
        ", ".join(names) or "none",
        "this torch lacks gloo, over which ranks meet on the CPU: install the one from PyPI",
    )


def gpus(found: dict, names: list[str], listed: list[str], on_cpu: bool) -> Finding:
    """The GPUs that torch can use, and what the course then does; or why it cannot use them."""
    seen = found.get("gpus", [])
    what = f"{len(seen)} ({', '.join(sorted(set(seen)))})"
    if on_cpu:
        return Finding("ok", "GPUs", f"COURSE_DEVICE=cpu: {ON_CPU}")
    if not seen:
        return unseen(found, listed) if listed else Finding("ok", "GPUs", f"none: {ON_CPU}")
    if broken := found.get("broken gpus"):
        why = first_line(next(iter(broken.values())))
        return Finding("problem", "GPUs", f"{what}: {why}", remedy_for(why, found))
    if len(seen) == 1:
        return Finding("ok", "GPUs", f"{what}: runs of 2 ranks use the CPU, over gloo")
    if "nccl" not in names:
        return Finding(
            "problem",
            "GPUs",
            f"{what}, and this torch has no NCCL, over which they would talk",
            "install the torch from PyPI, which has it on Linux; until then COURSE_DEVICE=cpu",
        )
    return Finding("ok", "GPUs", f"{what}: runs of up to {len(seen)} ranks have one each, by NCCL")


def unseen(found: dict, listed: list[str]) -> Finding:
    """GPUs that the driver lists and torch does not see: labs run, on the CPU."""
    why = next((each for each in found.get("warned", []) if "CUDA" in each), "")
    if not found.get("cuda"):
        why, remedy = "this torch is built without CUDA", "install the torch from PyPI"
    elif not why and found.get("visible") is not None:
        why = f"CUDA_VISIBLE_DEVICES is {found['visible']!r}"
        remedy = "unset it, or ask the batch system for GPUs: without them ranks use the CPU"
    else:
        remedy = remedy_for(why, found)
    what = f"{len(listed)} in this machine, and torch sees none"
    return Finding("note", "GPUs", f"{what}: {first_line(why)}".rstrip(": "), remedy)


def remedy_for(why: str, found: dict) -> str:
    """What to do about a GPU that torch cannot use."""
    if "too old" in why or "insufficient" in why:
        return (
            f"install an NVIDIA driver that knows CUDA {found.get('cuda')} (nvidia-smi shows what "
            "this one knows), or a torch for an older CUDA; until then COURSE_DEVICE=cpu"
        )
    return "look at nvidia-smi: does another program hold it? COURSE_DEVICE=cpu does without it"
