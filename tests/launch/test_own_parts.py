"""Notebook 07 trains over the parts that lie in `workers/`: a student's own, if they are there."""

import subprocess
import sys

import pytest

from course_utils import (
    files,
    paths,
)

EDITS = {
    "ring": (
        "ring_allreduce.py",
        """
right = ring_all_reduce


def ring_all_reduce(tensor, op=SUM, group=None):
    print("mine")
    right(tensor, op, group)
    tensor.mul_(2)
""",
    ),
    "ddp": (
        "ddp_scratch.py",
        """
class DDP(DDP):
    def forward(self, *inputs):
        print("mine")
        with self.no_sync():
            return super().forward(*inputs)
""",
    ),
    "fsdp": (
        "fsdp_scratch.py",
        """
class FSDP(FSDP):
    def forward(self, *inputs):
        print("mine")
        return 2 * super().forward(*inputs)
""",
    ),
    "tensor": (
        "tensor_parallel.py",
        """
class ParallelTransformer(ParallelTransformer):
    def forward(self, tokens):
        print("mine")
        return 2 * super().forward(tokens)
""",
    ),
}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home of this test's own, so that `clean` takes nothing from others."""
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))


def test_edited_parts_are_trained_over_until_clean_brings_the_courses_back(launch):
    def train(part):
        run = launch("own_parts.py", "--part", part)
        return run.series("losses")[0], [rank.stdout.count("mine") for rank in run.ranks]

    courses = {}
    for part, (name, edit) in EDITS.items():
        losses, said = train(part)
        assert said == [0, 0]
        path = paths.workers() / name
        courses[name] = path.read_text()
        path.write_text(courses[name] + edit)
        changed, said = train(part)
        assert min(said) >= len(losses)  # on every rank, in every step
        assert abs(changed[-1] - losses[-1]) > 1e-6

    subprocess.run([sys.executable, "-m", "tools", "clean"], check=True, cwd=paths.ROOT, timeout=60)
    assert not (paths.home() / "workers").exists()
    _, said = train("ring")
    assert said == [0, 0]
    files.write_missing(*courses)
    assert {name: (paths.workers() / name).read_text() for name in courses} == courses
