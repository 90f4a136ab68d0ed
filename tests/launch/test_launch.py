"""A run that goes well: what the ranks see, and what the notebook gets."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from course_utils import LaunchError, paths
from nbtorchrun import settings
from nbtorchrun.errors import InputError
from nbtorchrun.launcher import client
from tests.waiting import wait_for

HELLO = """
import torch
import torch.distributed as dist
from nbtorchrun.worker import init, report

init()
total = torch.tensor([float(dist.get_rank())])
dist.all_reduce(total)
print("hello from", dist.get_rank())
report(total=total)
"""

both_ways = pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])


@pytest.mark.parametrize(
    ("warm", "nproc"), [(True, 1), (True, 2), (True, 3), (True, 4), (False, 1), (False, 3)]
)
def test_every_rank_reports_prints_and_ends_well(worker, launch, warm, nproc):
    run = launch(worker("hello.py", HELLO), nproc=nproc, warm=warm)
    assert run.ok
    assert run.verdict is None
    assert run.reports == [{"rank": rank, "total": [sum(range(nproc))]} for rank in range(nproc)]
    assert [rank.stdout for rank in run.ranks] == [f"hello from {n}\n" for n in range(nproc)]
    assert [rank.exitcode for rank in run.ranks] == [0] * nproc
    assert run.command == f"torchrun --standalone --nproc-per-node {nproc} workers/hello.py"


SEES = """
import json, os, random, sys, threading, multiprocessing
import numpy, torch
import helper_module
print(json.dumps({
    "argv": sys.argv[1:],
    "script": os.path.basename(sys.argv[0]),
    "path": sys.path,
    "cwd": os.getcwd(),
    "main": sorted(vars(sys.modules["__main__"])),
    "file": os.path.basename(__file__),
    "name": __name__,
    "environ": {k: v for k, v in os.environ.items() if not k.startswith(VARIES)},
    "threads": torch.get_num_threads(),
    "live threads": threading.active_count(),
    "torch seed is drawn": torch.initial_seed() != 67280421310721,
    "debug": str(torch.distributed.get_debug_level()),
    "start method": multiprocessing.get_start_method(),
    "stdin": sys.stdin.read(),
    "encoding": sys.stdout.encoding,
}))
""".replace(
    "VARIES",
    repr(("MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE", "NBTORCHRUN_RUN_DIR")),
)


def test_a_script_sees_the_same_warm_and_cold(worker, launch, monkeypatch):
    monkeypatch.setenv("SET_AFTER_THE_AGENT_STARTED", "yes")
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")
    worker("helper_module.py", "value = 1")
    script = worker("sees.py", SEES)
    seen = {}
    for warm in (True, False):
        run = launch(script, "--a", "b c", "$$HOME", "${local_rank}", env={"GIVEN": 3}, warm=warm)
        seen[warm] = json.loads(run.ranks[1].stdout)
    # torch sets this one in an agent that lives on; it says what torchrun's default says
    for found in seen.values():
        found["environ"].pop("TORCHELASTIC_SIGNALS_TO_HANDLE", None)
        found["environ"].pop("TORCHINDUCTOR_CACHE_DIR", None)
    assert seen[True] == seen[False]
    assert seen[True]["argv"] == ["--a", "b c", "$$HOME", "${local_rank}"]
    assert seen[True]["environ"]["GIVEN"] == "3"
    assert seen[True]["environ"]["SET_AFTER_THE_AGENT_STARTED"] == "yes"
    assert seen[True]["debug"].endswith("DETAIL")
    assert seen[True]["cwd"] == os.getcwd()


def test_random_numbers_differ_between_runs_and_ranks_as_in_fresh_processes(worker, launch):
    script = worker(
        "random_state.py",
        "import numpy, random, torch\n"
        "from nbtorchrun.worker import report\n"
        "report(numpy=numpy.random.rand(), random=random.random(), torch=torch.rand(1).item())\n",
    )
    drawn = [report for _ in range(2) for report in launch(script).reports]
    for library in ("numpy", "random"):
        assert len({numbers[library] for numbers in drawn}) == 4
    # Whether torch draws its seed depends on the version.
    fixed = "import sys, torch; sys.exit(torch.initial_seed() == 67280421310721)"
    seed_is_drawn = not subprocess.call([sys.executable, "-c", fixed], timeout=60)
    assert len({numbers["torch"] for numbers in drawn}) == (4 if seed_is_drawn else 1)


LEAVES = """
import atexit, subprocess, sys, threading, time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
atexit.register(print, "at exit")
pool = ProcessPoolExecutor(2)  # named: one that ends by itself as Python ends may raise there
print(pool.submit(len, "abc").result())
print(ThreadPoolExecutor(2).submit(len, "ab").result())
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
print("end of script", end="")
"""


@both_ways
def test_a_rank_waits_for_exit_handlers_and_threads_and_not_for_processes(worker, launch, warm):
    run = launch(worker("leaves.py", LEAVES), stall=10, warm=warm)
    assert [rank.stdout for rank in run.ranks] == ["3\n2\nend of scriptthread\nat exit\n"] * 2


# A ProcessPoolExecutor without a name that ends by itself just now raises so, now and then.
RAISES_AT_EXIT = """
import atexit, threading
def wake_up():
    raise OSError("handle is closed")
threading._register_atexit(wake_up)
atexit.register(print, "at exit")
atexit.register(wake_up)
"""


@both_ways
def test_what_is_raised_while_python_ends_is_printed_and_not_a_failure(worker, launch, warm):
    run = launch(worker("raises_at_exit.py", RAISES_AT_EXIT), warm=warm)
    assert [rank.exitcode for rank in run.ranks] == [0, 0]
    for rank in run.ranks:
        assert rank.stdout == "at exit\n"
        assert rank.stderr.count("OSError: handle is closed") == 2


@both_ways
def test_a_class_of_the_script_can_be_pickled_to_a_process_of_its_own(worker, launch, warm):
    script = worker(
        "loader.py",
        "import torch\n"
        "class Squares(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 4\n"
        "    def __getitem__(self, i): return i * i\n"
        "if __name__ == '__main__':\n"
        "    for method in ('fork', 'spawn', 'forkserver'):\n"
        "        loader = torch.utils.data.DataLoader(\n"
        "            Squares(), num_workers=1, multiprocessing_context=method)\n"
        "        print([int(x) for x in loader])\n",
    )
    client.close_kept_agent()  # a new one: how it starts its forkserver may reach the ranks
    run = launch(script, nproc=1, warm=warm)
    assert run.ranks[0].stdout == "[0, 1, 4, 9]\n" * 3


def test_series_marks_and_odd_values_arrive(worker, launch):
    script = worker(
        "reports.py",
        "import time, torch\n"
        "from nbtorchrun.worker import mark, report, rank\n"
        "for step in range(3):\n"
        "    with mark('work'):\n"
        "        time.sleep(0.01 * (rank() + 1))\n"
        "    report(step=step, total=3, loss=torch.tensor(step / 2))\n"
        "report(nan=float('nan'), items=[torch.ones(2), (1, 'a')], kind=torch.int64)\n",
    )
    run = launch(script)
    assert run.series("loss") == [0.0, 0.5, 1.0]
    assert run.series("loss", rank=1) == [0.0, 0.5, 1.0]
    last = run.ranks[0].reports[-1]
    assert last["nan"] != last["nan"]
    assert last["items"] == [[1.0, 1.0], [1, "a"]]
    assert last["kind"] == "torch.int64"
    marks = run.timeline()
    assert [mark["rank"] for mark in marks] == [0] * 3 + [1] * 3
    assert min(mark["start"] for mark in marks) == 0
    assert all(mark["end"] - mark["start"] >= 0.01 * (mark["rank"] + 1) for mark in marks)


@both_ways
def test_what_a_worker_imports_is_read_anew_even_if_edited_in_the_same_second(worker, launch, warm):
    script = worker("whole.py", "import part\nprint(part.value)")
    for value in "12":
        part = paths.workers() / worker("part.py", f"value = {value}")
        os.utime(part, (0, 0))
        assert launch(script, nproc=1, warm=warm).ranks[0].stdout == f"{value}\n"


READS = """
import sys
from nbtorchrun.worker import init
sys.addaudithook(lambda event, names: print(names[0]) if event == "open" else None)
init()
"""


def test_a_warm_rank_does_not_search_all_packages_for_its_back_end(worker, launch):
    opened = launch(worker("reads.py", READS), nproc=1).ranks[0].stdout
    assert "entry_points.txt" not in opened


def large_pages(process: psutil.Process) -> int:
    """MB that a process holds in large pages."""
    text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    return int(re.search(r"AnonHugePages: *(\d+)", text)[1]) // 1024


@pytest.mark.skipif(
    sys.platform != "linux" or tuple(map(int, platform.release().split(".")[:2])) < (6, 1),
    reason="large pages can be asked for from Linux 6.1 on",
)
def test_after_its_first_run_a_forkserver_is_quick_to_fork(worker, launch):
    client.close_kept_agent()
    launch(worker("hello.py", HELLO))
    agent = next(child for child in psutil.Process().children() if len(child.children()) == 2)
    assert wait_for(lambda: max(map(large_pages, agent.children())) > 100)
    assert launch("hello.py").ok


def test_what_runs_left_may_be_removed_while_a_notebook_is_open(worker, launch):
    script = worker("hello.py", HELLO)
    first = launch(script)
    shutil.rmtree(settings.runs())
    assert launch(script).ok
    assert first.ok
    assert first.ranks[0].stdout == ""


def test_a_run_whose_folder_was_removed_still_has_a_verdict(worker, launch):
    body = "import os, shutil\nshutil.rmtree(os.environ['NBTORCHRUN_RUN_DIR'])\nos._exit(3)\n"
    run = launch(worker("removes.py", body), nproc=1, check=False)
    assert run.verdict.kind == "exited"


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("nproc", [0, -1, 1000, "abc", 2.0, None, True], "ranks must be a whole number from 1 to"),
        ("timeout", [0, -3, "soon", None, float("nan")], "must be a number of seconds above 0"),
        ("nnodes", [0], "must be 1 or more"),
    ],
)
def test_a_number_that_cannot_be(worker, launch, name, wrong, said):
    for value in wrong:
        with pytest.raises(InputError, match=said):
            launch(worker("hello.py", HELLO), **{name: value})


@pytest.mark.parametrize("name", ["../x.py", "/etc/passwd", "a/b.py", "workers/../../x.py"])
def test_a_file_outside_workers(launch, name):
    with pytest.raises(InputError, match="outside workers/"):
        launch(name)


def test_a_link_out_of_workers(worker, launch, tmp_path):
    (tmp_path / "real.py").write_text("print('reached')")
    link = paths.workers() / worker("link.py", "")
    link.unlink()
    link.symlink_to(tmp_path / "real.py")
    with pytest.raises(InputError, match="outside workers/"):
        launch("link.py")


def test_a_file_that_is_missing(launch):
    said = r"workers/nowhere.py does not exist.*%%worker nowhere.py"
    with pytest.raises(LaunchError, match=said):
        launch("nowhere.py")
    assert launch("nowhere.py", check=False).verdict.kind == "launcher"


def test_an_agent_that_cannot_start_leaves_its_log(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    (tmp_path / "home" / "workers").mkdir(parents=True)
    (tmp_path / "home" / "workers" / "any.py").touch()
    environ = {"COURSE_HOME": str(tmp_path / "home"), "PYTHONPATH": f"{tmp_path}:{paths.ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", "from course_utils import launch; launch('any.py', warm=False)"],
        env=os.environ | environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    log = re.search(r"torchrun cannot start: its helper process died.* Log: (.*)", done.stderr)[1]
    assert "no torch here" in Path(log).read_text()
