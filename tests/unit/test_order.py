"""What is named first depends on no set's order, which another hash seed changes."""

import os
import subprocess
import sys

import pytest

from course_utils import paths

MISMATCH = """
from types import SimpleNamespace
from nbtorchrun.diagnosis.evidence import Evidence

def call(group, signature):
    return SimpleNamespace(group=group, number=1, is_collective=True, signature=signature)

groups = ["dp", "tp", "pp", "cp"]
ranks = [SimpleNamespace(calls=[call(group, rank) for group in groups]) for rank in range(2)]
found = Evidence.differing.func(SimpleNamespace(ranks=ranks))
print([call.group for _, call in found])
"""


@pytest.mark.parametrize(
    ("script", "expected"),
    [(MISMATCH, "['cp', 'cp']")],
    ids=["a mismatch in several groups"],
)
def test_the_same_is_named_with_every_hash_seed(script, expected):
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script],
            cwd=paths.ROOT,
            env=os.environ | {"PYTHONHASHSEED": str(seed), "PYTHONPATH": str(paths.ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(4)
    ]
    said = [each.communicate(timeout=100)[0].partition("\n")[0] for each in started]
    assert all(line.startswith(expected) for line in said), said
