"""Every demo runs on 2 pretended GPUs, by NCCL's rules; with `--all-scripts` on 4 too."""

from importlib.util import find_spec

import pytest

from tests import point_at
from tests.standin.launching import on_gpus
from tests.standin.short_demos import SMALL, UNSEEN, WITHOUT
from tools import demos, gpus

DEMOS = demos.find_all()


def pytest_generate_tests(metafunc):
    """On 4 GPUs too, if that is asked for."""
    if "count" in metafunc.fixturenames:
        most = 4 if metafunc.config.getoption("all_scripts") else 2
        names = ("name", "count", "ranks")
        metafunc.parametrize(names, [run for run in runs() if run.values[1] <= most])


def runs():
    """Each demo on 2 GPUs with the ranks that it starts there, and on 4 with four."""
    for name, demo in DEMOS.items():
        if name not in WITHOUT | UNSEEN:
            marks = marks_for(demo.packages)
            ranks = gpus.ranks_for(demo, 2)[0]
            yield pytest.param(name, 2, ranks, id=f"{name} on 2", marks=marks)
            if demo.main.nproc > 1:
                yield pytest.param(name, 4, 4, id=f"{name} on 4", marks=marks)


def marks_for(packages):
    """Of a demo that needs packages: in CI it runs once they are installed."""
    if not packages:
        return ()
    lacks = [name for name in packages if not find_spec(name)]
    reason = f"not installed: {', '.join(lacks)}"
    return pytest.mark.extra, pytest.mark.skipif(bool(lacks), reason=reason)


@pytest.mark.timeout(600)  # as in test_scripts.py
def test_a_demo_runs_on_gpus(name, count, ranks, shortened):
    arguments = SMALL.get(name, "").split()
    file = shortened(DEMOS[name].main.file, count)
    run = on_gpus(file, *arguments, gpus=count, nproc=ranks, timeout=540)
    assert run.ok, f"{run.verdict}\n{run.ranks[0].stderr}"
    group = run.ranks[0].last("group")
    assert not point_at.not_shown(name, "".join(rank.stdout for rank in run.ranks))
    if group:  # a demo of one process has none
        assert group["backend"] == ("nccl" if ranks <= count else "gloo")


@pytest.mark.parametrize("name", sorted(WITHOUT - {"plan"}))
def test_a_demo_that_stays_on_the_cpu_says_why(name):
    assert "uses no GPU" in gpus.ranks_for(DEMOS[name], 2)[1]
