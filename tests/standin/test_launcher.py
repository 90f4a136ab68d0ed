"""What the launcher and `init` do where there are GPUs."""

import os
import subprocess
import sys

import pytest

from course_utils import paths
from tests.kernel_ports import port_for_later
from tests.standin.launching import ON_GPUS, on_gpus

WHERE = """
import torch.distributed as dist
from nbtorchrun.worker import device, init, report
init()
report(where=[dist.get_backend(), str(device())], world=dist.get_world_size())
"""
# One of two machines: its script, and what stands before it.
MACHINE = """
from pathlib import Path
from nbtorchrun.launcher.options import Options
from nbtorchrun.launcher.running import launch_path
options = Options(nproc=2, nnodes=2, rdzv_endpoint={endpoint!r}, timeout=100)
run = launch_path(Path({script!r}), {arguments!r}, options)
print(run.reports if run.ok else run.verdict)
"""
FEW = """
import torch
from torch.distributed.fsdp import fully_shard
from nbtorchrun.worker import init, report
init()
model = fully_shard(torch.nn.Linear(4, 4))
model(torch.ones(2, 4)).sum().backward()
report(seen=torch.cuda.is_available(), where=str(model.weight.grad.device))
"""
LEAVES = """
import torch.distributed as dist
from nbtorchrun.worker import init
{start}
dist.distributed_c10d._abort_process_group = lambda: print("aborted")
dist.destroy_process_group = lambda: print("destroyed")
{last}
"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("gpus_of_the_other", "where"), [(0, ["gloo", "cpu"]), (2, ["nccl", None])]
)
def test_machines_agree_on_a_back_end(worker, gpus_of_the_other, where):
    path = str(paths.workers() / worker("where.py", WHERE))
    endpoint = f"127.0.0.1:{port_for_later()}"
    machines = []
    for gpus in (2, gpus_of_the_other):
        code = MACHINE.format(endpoint=endpoint, script=str(ON_GPUS), arguments=[str(gpus), path])
        environ = os.environ | {"PYTHONPATH": str(paths.ROOT), "GLOO_SOCKET_IFNAME": "lo"}
        machines.append(
            subprocess.Popen(
                [sys.executable, "-c", code], env=environ, stdout=subprocess.PIPE, text=True
            )
        )
    try:
        all_said = [machine.communicate(timeout=200)[0] for machine in machines]
    finally:
        for machine in machines:
            machine.kill()
    for said in all_said:
        for rank in range(2):
            at = where[1] or f"cuda:{rank}"
            assert f"'where': ['{where[0]}', '{at}'], 'world': 4" in said


def test_where_gpus_are_too_few_no_library_uses_one(worker):
    run = on_gpus(worker("few.py", FEW), gpus=2, nproc=3)
    assert [rank.reports for rank in run.ranks] == [[{"seen": False, "where": "cpu"}]] * 3


@pytest.mark.parametrize("start", ["init()", "dist.init_device_mesh('cuda', (2,))"])
@pytest.mark.parametrize(("last", "how"), [("raise ValueError", "aborted"), ("", "destroyed")])
def test_after_an_error_nobody_waits_for_what_nccl_has_begun(worker, start, last, how):
    run = on_gpus(worker("leaves.py", LEAVES.format(start=start, last=last)), gpus=2, nproc=2)
    said = [set(rank.stdout.split()) for rank in run.ranks]
    assert {how} in said
    assert all(words <= {how} for words in said)  # torchrun may end the other before it speaks


def test_no_rank_is_forked_from_a_process_that_uses_a_gpu():
    code = "import torch; torch.cuda.is_initialized = lambda: True; import {module}"
    done = subprocess.run(
        [sys.executable, "-c", code.format(module="nbtorchrun.launcher.preload")],
        env=os.environ
        | {
            "PYTHONPATH": str(paths.ROOT),
            "NBTORCHRUN_AGENT": str(os.getpid()),
            "NBTORCHRUN_PRELOAD": "",
        },
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 1
    assert "no process forked from it could use it again" in done.stderr
