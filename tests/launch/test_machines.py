"""Several machines: two launches that meet as if they were on two."""

import os
import re
import subprocess
import sys
import threading

import pytest

from course_utils import paths
from nbtorchrun.errors import InputError
from tests.kernel_ports import port_for_later

MEET = """
import os, torch, torch.distributed as dist
from nbtorchrun.worker import report
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank())])
dist.all_reduce(total)
print("rank", dist.get_rank(), "on node", os.environ["GROUP_RANK"])
report(total=total.item(), world=dist.get_world_size())
dist.destroy_process_group()
"""


def test_two_launches_of_two_ranks_are_one_world_of_four(worker):
    script = worker("meet.py", MEET)
    endpoint = f"127.0.0.1:{port_for_later()}"
    code = (
        "from course_utils import launch\n"
        f"run = launch({script!r}, nnodes=2, rdzv_endpoint={endpoint!r}, timeout=60)\n"
        "print('RANKS', sorted(rank.number for rank in run.ranks), run.reports[0])\n"
    )
    environ = os.environ | {"PYTHONPATH": str(paths.ROOT), "GLOO_SOCKET_IFNAME": "lo"}
    nodes = [
        subprocess.Popen(
            [sys.executable, "-c", code], env=environ, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    shown = [node.communicate(timeout=90)[0] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0]
    ranks = sorted(re.search(r"RANKS (\[.*?\])", text)[1] for text in shown)
    assert ranks == ["[0, 1]", "[2, 3]"]
    for text in shown:
        assert f"--nnodes 2 --rdzv-backend c10d --rdzv-endpoint {endpoint}" in text
        assert "this run listens on the network, without a password" in text
        assert "'total': 6.0, 'world': 4" in text
    for rank in range(4):
        assert f"[rank {rank}] rank {rank} on node {rank // 2}" in "".join(shown)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"nnodes": 2}, "need a place to meet"),
        ({"nnodes": 2, "rdzv_endpoint": "host"}, "need a place to meet"),
        ({"rdzv_endpoint": "host:29500"}, "say how many with --nnodes"),
    ],
)
def test_options_that_do_not_fit(worker, launch, options, said):
    with pytest.raises(InputError, match=said):
        launch(worker("meet.py", MEET), **options)


@pytest.fixture(scope="module")
def stop():
    """Set, it ends torchrun's current run."""
    from nbtorchrun.launcher import rendezvous

    stop = threading.Event()
    rendezvous.register(stop)
    return stop


@pytest.mark.parametrize("machines", [1, 2])
def test_torchrun_learns_of_a_stop_when_it_asks_for_waiting_machines(stop, machines):
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.rendezvous import RendezvousParameters, registry

    from nbtorchrun.launcher.rendezvous import BACKEND

    endpoint = f"localhost:{port_for_later()}"
    asked = RendezvousParameters(BACKEND, endpoint, "run", machines, machines, is_host=True)
    handler = registry.get_rendezvous_handler(asked)
    stop.clear()
    assert handler.num_nodes_waiting() == 0
    stop.set()
    with pytest.raises(SignalException):
        handler.num_nodes_waiting()
    handler.shutdown()
