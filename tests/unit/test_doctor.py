"""`./run.sh doctor` as a whole, with a torch and a driver that have what each test tells them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from course_utils import paths

pytestmark = pytest.mark.timeout(120)
REQUIREMENTS = paths.ROOT / "requirements.txt"
ASK = "from tools.doctor import doctor; raise SystemExit(doctor())"

DISTRIBUTED = """
def is_gloo_available(): return {gloo}
def is_nccl_available(): return {nccl}
"""
CUDA = """
def device_count(): return {gpus}
def is_available(): {available}
def get_device_name(gpu): return "Model T"
"""
TORCH = """
__version__ = "{version}"
from . import cuda
class version: cuda = "13.2"
def ones(count, device): {compute}
"""
COMPUTES = "import types; return types.SimpleNamespace(sum=lambda: types.SimpleNamespace(item=int))"
TOO_OLD = "The NVIDIA driver on your system is too old (found version 11040)."
UNSEEN = f"import warnings; warnings.warn('CUDA initialization: {TOO_OLD}')"


def examine(*flags: str, path: Path | None = None, **env: str) -> tuple[int, dict[str, str]]:
    """The doctor's status, and its lines by what they are about, with `path` put before all."""
    env |= {"PYTHONPATH": os.pathsep.join([str(path), str(paths.ROOT)] if path else [])}
    env |= {"PATH": os.pathsep.join([str(path), os.environ["PATH"]])} if path else {}
    # Without .pyc files: a fake torch of the same size and second would pass for the one before.
    env |= {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *flags, "-c", ASK],
        cwd=paths.ROOT,
        env={**os.environ, "COURSE_DEVICE": "", **env},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not done.stderr
    lines = done.stdout.replace("\n" + " " * 21, "").splitlines()
    return done.returncode, {line[9:21].strip(): line for line in lines if line[9:]}


def fake_torch(
    folder: Path,
    version: str = "2.15.0",
    gloo: bool = True,
    nccl: bool = False,
    gpus: int = 0,
    compute: str = COMPUTES,
    available: str = "return False",
    listed: int = 0,
) -> Path:
    """A torch and a torchvision that answer at once, and a driver that lists `listed` GPUs."""
    for name, text in {
        "torch/__init__.py": TORCH.format(version=version, compute=compute),
        "torch/distributed.py": DISTRIBUTED.format(gloo=gloo, nccl=nccl),
        "torch/cuda.py": CUDA.format(gpus=gpus, available=available),
        "torchvision.py": "__version__ = '0.29.2'",
        "nvidia-smi": "#!/bin/sh\n" + "echo Model T\n" * listed,
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "nvidia-smi").chmod(0o755)
    return folder


def test_this_machine_can_run_the_labs():
    status, lines = examine()
    assert status == 0, lines
    assert "gloo" in lines["back ends"]
    assert {"cores", "memory", "disk"} <= lines.keys()
    assert "two ranks added up their numbers" in lines["launch"]


def test_a_helper_that_dies_is_quoted(tmp_path):
    dies = "import sys\nif 'agent' in ' '.join(sys.orig_argv):\n    sys.exit('no luck today')\n"
    (tmp_path / "sitecustomize.py").write_text(dies)
    status, lines = examine(path=tmp_path)
    assert status == 1
    assert re.match("problem .*last said: SystemExit: no luck today", lines["launch"])


def test_an_interface_that_the_shell_names_harms_no_launch_on_one_machine():
    status, lines = examine(GLOO_SOCKET_IFNAME="nowhere")
    assert status == 0
    assert re.match("ok ", lines["launch"])


def test_without_packages_it_still_runs_and_says_how_to_get_them():
    status, lines = examine("-S")
    assert status == 1
    assert lines["environment"].startswith("problem")
    assert "lacks torch, numpy, matplotlib, IPython, psutil, rich, filelock" in lines["environment"]
    assert "./run.sh setup" in lines["environment"]
    assert "torch" not in lines


@pytest.mark.parametrize(
    ("version", "install"),
    [
        ("2.13.0", "pip install --force-reinstall"),
        ("2.13.0+cpu", "uv pip install --torch-backend cpu --reinstall"),
    ],
)
def test_a_pair_that_does_not_fit_is_named_with_one_that_does(tmp_path, version, install):
    fake_torch(tmp_path, version)
    (tmp_path / "torchvision.py").write_text(
        "raise RuntimeError('operator torchvision::nms does not exist')"
    )
    status, lines = examine(path=tmp_path)
    assert status == 1
    assert lines["torch"].startswith("ok")
    assert "does not fit torch 2.13.0" in lines["torchvision"]
    pins = re.findall("^(torch(?:vision)?==.*)", REQUIREMENTS.read_text(), re.MULTILINE)
    assert f"{install} {' '.join(pins)}" in lines["torchvision"]


@pytest.mark.parametrize(
    ("version", "install"),
    [("2.13.0", "pip install"), ("2.13.0+cu126", "uv pip install --torch-backend cu126")],
)
def test_a_torchvision_that_is_missing_is_looked_for_where_its_torch_is(tmp_path, version, install):
    fake_torch(tmp_path, version)
    (tmp_path / "torchvision.py").write_text("raise ModuleNotFoundError('no torchvision')")
    _, lines = examine(path=tmp_path)
    assert f"{install} torchvision torch==2.13.0" in lines["torchvision"]


def test_a_torch_for_cpus_beside_gpus_is_told_how_to_get_the_usual_one(tmp_path):
    folder = fake_torch(tmp_path, listed=2)
    torch = folder / "torch/__init__.py"
    torch.write_text(torch.read_text().replace('cuda = "13.2"', "cuda = None"))
    _, lines = examine(path=folder)
    assert "built without CUDA" in lines["GPUs"]
    assert "COURSE_TORCH=cuda ./run.sh setup" in lines["GPUs"]


@pytest.mark.parametrize(
    ("breaks", "says"),
    [
        ("raise OSError('libcudart.so: cannot open')", "OSError: libcudart.so: cannot open"),
        ("import os; os._exit(7)", "status 7"),
    ],
    ids=["raises", "ends Python"],
)
def test_a_torch_that_breaks_its_import_is_a_problem(tmp_path, breaks, says):
    fake_torch(tmp_path)
    (tmp_path / "torch/__init__.py").write_text(breaks)
    status, lines = examine(path=tmp_path)
    assert status == 1
    assert lines["torch"].startswith("problem")
    assert says in lines["torch"]


BUSY = {"gpus": 2, "nccl": True, "compute": "raise RuntimeError('CUDA error: busy')"}
OLD_DRIVER = BUSY | {"compute": f"raise RuntimeError({TOO_OLD!r})"}


@pytest.mark.parametrize(
    ("torch", "mark", "what", "said"),
    [
        ({"version": "2.10.1"}, "note", "torch", "2.11 to 2.15"),
        ({"version": "2.16.0a0+git1"}, "note", "torch", "2.11 to 2.15"),
        ({}, "note", "exit", "terminate called without .* the course's init.. avoids it"),
        ({"gloo": False}, "problem", "back ends", "gloo"),
        ({"nccl": True}, "ok", "GPUs", "CPU, over gloo"),
        ({"nccl": True, "gpus": 1}, "ok", "GPUs", "2 ranks use the CPU.* ./run.sh test tests/gpu"),
        ({"nccl": True, "gpus": 2}, "ok", "GPUs", "2 ranks use NCCL.* ./run.sh test tests/gpu"),
        ({"gpus": 1}, "ok", "GPUs", "2 ranks use the CPU"),
        ({"gpus": 2}, "problem", "GPUs", "this torch has no NCCL"),
        (OLD_DRIVER, "problem", "GPUs", "too old .* install an NVIDIA driver for CUDA 13.2"),
        (BUSY, "problem", "GPUs", "CUDA error: busy.* is another program using it?"),
        (
            {"listed": 2, "available": UNSEEN},
            "note",
            "GPUs",
            "2 in this machine, but torch sees none.* too old .* install an NVIDIA driver",
        ),
    ],
)
def test_what_torch_and_the_gpus_mean_for_the_labs(tmp_path, torch, mark, what, said):
    status, lines = examine(path=fake_torch(tmp_path, **torch))
    assert status == (mark == "problem")
    assert re.match(f"{mark} .*{said}", lines[what])
    assert ("exit" in lines) == ("version" not in torch)


def test_a_variable_does_without_the_gpus_or_hides_them(tmp_path):
    status, lines = examine(path=fake_torch(tmp_path, **BUSY), COURSE_DEVICE="cpu")
    assert status == 0
    assert "COURSE_DEVICE=cpu" in lines["GPUs"]
    status, lines = examine(path=fake_torch(tmp_path, listed=2), CUDA_VISIBLE_DEVICES="")
    assert status == 0
    assert "CUDA_VISIBLE_DEVICES is ''" in lines["GPUs"]
    assert "unset that variable" in lines["GPUs"]
