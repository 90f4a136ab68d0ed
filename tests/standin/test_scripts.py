"""Every script that uses GPUs where there are some, on pretended ones.

Demos are left out: `test_demos.py` runs them. A script that reports a claim, reads a clock or is
taken home runs on 2 and on 4 if each of its ranks has a GPU there, any other on as many as it has
ranks in its notebook; those that train or measure for minutes with fewer steps. These are two
hundred runs, which take half an hour on two cores: `--all-scripts` has all of them. Without it,
those taken home run on the fewest GPUs that they can use, and so does each eighth of the others.
"""

import ast
import re

import pytest

from course_utils import cells
from tests.launch.worker_files import Start, starts
from tests.standin.launching import on_gpus
from tools import demos

CLAIM_OR_CLOCK = re.compile(
    r"claim=|claim_equal|perf_counter|time\.monotonic|process_time|mark\("
    r"|from (timing|measure_speed) import"
)
TAKEN_HOME = re.compile(r"to_take_home|^in_pytorch")  # students start these on GPUs of their own
COMPUTED = [Start("sleep_pipeline.py", 2)]  # in a loop of the notebook
SAVES_THEN_LOADS = [
    ("reshard_check.py", "0", "4"),
    ("reshard_rows.py", "0", "4"),
    ("beside_dcp.py", "save", "load"),
]
WITHOUT = {  # what they show needs no GPU, and they use none
    "kill_saves.py",
    "kill_torch_save.py",
    "threads_or_processes.py",
    "tape_cost.py",
    "own_cost.py",
    "compile_chain.py",
    "dp_speed.py",
}
UNSEEN = {
    "in_pytorch_data_parallel.py",  # torch's DataParallel copies in C++: it asks the driver
    "compiled_ddp.py",  # torch's compiler lists all of torch by name, and refuses ours
}
IN_SAMPLE = 8  # one script of so many
DEMOS = {demo.main.file for demo in demos.find_all().values()}


def pytest_generate_tests(metafunc):
    """Each script on each number of GPUs, or a sample of them."""
    if "start" in metafunc.fixturenames:
        sources = cells.sources()
        left_out = WITHOUT | UNSEEN | DEMOS
        chosen = [s for s in starts().values() if s.file not in left_out and not s.fails]
        runs = {
            start: [
                gpus
                for gpus in numbers_of_gpus(start, sources.get(start.file, ""))
                if ranks_on(start, gpus) <= gpus  # else it runs on the CPU, as in its notebook
            ]
            for start in chosen + COMPUTED
        }
        if not metafunc.config.getoption("all_scripts"):
            runs = sample({start: gpus for start, gpus in runs.items() if gpus})
        each = [
            pytest.param(start, gpus, id=f"{start.file} on {gpus}")
            for start, numbers in runs.items()
            for gpus in numbers
        ]
        metafunc.parametrize(("start", "gpus"), each)


def sample(runs: dict[Start, list[int]]) -> dict[Start, list[int]]:
    """Those taken home and some others, on the fewest GPUs."""
    return {
        start: numbers[:1]
        for n, (start, numbers) in enumerate(runs.items())
        if not n % IN_SAMPLE or TAKEN_HOME.search(start.file)
    }


def numbers_of_gpus(start: Start, source: str) -> tuple[int, ...]:
    """On how many GPUs a script is tried; on none if it asks for no back end, or for gloo."""
    if CLAIM_OR_CLOCK.search(source) or TAKEN_HOME.search(start.file):
        return 2, 4
    asks = re.search(r"^ *init\(", source, re.MULTILINE) and 'backend="gloo"' not in source
    return (start.nproc,) if asks else ()


def ranks_on(start: Start, gpus: int) -> int:
    """A rank for each GPU where the script's `init` allows it, else as in the notebook."""
    for node in ast.walk(ast.parse(cells.sources()[start.file])):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "init":
            needs = {word.arg: word.value for word in node.keywords}
            if "ranks" in needs and not re.search(rf"\b{gpus}\b", ast.unparse(needs["ranks"])):
                return start.nproc
            if "at_least" in needs and needs["at_least"].value > gpus:
                return start.nproc
    return gpus if start.nproc > 1 else 1


# The limits leave room for a busy machine; ranks that hang are stopped long before.
@pytest.mark.timeout(600)
def test_a_script_runs_on_gpus(start, gpus, shortened, tmp_path, monkeypatch):
    monkeypatch.setenv("CHECKPOINT", str(tmp_path / "saved"))  # where those taken home save
    file, ranks = shortened(start.file, gpus), ranks_on(start, gpus)
    runs_well(file, *start.arguments, gpus=gpus, nproc=ranks)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("file", "saves", "loads"), SAVES_THEN_LOADS)
def test_two_gpus_load_what_four_have_saved(tmp_path, file, saves, loads):
    runs_well(file, saves, str(tmp_path), gpus=4, nproc=4)
    runs_well(file, loads, str(tmp_path), gpus=2, nproc=2)


def runs_well(file: str, *arguments: str, gpus: int, nproc: int) -> None:
    """Run a script: no rank fails, and every claim holds."""
    run = on_gpus(file, *arguments, gpus=gpus, nproc=nproc, timeout=540)
    assert run.ok, f"{run.verdict}\n{run.ranks[0].stderr}"
    for rank in run.ranks:
        for claim in rank.reports:
            if {"worst", "bound"} <= claim.keys():
                assert claim["worst"] <= claim["bound"], claim["claim"]
