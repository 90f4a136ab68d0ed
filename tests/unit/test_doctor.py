import os
import shutil
import socket
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from course_utils import doctor

ROOT = Path(__file__).resolve().parents[2]
ASK = "from course_utils.doctor import doctor; raise SystemExit(doctor())"

DISTRIBUTED = """
def is_available(): return True
def is_gloo_available(): return {gloo}
def is_nccl_available(): return False
def is_mpi_available(): return False
"""
CUDA = """
def device_count(): return {gpus}
def get_device_name(gpu): return "Model T"
"""


def examine(*flags: str, path: Path | None = None) -> tuple[int, dict[str, str]]:
    """The doctor's status, and its lines by what they are about, with `path` put before all."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), str(ROOT)] if path else [])}
    done = subprocess.run(
        [sys.executable, *flags, "-c", ASK],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not done.stderr
    lines = done.stdout.replace("\n" + " " * 21, "").splitlines()
    return done.returncode, {line[9:21].strip(): line for line in lines if line[9:]}


def fake_torch(folder: Path, version: str = "2.15.0", gloo: bool = True, gpus: int = 0) -> Path:
    """A torch and a torchvision that import at once and say what they are told to."""
    for name, text in {
        "torch/__init__.py": f"__version__ = '{version}'\nfrom . import cuda",
        "torch/distributed.py": DISTRIBUTED.format(gloo=gloo),
        "torch/cuda.py": CUDA.format(gpus=gpus),
        "torchvision.py": "__version__ = '0.29.2'",
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.timeout(120)
def test_this_machine_can_run_the_labs():
    status, lines = examine()
    assert status == 0, lines
    assert "gloo" in lines["back ends"]


@pytest.mark.timeout(30)
def test_without_torch_it_says_how_to_get_it():
    status, lines = examine("-S")
    assert status == 1
    assert lines["environment"].startswith("problem")
    assert "./run.sh setup" in lines["environment"]
    assert "torch" not in lines


@pytest.mark.timeout(30)
def test_a_pair_that_does_not_fit_is_named_with_one_that_does(tmp_path):
    fake_torch(tmp_path, "2.13.0")
    (tmp_path / "torchvision.py").write_text(
        "raise RuntimeError('operator torchvision::nms does not exist')"
    )
    status, lines = examine(path=tmp_path)
    assert status == 1
    assert lines["torch"].startswith("ok")
    assert "does not fit torch 2.13.0" in lines["torchvision"]
    assert "torch==2.15.0 torchvision==0.29.2" in lines["torchvision"]


@pytest.mark.timeout(30)
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


@pytest.mark.timeout(30)
@pytest.mark.parametrize("version", ["2.10.1", "2.16.0a0+git1234"])
def test_a_torch_the_course_is_not_tested_with_is_a_note(tmp_path, version):
    status, lines = examine(path=fake_torch(tmp_path, version))
    assert status == 0
    assert lines["torch"].startswith("note")
    assert "2.11 to 2.15" in lines["torch"]


@pytest.mark.timeout(30)
def test_a_torch_without_gloo_is_a_problem(tmp_path):
    status, lines = examine(path=fake_torch(tmp_path, gloo=False))
    assert status == 1
    assert lines["back ends"].startswith("problem")


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("gpus", "does"), [(0, "CPU, over gloo"), (1, "CPU, over gloo"), (2, "2 ranks have one each")]
)
def test_it_says_what_the_course_does_with_the_gpus(tmp_path, gpus, does):
    _, lines = examine(path=fake_torch(tmp_path, gpus=gpus))
    assert does in lines["GPUs"]


def test_a_closed_loopback_is_a_problem(monkeypatch):
    def refuse(*args, **options):
        raise OSError("Operation not permitted")

    monkeypatch.setattr(socket, "create_server", refuse)
    loopback, *_ = doctor.network()
    assert loopback.mark == "problem"
    assert "Operation not permitted" in loopback.found
    assert loopback.remedy


def test_a_host_name_without_an_address_is_a_note(monkeypatch):
    def unknown(name):
        raise socket.gaierror("Name or service not known")

    monkeypatch.setattr(socket, "gethostbyname", unknown)
    *_, name = doctor.network()
    assert name.mark == "note"


def test_a_full_disk_is_a_problem_and_little_shared_memory_a_note(monkeypatch, tmp_path):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(1, 1, 0))
    monkeypatch.setattr(doctor, "SHARED_MEMORY", tmp_path)
    disk, shared = doctor.room()
    assert (disk.mark, shared.mark) == ("problem", "note")
    assert "--shm-size" in shared.found
