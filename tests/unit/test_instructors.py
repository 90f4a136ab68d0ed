"""What docs/instructors.md and its templates say is so."""

import json
import os
import re
import subprocess

import pytest

from course_utils import paths
from tests import point_at
from tests.demo_calls import accept
from tests.unit.run_sh.checkout import write_program
from tools import demos, gpus

GUIDE = (paths.ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
TEMPLATES = paths.ROOT / "docs" / "templates"
SBATCH = TEMPLATES / "slurm.sbatch"


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    part = GUIDE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_demo_has_its_lecture_and_is_called_as_it_can_be():
    calls = [call.split() for row in rows("Which demo for which lecture") for call in code(row[1])]
    known = demos.find_all()
    options = [words for words in calls if not words[0].startswith("-")]
    assert {words[0] for words in options} == set(known) - {"cnn", "deepspeed"}
    for name, *arguments in options:
        own = [word for word in arguments if word not in ("-n", "3", "4", "5", "--compare")]
        accept(known[name], own, ranks=4 if known[name].main.nproc > 1 else 1)


def test_every_demo_has_a_command_for_two_gpus_that_uses_them_or_says_why_not():
    for _, usual, here, _ in rows("Which demo for which lecture"):
        name, *arguments = code(here)[0].split()
        demo = demos.find(name)
        assert name == code(usual)[0].split()[0]
        chosen, why = gpus.ranks_for(demo, 2)
        ranks = int(arguments[arguments.index("-n") + 1]) if "-n" in arguments else chosen
        if "-n" in arguments:
            at = arguments.index("-n")
            del arguments[at : at + 2]
        arguments = [word for word in arguments if word != "--compare"]
        accept(demo, arguments, ranks)
        assert ranks == 2 or (why and ("," in here or ":" in here)), f"{name}: why not 2?"


def points() -> dict[str, str]:
    """The column "point at", by demo."""
    return {code(row[1])[0].split()[0]: row[3] for row in rows("Which demo for which lecture")}


def saved_output(demo: demos.Demo) -> str:
    """What the notebook has saved of a demo's script and of its proofs, the ranks' own lines."""
    files = [demo.main.file, *(proof.file for proof in demo.proofs)]
    book = json.loads((paths.NOTEBOOKS / f"{demo.notebook}.ipynb").read_text(encoding="utf-8"))
    texts = ["".join(o.get("text", "")) for cell in book["cells"] for o in cell.get("outputs", [])]
    runs = [text for text in texts if any(f" workers/{file}" in text for file in files)]
    return re.sub(r"^rank \d+ (│ |  )", "", "".join(runs), flags=re.MULTILINE)


def test_the_guide_points_at_something_in_every_demo():
    assert points().keys() == point_at.PRINTED.keys()
    for name, words in points().items():
        for part in [*point_at.PRINTED[name], *point_at.CLAIMS.get(name, {})]:
            assert part in words, f"{name}: the column no longer says {part!r}"


@pytest.mark.parametrize("name", sorted(point_at.PRINTED.keys() - {"ddp", "experts"}))
def test_a_demo_shows_what_the_guide_points_at(name):
    """As saved; `ddp` and `experts` are not; tests/standin/test_demos.py runs them all."""
    shown = saved_output(demos.find(name))
    assert not point_at.not_shown(name, shown)
    assert not point_at.not_shown(name, shown, point_at.CLAIMS)


def code(cell: str) -> list[str]:
    return re.findall("`([^`]+)`", cell)


def test_every_answer_is_a_section_of_its_notebook():
    titles = {path.name[:2]: headings(path) for path in paths.NOTEBOOKS.glob("*.ipynb")}
    answers = [answer for row in rows("Typical questions") for answer in row[1].split(";")]
    assert len(answers) > 20
    for answer in answers:
        number = answer.strip()[:2]
        for title in re.findall(r"\*([^*]+)\*", answer):
            assert title in titles[number], f"{title!r} is no section of notebook {number}"


def headings(path) -> set[str]:
    """The titles of a notebook's sections, without their numbers."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return set(re.findall(r"^#+ (?:\d+ )?(.+?) *$", text, re.MULTILINE))


@pytest.mark.timeout(120)
def test_the_batch_file_starts_a_torchrun_on_each_node(tmp_path):
    write_program(tmp_path / "scontrol", "#!/bin/sh\nprintf 'node%s\\n' 7 8\n")
    shown = '#!/bin/sh\necho "$OMP_NUM_THREADS, $PET_SHUTDOWN_TIMEOUT s:" "$@"\n'
    write_program(tmp_path / "srun", shown)
    job = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "SLURM_SUBMIT_DIR": str(paths.ROOT),
        "SLURM_JOB_ID": "1234567",
        "SLURM_JOB_NODELIST": "node[7-8]",
        "SLURM_JOB_NUM_NODES": "2",
        "SLURM_CPUS_PER_TASK": "7",
        "RANKS_PER_NODE": "3",
        "COURSE_PYTHON": "python3.11",
    }
    done = subprocess.run(
        ["bash", SBATCH, "workers/a b.py", "--steps", "2"],
        env=os.environ | job,
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.stderr == ""
    assert done.stdout == (
        "2, 100 s: --kill-on-bad-exit=1 --cpus-per-task=7 python3.11 -m torch.distributed.run "
        "--nnodes 2 --nproc-per-node 3 --rdzv-backend c10d --rdzv-endpoint node7:24567 "
        "--rdzv-id 1234567 workers/a b.py --steps 2\n"
    )


@pytest.mark.timeout(120)
def test_the_batch_file_outside_of_slurm_says_what_it_is_for():
    outside = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    done = subprocess.run(["bash", SBATCH], env=outside, capture_output=True, text=True, timeout=20)
    assert done.returncode != 0
    assert "submit this file" in done.stderr


def test_the_pytorchjob_has_one_master_and_pods_alike():
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load((TEMPLATES / "pytorchjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v1", "PyTorchJob")
    assert job["spec"]["nprocPerNode"] == "2"  # a string, by its schema
    master, worker = (job["spec"]["pytorchReplicaSpecs"][kind] for kind in ("Master", "Worker"))
    assert master["replicas"] == 1
    assert master["template"] == worker["template"]
    pod = worker["template"]["spec"]
    (container,) = pod["containers"]
    assert container["name"] == "pytorch"
    assert container["command"][:2] == [".venv/bin/torchrun", "workers/train_text.py"]
    accept(demos.find("transformer"), container["command"][2:], ranks=4)
    assert {volume["name"] for volume in container["volumeMounts"]} == {
        volume["name"] for volume in pod["volumes"]
    }
