"""`python -m tools`, the command line behind run.sh."""

import contextlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from course_utils import cells, paths
from tests.demo_calls import accept
from tools import demos
from tools.__main__ import main


def test_list_shows_each_notebook_with_a_line_for_each_of_its_demos(small_course):
    done = small_course("list")
    assert done.returncode == 0
    listed, _, following = done.stdout.partition("\n\n")
    assert listed == "03 · Counting\n  count   Count to a number."
    assert following.startswith("Run one: ./run.sh demo NAME.")


@pytest.mark.parametrize("demo", demos.find_all().values(), ids=lambda demo: demo.name)
def test_every_demo_has_a_heading_and_help_that_says_what_each_option_means(demo):
    assert demos.title(demo.notebook).startswith(demo.notebook[:2])
    accept(demo, demo.main.arguments, demo.main.nproc)
    said = demos.options_help(demo)
    assert " ".join(said.split()).startswith(demo.about)
    options = re.split(r"\n  (?=-)", said)[1:]
    assert bool(options) == demo.has_options
    for option in options:
        words = " ".join(option.split())
        assert re.search(r"exit$|\(default: [^)]+\)$", words), f"{words}: no default"
        assert not re.fullmatch(r"\S+ (\S+ )?\(default: .*", words), f"{words}: no meaning"


def test_a_demo_runs_its_ranks_and_then_its_proofs(small_course):
    done = small_course("demo", "count", "--nproc-per-node", "3", "--to", "2")
    assert done.returncode == 0, done.stderr
    assert "torchrun --standalone --nproc-per-node 3 workers/count.py --to 2" in done.stdout
    for rank in range(3):
        lines = re.findall(rf"^\[rank {rank}\] (count \d)$", done.stdout, re.MULTILINE)
        assert lines == ["count 0", "count 1"]
    assert "3 ranks · gloo · cpu · ok" in done.stdout
    assert "it counts   2 ranks       0         1" in done.stdout
    assert "the claim holds" in done.stdout
    assert "\033" not in done.stdout


def test_a_reader_that_leaves_ends_the_demo_without_a_traceback(small_course):
    read, write = os.pipe()
    os.close(read)  # as `| head` does once it has its lines
    demo = small_course.start("demo", "count", stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert demo.communicate(timeout=240) == (None, "")
    assert demo.returncode == 141


def test_a_claim_that_does_not_hold_gives_status_1(small_course):
    done = small_course("demo", "count", worst=2)
    assert done.returncode == 1
    assert "\nfails: it counts\n" in done.stdout


def test_a_claim_that_is_not_reported_gives_status_1(small_course):
    done = small_course("demo", "count", worst=None)
    assert done.returncode == 1
    assert "not measured: prove.py reported no claim" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["demo", "count", "--nproc-per-node", "0"], "from 1 to 64"),
        (["demo", "count", "--nproc-per-node", "1000"], "from 1 to 64"),
        (["demo", "count", "--nproc-per-node", "abc"], "'abc' is not a whole number"),
        (["demo", "count", "--timeout", "-1"], "above 0"),
        (["demo", "nothing"], "there is no demo 'nothing'; choose one of count"),
        (["demo"], "demo needs a name: ./run.sh list shows them all"),
        (["demo", "count", "-n", "1", "--compare"], "--compare needs 2 ranks or more"),
        (["nothing"], "invalid choice: 'nothing'"),
        (["list", "--all"], "list has no option --all"),
        (["setup", "--fast"], "setup has no option --fast"),
        (["--check", "demo", "nothing"], "there is no demo 'nothing'; choose one of count"),
        (["--check", "demo", "count", "-n", "0"], "from 1 to 64"),
        (["bench", "nothing"], "there is no benchmark 'nothing'"),
        (["execute", "gone.ipynb"], "cannot read the notebook gone.ipynb (No such file"),
    ],
)
def test_a_bad_call_is_refused_in_one_sentence_and_nothing_starts(small_course, arguments, said):
    done = small_course(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""
    assert not list(small_course.home.glob(".runs/*/*/rank_*"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--too", "3"], "demo count: unrecognized arguments: --too 3: did you mean --to?"),
        (["--pase=3"], "demo count: unrecognized arguments: --pase=3: did you mean --pause?"),
        (["--timeot", "3"], "unrecognized arguments: --timeot 3: did you mean --timeout?"),
        (["--to", "x"], "argument --to: invalid int value: 'x'"),
        (["-n", "9"], "demo count: nobody counts with more than 8 ranks"),
    ],
)
def test_an_option_that_the_script_refuses_is_one_sentence_and_leaves_nothing(
    small_course, arguments, said
):
    done = small_course("demo", "count", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.endswith(" (./run.sh demo count --help)\n")
    assert len(done.stderr.splitlines()) == 1
    assert "usage" not in done.stdout
    assert "rank" not in done.stdout.partition("torchrun")[2]
    assert not list(small_course.home.glob(".runs/*/*"))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("fsdp -n 5", "demo fsdp needs 2, 4 or 6 ranks, not 5: ./run.sh demo fsdp -n 2"),
        ("audit -n 2", "demo audit needs 4 ranks, not 2: ./run.sh demo audit -n 4"),
        ("straggler -n 1", "needs at least 2 ranks, not 1: ./run.sh demo straggler -n 2"),
        ("tape --nproc-per-node 2", "demo tape runs as one process, not as 2 ranks: ./run.sh"),
        ("cnn -n 2", "runs as one process, not as 2 ranks: ./run.sh demo cnn"),
        ("data_parallel -n 3", "runs as one process, not as 3 ranks: ./run.sh demo data_parallel"),
        ("links -n 2", "runs as one process, not as 2 ranks: ./run.sh demo links"),
        ("plan -n 2", "runs as one process, not as 2 ranks: ./run.sh demo plan"),
        ("hello --times 3", "demo hello takes no options of its own, so not --times: did you mean"),
    ],
)
def test_what_a_demo_cannot_run_on_is_refused_before_anything_starts(capsys, call, said):
    assert main(["--check", "demo", *call.split()]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""


@pytest.mark.parametrize("demo", demos.find_all().values(), ids=lambda demo: demo.name)
def test_a_demo_names_the_packages_that_its_script_leaves_without(demo):
    source = cells.sources()[demo.main.file]
    required = re.findall(r"leave_without\(([^*)]*)", source)
    assert sorted(demo.packages) == sorted(re.findall(r'"(\w+)"', "".join(required)))


@pytest.mark.parametrize("name", ["trainer", "deepspeed"])
def test_a_demo_whose_packages_are_missing_says_how_to_get_them(monkeypatch, capsys, name):
    monkeypatch.setattr(demos, "find_spec", lambda package: None)
    assert main(["demo", name]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    words = shlex.split(shown.err.partition("Install with: ")[2])
    assert words[:4] == [sys.executable, "-m", "pip", "install"]
    pinned = Path(words[-1]).read_text()
    for package in demos.find(name).packages:
        assert package in shown.err
        assert re.search(rf"^{package}==", pinned, re.MULTILINE)


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        ("demo pipelin", "did you mean pipeline?"),
        ("demo tensor-parallel", "did you mean tensor_parallel?"),
        ("demos", "did you mean demo?"),
        ("docter", "did you mean doctor?"),
        ("clean --al", "did you mean --all?"),
        ("grade x.py --jsn out", "did you mean --json?"),
        ("bench pipelin", "did you mean pipeline?"),
    ],
)
def test_a_near_miss_gets_what_was_meant(capsys, call, meant):
    with contextlib.suppress(SystemExit):
        assert main(call.split()) == 2
    assert meant in capsys.readouterr().err


def test_a_demos_help_shows_its_script_s_options_and_those_of_launching(small_course):
    done = small_course("demo", "count", "--help")
    assert done.returncode == 0
    assert "Count to a number." in done.stdout
    assert re.search(r"--to TO +the last number \(default: 3\)", done.stdout)
    assert done.stdout.startswith("usage: ./run.sh demo count [options]")
    assert "--nproc-per-node N" in done.stdout
    assert "--compare" in done.stdout
    assert "--rdzv-endpoint HOST:PORT" in done.stdout


def test_the_help_of_a_demo_of_one_process_shows_what_it_takes():
    options = [
        re.findall(r"^  (--\S+)", demos.launch_help(demos.find(n)), re.M) for n in ("links", "ring")
    ]
    assert options[0] == ["--timeout", "--stall"]
    assert {"--nproc-per-node", "--compare"} < set(options[1])


def test_help_says_how_to_get_a_demo_s_and_what_happens_without_a_command(small_course):
    done = small_course("--help")
    assert done.returncode == 0
    assert "demo NAME --help" in done.stdout
    assert "Without a command, ./run.sh runs `demo transformer`" in " ".join(done.stdout.split())
    assert "--check" not in done.stdout  # between run.sh and the course


@pytest.mark.parametrize("arguments", [["demo", "count", "-n", "3"], ["bench"], ["setup"]])
def test_a_sound_call_is_checked_without_a_word_or_a_process(small_course, arguments):
    done = small_course("--check", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (small_course.home / ".runs").exists()


def test_extract_writes_every_file_and_keeps_changed_ones(small_course):
    assert small_course("extract").returncode == 0
    count = small_course.home / "workers" / "count.py"
    assert count.read_text().startswith('"""Count to a number."""')
    count.write_text("mine")
    said = f"{count.parent} now has all 2 worker files of the notebooks; files you changed stay\n"
    assert small_course("extract").stdout == said
    assert count.read_text() == "mine"


def test_a_broken_notebook_is_named_in_one_sentence(small_course):
    (small_course.root / "notebooks/04_ring.ipynb").write_text("<<<<<<< HEAD\n")
    done = small_course("list")
    assert done.returncode == 2
    assert re.fullmatch(r"run.sh: the notebook .*/04_ring.ipynb is broken .*\n", done.stderr)


@pytest.mark.parametrize(
    "imports",
    [
        pytest.param("import tools.__main__", id="command line"),
        pytest.param("from course_utils import check, cost, launch, proofs, show", id="first cell"),
    ],
)
def test_nobody_waits_for_torch_or_rich_who_does_not_need_them(imports):
    code = f"{imports}\nimport sys; sys.exit(bool({{'torch', 'rich'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=paths.ROOT, timeout=60).returncode == 0
