"""What the notebooks print is the same on other CPUs, as far as one CPU can play them.

Libraries choose other code for other CPUs, and sum in another order. Variables make them choose.
`shaken/sitecustomize.py` changes results by the size of a rounding error. All notebooks take two
hours, and only `--all-cpus` runs them. Without it, the notebook that prints most numbers of
rounding's size runs.
"""

import os
import subprocess
import sys

import pytest

from course_utils import paths

CPUS = {
    "oldest": {
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "MKL_CBWR": "COMPATIBLE",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "OMP_NUM_THREADS": "1",
    },
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OMP_NUM_THREADS": "2",
        "OMP_WAIT_POLICY": "PASSIVE",  # else waiting threads spin on two cores
    },
    "shaken": {"PYTHONPATH": str(paths.ROOT / "tests" / "cpus" / "shaken")},
}
NOTEBOOKS = sorted(path.name for path in paths.NOTEBOOKS.glob("*.ipynb"))
# The others claim that ranks which compute the same hold the same bits, or they compile: neither
# works where every second rank is shaken.
SHAKEN = ("01", "03", "04", "12", "13", "15")
ALL = [(cpu, name) for cpu in CPUS for name in NOTEBOOKS if cpu != "shaken" or name[:2] in SHAKEN]
SAMPLE = [(cpu, name) for cpu, name in ALL if name[:2] == "15" and cpu == "shaken"]


def pytest_generate_tests(metafunc):
    """A sample; with `--all-cpus` every notebook on every CPU."""
    if "notebook" in metafunc.fixturenames:
        chosen = ALL if metafunc.config.getoption("all_cpus") else SAMPLE
        metafunc.parametrize(("cpu", "notebook"), chosen)


@pytest.mark.timeout(1300)
def test_a_notebook_prints_the_same(cpu, notebook):
    own = os.environ | CPUS[cpu]
    own["PYTHONPATH"] = os.pathsep.join(filter(None, [own.get("PYTHONPATH"), str(paths.ROOT)]))
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER"):  # of the tests around this one
        own.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"notebooks/{notebook}"],
        cwd=paths.ROOT,
        env=own,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout


def test_ranks_are_shaken(worker, launch, monkeypatch):
    """Or the test above would compare what nobody has changed."""
    source = """
import torch
from nbtorchrun.worker import init, report
init()
ones = torch.ones(128, dtype=torch.float64)
report(sums=sorted({ones.sum().item() - 128 for _ in range(20)}), exact=(ones * 3 / 2)[7].item())
"""
    monkeypatch.setenv("PYTHONPATH", f"{CPUS['shaken']['PYTHONPATH']}:{paths.ROOT}")
    for warm in (True, False):
        run = launch(worker("shaken.py", source), nproc=2, warm=warm)
        first, second = (rank.reports[0] for rank in run.ranks)
        assert first == {"sums": [0], "exact": 1.5}
        assert second["exact"] == 1.5
        assert second["sums"] == [-(2.0**-45), 2.0**-45]
