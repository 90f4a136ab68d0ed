"""What stands in the environment of the notebook, or is given by `env`, and where it may reach."""

import pytest

from nbtorchrun.errors import InputError
from nbtorchrun.launcher import client

both_ways = pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
PRINTS = "import atexit\nprint('unasked')\natexit.register(print, 'at exit')\n"
THREADS = "import torch\nprint(torch.get_num_threads() > 0)\n"


@pytest.fixture
def new_agent(monkeypatch):
    """The test's environment is the one in which an agent starts; the next test gets another."""
    client.close_kept_agent()
    yield monkeypatch
    client.close_kept_agent()


@both_ways
def test_the_notebooks_environment_does_not_reach_the_launcher(
    worker, launch, new_agent, tmp_path, warm
):
    (tmp_path / "sitecustomize.py").write_text(PRINTS)
    deep = tmp_path / ("d" * 130)
    deep.mkdir()
    new_agent.setenv("PYTHONPATH", str(tmp_path))
    new_agent.setenv("TMPDIR", str(deep))
    new_agent.setenv("PET_MAX_RESTARTS", "3")
    new_agent.setenv("PET_STANDALONE", "1")
    for threads in ("4,2", "", "odd", "1"):
        new_agent.setenv("OMP_NUM_THREADS", threads)
        run = launch(worker("threads.py", THREADS), warm=warm, check=False)
        assert run.ok, run.verdict
        assert run.ranks[1].stdout == "True\nat exit\n"  # once, as in a fresh process
    failing = "from nbtorchrun.worker import init, rank\ninit()\nassert rank() != 1\n"
    run = launch(worker("fails.py", failing), warm=warm, check=False)
    assert run.verdict.kind == "raised"
    assert run.verdict.rank == 1


@both_ways
def test_names_that_look_like_torchruns_are_the_users_own(worker, launch, new_agent, warm):
    new_agent.setenv("LOCAL_SCRATCH", "/a")
    new_agent.setenv("CUDA_VISIBLE_DEVICES", "0")
    body = "import os\nprint(os.environ['LOCAL_SCRATCH'], os.getenv('CUDA_VISIBLE_DEVICES'))\n"
    assert launch(worker("names.py", body), warm=warm).ranks[1].stdout == "/a 0\n"
    new_agent.delenv("CUDA_VISIBLE_DEVICES")
    run = launch(worker("names.py", body), warm=warm, env={"LOCAL_SCRATCH": "/b"})
    assert run.ranks[1].stdout == "/b None\n"


@both_ways
def test_what_python_reads_at_its_start_takes_effect(worker, launch, warm, tmp_path):
    (tmp_path / "found_by_path.py").touch()
    body = "import sys, time, found_by_path\nprint(time.timezone, sys.flags.hash_randomization)\n"
    env = {"TZ": "UTC+3", "PYTHONHASHSEED": "0", "PYTHONPATH": tmp_path}
    run = launch(worker("reads_at_start.py", body), warm=warm, env=env)
    assert run.ranks[1].stdout == "10800 0\n"
    assert ("PYTHONHASHSEED, PYTHONPATH, TZ" in run.note) == warm


ELSEWHERE = {
    "GLOO_SOCKET_IFNAME": "ib0",
    "NCCL_SOCKET_IFNAME": "ib0",
    "MASTER_ADDR": "10.9.9.9",
    "MASTER_PORT": "1",
    "RANK": "5",
    "LOCAL_RANK": "3",
    "WORLD_SIZE": "8",
    "LOCAL_WORLD_SIZE": "8",
}


@both_ways
def test_what_a_cluster_sets_for_its_own_jobs_does_not_reach_the_ranks(
    worker, launch, new_agent, warm
):
    for name, value in ELSEWHERE.items():
        new_agent.setenv(name, value)
    body = "from nbtorchrun.worker import init, rank\ninit(ranks=2)\nprint('rank', rank())\n"
    run = launch(worker("joins.py", body), warm=warm)
    assert [rank.stdout for rank in run.ranks] == ["rank 0\n", "rank 1\n"]


def test_a_network_card_that_is_not_there_is_named_with_its_variable(worker, launch):
    run = launch(
        worker("joins.py", "from nbtorchrun.worker import init\ninit()\n"),
        env={"GLOO_SOCKET_IFNAME": "ib0"},
        check=False,
    )
    assert "Unable to find address for: ib0" in run.verdict.text
    assert "GLOO_SOCKET_IFNAME names a network card" in run.verdict.text


@both_ways
def test_ranks_run_with_assertions_whatever_the_shell_says(worker, launch, new_agent, warm):
    new_agent.setenv("PYTHONOPTIMIZE", "1")
    run = launch(worker("asserts.py", "assert 1 == 2\n"), warm=warm, check=False)
    assert (run.verdict.kind, run.verdict.line) == ("raised", 1)
    assert run.note == ""
    with pytest.raises(InputError, match="PYTHONOPTIMIZE, with which Python leaves every assert"):
        launch("asserts.py", env={"PYTHONOPTIMIZE": 2}, warm=warm)


CRASHES = """
import os
from nbtorchrun.worker import init, rank
init()
if rank() == 1:
    os.kill(os.getpid(), 11)
import torch.distributed as dist
dist.barrier()
"""


@both_ways
@pytest.mark.parametrize("level", ["DETAIL", "detail", "INFO"])
def test_where_torchs_own_check_kills_its_variable_is_named(worker, launch, new_agent, level, warm):
    new_agent.setenv("TORCH_DISTRIBUTED_DEBUG", level)
    run = launch(worker("crashes.py", CRASHES), warm=warm, check=False)
    assert run.verdict.title == "rank 1 was killed by SIGSEGV"
    named = "TORCH_DISTRIBUTED_DEBUG=DETAIL is set" in run.verdict.text
    assert named == (level != "INFO")
