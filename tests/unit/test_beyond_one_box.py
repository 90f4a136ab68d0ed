"""docs/beyond-one-box.md and its templates: each has the fields that its program reads."""

import os
import re
import subprocess
from collections.abc import Iterator

import pytest
import yaml

from course_utils import cells, paths
from tests.demo_calls import accept
from tests.unit.run_sh.checkout import write_program
from tools import demos

TEMPLATES = paths.ROOT / "docs" / "templates"
PAGE = (paths.ROOT / "docs" / "beyond-one-box.md").read_text(encoding="utf-8")


def template(name: str) -> dict:
    return yaml.safe_load((TEMPLATES / name).read_text(encoding="utf-8"))


def check_training(words: list[str]) -> None:
    """The end of a command is a worker file of the course, with options that it has."""
    place = next(place for place, word in enumerate(words) if word.endswith(".py"))
    file = words[place].rpartition("/")[2]
    assert file in cells.sources()
    assert file == demos.find("transformer").main.file
    accept(demos.find("transformer"), words[place + 1 :], ranks=4)


def test_the_trainjob_has_the_fields_of_its_schema():
    job = template("trainjob.yaml")
    assert (job["apiVersion"], job["kind"]) == ("trainer.kubeflow.org/v1alpha1", "TrainJob")
    assert set(job["spec"]) == {"runtimeRef", "runtimePatches", "trainer"}
    assert job["spec"]["runtimeRef"] == {"name": "torch-distributed"}
    trainer = job["spec"]["trainer"]
    known = {"args", "command", "env", "image", "numNodes", "numProcPerNode", "resourcesPerNode"}
    assert set(trainer) <= known
    assert (trainer["numNodes"], trainer["numProcPerNode"]) == (2, 2)  # numbers, no strings
    assert all(isinstance(word, str) for word in trainer["command"])
    assert trainer["command"][0] == "/course/.venv/bin/torchrun"
    check_training(trainer["command"])
    # The runtime refuses variables that it sets itself.
    assert not any(variable["name"].startswith("PET_") for variable in trainer["env"])


@pytest.mark.parametrize("name", ["trainjob.yaml", "pytorchjob.yaml"])
def test_a_pod_has_shared_memory_for_nccl_and_data_loaders(name):
    pods = list(pods_in(template(name)))
    assert pods
    for pod in pods:
        (container,), (volume,) = pod["containers"], pod["volumes"]
        assert container["volumeMounts"] == [{"name": volume["name"], "mountPath": "/dev/shm"}]
        assert volume["emptyDir"] == {"medium": "Memory", "sizeLimit": "1Gi"}


def pods_in(part: object) -> Iterator[dict]:
    """Whatever has containers, at any depth."""
    if isinstance(part, dict):
        if "containers" in part:
            yield part
        part = list(part.values())
    for each in part if isinstance(part, list) else ():
        yield from pods_in(each)


def test_skypilots_task_has_the_fields_of_its_reference():
    task = template("skypilot.yaml")
    assert set(task) == {"name", "workdir", "num_nodes", "resources", "setup", "run"}
    assert set(task["resources"]) == {"cpus", "memory", "disk_size"}
    assert (task["workdir"], task["num_nodes"]) == (".", 2)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("gpus", "ranks"), [("0", "2"), ("4", "4")])
def test_skypilots_machines_meet_at_the_first(tmp_path, gpus, ranks):
    write_program(tmp_path / ".venv/bin/torchrun", '#!/bin/sh\necho "$OMP_NUM_THREADS:" "$@"\n')
    machine = {
        "SKYPILOT_NODE_IPS": "10.0.0.7\n10.0.0.8",
        "SKYPILOT_NUM_NODES": "2",
        "SKYPILOT_NODE_RANK": "1",
        "SKYPILOT_NUM_GPUS_PER_NODE": gpus,
    }
    done = subprocess.run(
        ["bash", "-euc", template("skypilot.yaml")["run"]],
        cwd=tmp_path,
        env=os.environ | machine,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.stderr == ""
    assert done.stdout == (
        f"2: --nnodes 2 --node-rank 1 --nproc-per-node {ranks} --master-addr 10.0.0.7 "
        "--master-port 29500 workers/train_text.py --steps 200\n"
    )
    check_training(done.stdout.split())


@pytest.mark.timeout(60)
@pytest.mark.parametrize("has_python", [True, False])
def test_skypilots_machines_are_set_up_with_a_new_enough_python(tmp_path, has_python):
    notes = '#!/bin/sh\necho "${0##*/}" "$@" >>"$CALLS"\n'
    write_program(tmp_path / "run.sh", notes)
    write_program(tmp_path / "bin/uv", notes)
    if has_python:
        write_program(tmp_path / "bin/python3.12", notes)
    subprocess.run(
        ["/bin/bash", "-euc", template("skypilot.yaml")["setup"]],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}/bin", "HOME": str(tmp_path), "CALLS": str(tmp_path / "calls")},
        check=True,
        timeout=30,
    )
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == ["uv python install 3.12"] * (not has_python) + [
        "run.sh setup",
        "run.sh extract",
    ]


def test_the_page_names_templates_and_commands_that_are_there():
    for name in re.findall(r"\(templates/([\w.]+)\)", PAGE):
        assert (TEMPLATES / name).is_file(), name
    commands = re.findall(r"^(?:sbatch|kubectl|sky) .*?(docs/\S+)(.*?)(?:#|$)", PAGE, re.MULTILINE)
    assert len(commands) == 3
    for file, rest in commands:
        assert (paths.ROOT / file).is_file(), file
        if rest.strip():
            check_training(rest.split())
