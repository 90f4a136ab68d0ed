"""`python -m course_utils`, the command line behind run.sh."""

import os
import re
import subprocess
import sys

import pytest

from course_utils import paths
from course_utils.errors import InputError
from course_utils.notebook import demos


def test_list_shows_each_notebook_with_a_line_for_each_of_its_demos(small_course):
    done = small_course("list")
    assert done.returncode == 0
    listed, _, following = done.stdout.partition("\n\n")
    assert listed == "03 · Counting\n  count   Count to a number."
    assert following.startswith("Run one: ./run.sh demo NAME.")


@pytest.mark.parametrize("demo", demos.find_all().values(), ids=lambda demo: demo.name)
def test_every_demo_has_a_heading_and_help_that_says_what_each_option_means(demo):
    assert demos.title(demo.notebook).startswith(demo.notebook[:2])
    demos.check_options(demo, demo.main.arguments, demo.main.nproc)
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
        (["demo", "count", "--too", "3"], "unrecognized arguments: --too"),
        (["demo", "count", "--to", "x"], "invalid int value: 'x'"),
        (["demo", "count", "-n", "9"], "demo count: nobody counts with more than 8 ranks"),
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


def test_a_demo_that_names_its_numbers_of_ranks_refuses_another_before_anything_starts():
    with pytest.raises(InputError, match="demo fsdp needs 2, 4 or 6 ranks, not 5: -n 2"):
        demos.check_options(demos.find("fsdp"), [], 5)


def test_a_demos_help_shows_its_script_s_options_and_those_of_launching(small_course):
    done = small_course("demo", "count", "--help")
    assert done.returncode == 0
    assert "Count to a number." in done.stdout
    assert re.search(r"--to TO +the last number \(default: 3\)", done.stdout)
    assert done.stdout.startswith("usage: ./run.sh demo count [options]")
    assert "--nproc-per-node N" in done.stdout
    assert "--compare" in done.stdout
    assert "--rdzv-endpoint HOST:PORT" in done.stdout


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
        pytest.param("import course_utils.__main__", id="command line"),
        pytest.param("from course_utils import check, cost, launch, proofs, show", id="first cell"),
    ],
)
def test_nobody_waits_for_torch_or_rich_who_does_not_need_them(imports):
    code = f"{imports}\nimport sys; sys.exit(bool({{'torch', 'rich'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=paths.ROOT, timeout=60).returncode == 0
