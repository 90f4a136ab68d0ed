"""Worker files started by hand, with torchrun: with the right number of ranks, and with another."""

import os
import re
import subprocess
import sys

import pytest

from course_utils import cells, files, paths
from tests.launch.worker_files import Start, starts

DEADLINE = 120  # seconds, on loaded cores
SAMPLE = ["try_f_and_g.py", "prove_epoch.py"]


def pytest_generate_tests(metafunc):
    """Try the sample, or every file that a notebook starts and expects to finish."""
    if "start" in metafunc.fixturenames:
        found = starts()
        chosen = found if metafunc.config.getoption("all_workers") else SAMPLE
        files = [name for name in chosen if not found[name].fails]
        metafunc.parametrize("start", [found[name] for name in files], ids=files)


@pytest.fixture(scope="module")
def extracted():
    """All worker files in `workers/`, as `./run.sh extract` writes them: some name another."""
    files.write_missing(*cells.sources())


@pytest.fixture
def by_hand(tmp_path, extracted):
    """Start a file with plain torchrun; give the exit status and what the ranks wrote."""

    def run(start: Start, nproc: int) -> tuple[int | None, str]:
        words = f"--standalone --nproc-per-node {nproc} --redirects 3 --log-dir {tmp_path}"
        script = [files.script_path(start.file), *start.arguments]
        torchrun = subprocess.Popen(
            [sys.executable, "-m", "torch.distributed.run", *words.split(), *script],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(paths.ROOT), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        status = None
        try:
            status = torchrun.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            torchrun.terminate()  # it ends its ranks then
            torchrun.wait(DEADLINE)
        logs = sorted(tmp_path.glob("*/attempt_0/*/std*.log"))
        return status, "".join(log.read_text(errors="replace") for log in logs)

    return run


@pytest.mark.timeout(2 * DEADLINE + 30)
def test_a_worker_file_runs_on_the_ranks_its_notebook_gives_it(by_hand, start):
    status, written = by_hand(start, start.nproc)
    assert status == 0, written
    if start.file == "prove_epoch.py":
        assert "report rank 0: claim=" in written  # without a notebook, a report is printed


@pytest.mark.timeout(2 * DEADLINE + 30)
def test_on_another_number_it_runs_or_says_how_many_ranks_it_needs(by_hand, start):
    status, written = by_hand(start, 1 if start.nproc > 2 else start.nproc + 1)
    assert "Traceback" not in written
    needs = r"needs (at least |[\d, ]+ or )?\d+ ranks?, not \d+"
    assert status == 0 or re.search(needs, written), written


# gloo's thread holds the last references to the tensors, but not the GIL that it needs to drop
# them; `group` keeps the thread alive beyond destroy_process_group().
HELD = """
import sys
import time

import torch
import torch.distributed as dist

from nbtorchrun.worker import init

init()
group = dist.group.WORLD
sys.setswitchinterval(60)
dist.all_reduce_coalesced([torch.zeros(1) for _ in range(10_000)], async_op=True)
end = time.monotonic() + 1
while time.monotonic() < end:
    pass
"""


@pytest.mark.timeout(2 * DEADLINE + 30)
def test_torch_does_not_abort_while_python_shuts_down(by_hand, worker):
    status, written = by_hand(Start(worker("held.py", HELD), 2), 2)
    assert status == 0, written


NEEDS = """
from nbtorchrun.worker import init
init({needs})
"""


@pytest.mark.parametrize(
    ("needs", "nproc", "said"),
    [
        ("ranks=3", 2, "needs.py needs 3 ranks, not 2: torchrun --standalone --nproc-per-node 3 "),
        ("ranks=1", 2, "needs.py needs 1 rank, not 2: "),
        ("ranks=(1, 3, 4)", 2, "needs.py needs 1, 3 or 4 ranks, not 2: "),
        ("at_least=3", 2, "needs.py needs at least 3 ranks, not 2: "),
        ("ranks=2", 2, ""),
        ("ranks=(2, 3)", 3, ""),
        ("at_least=2", 3, ""),
    ],
)
def test_init_says_in_one_sentence_how_many_ranks_a_script_needs(
    worker, launch, needs, nproc, said
):
    run = launch(worker("needs.py", NEEDS.format(needs=needs)), nproc=nproc, check=False)
    assert run.ok == (not said)
    if said:
        assert any(rank.stderr.startswith(said) for rank in run.ranks)
        assert not any("Traceback" in rank.stderr for rank in run.ranks)
