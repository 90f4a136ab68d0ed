"""What stands in the environment of the notebook, or is given by `env`, and where it may reach."""

import pytest

from course_utils.launcher import client
from course_utils.launcher.hashing import order_of_a_set

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
    failing = "from course_utils.worker import init, rank\ninit()\nassert rank() != 1\n"
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


def test_ranks_that_go_through_a_set_of_strings_have_a_hash_each(worker, launch):
    body = "for name in {'weight', 'bias'}:\n    pass\nprint(str.__hash__('weight'))\n"
    run = launch(worker("order.py", body))
    assert run.ranks[0].stdout != run.ranks[1].stdout
    assert "line 1 goes through a set" in run.note
    assert not launch(worker("numbers.py", "for n in {1, 2} | set(range(3)):\n    pass\n")).note


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (3, "def names():\n    return {name for name in 'ab'}\nfor name in names():\n    pass\n"),
        (5, "def f():\n    names = set()\n    names.add('a')\n    return names\nlist(f())\n"),
        (2, "self.names = {'a', 'b'}\nfor name in self.names:\n    pass\n"),
        (2, "names: set[str] = {'a', 'b'}\nfor name in names:\n    pass\n"),
        (1, "for name in ours.keys() & theirs.keys():\n    pass\n"),
        (None, "for name in sorted({'a', 'b'}):\n    pass\n"),
        (None, "def f():\n    return\nfor name in dict(a=f()).keys():\n    pass\n"),
    ],
)
def test_a_set_is_found_wherever_it_was_made(tmp_path, line, text):
    (tmp_path / "script.py").write_text(text)
    assert order_of_a_set(tmp_path / "script.py") == line
