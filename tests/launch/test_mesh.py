"""The contract of mesh.py (notebook 15), and one training step on several meshes."""

import pytest

from course_utils import load_worker

Mesh = load_worker("mesh.py").Mesh
SIZES = [(2, 1, 1, 2), (3, 1, 1, 1), (1, 2, 2, 1), (2, 3, 1, 1), (2, 2, 2, 1)]
GROUPS = """
import torch
import torch.distributed as dist
from mesh import Mesh
from nbtorchrun.worker import init, report

init()
mesh, rank = Mesh({sizes}), dist.get_rank()
for axes in (("dp",), ("pp",), ("cp",), ("tp",), ("dp", "cp")):
    group = mesh.group(*axes)
    members = dist.get_process_group_ranks(group)
    assert rank in members
    here = mesh.coordinate()
    for other in range(dist.get_world_size()):
        place = mesh.coordinate(other)
        same = all(getattr(place, a) == getattr(here, a) for a in mesh.sizes if a not in axes)
        assert (other in members) == same, (axes, members)
    dist.all_reduce(total := torch.tensor(rank), group=group)
    assert total == sum(members)
    for axis in axes[:1] if len(axes) == 1 else ():
        assert dist.get_rank(group) == getattr(here, axis)
report(done=True)
"""


def test_a_mesh_without_ranks_answers_for_machines_that_are_not_there():
    mesh = Mesh(dp=16, pp=4, cp=1, tp=8)
    assert mesh.coordinate(511) == (15, 3, 0, 7)
    assert mesh.coordinate(9) == (0, 1, 0, 1)
    assert mesh.groups("tp")[0] == list(range(8))
    assert mesh.groups("dp")[0] == list(range(0, 512, 32))
    assert len(mesh.groups("dp", "cp")) == 32


@pytest.mark.parametrize("sizes", [(0, 1, 1, 1), (2, -1, 1, 1)])
def test_an_axis_without_ranks_is_refused(sizes):
    with pytest.raises(ValueError, match="at least one rank"):
        Mesh(*sizes)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_groups_hold_the_ranks_that_agree_in_all_other_coordinates(worker, launch, sizes):
    count = sizes[0] * sizes[1] * sizes[2] * sizes[3]
    run = launch(worker("case.py", GROUPS.format(sizes=", ".join(map(str, sizes)))), nproc=count)
    assert [each["done"] for each in run.reports] == [True] * count


def test_a_mesh_of_another_size_than_the_job_is_refused_on_every_rank(worker, launch):
    script = GROUPS.replace("Mesh({sizes})", "Mesh(dp=4)").replace(
        "mesh, rank", "refused = False\ntry:\n    Mesh(dp=4)\nexcept ValueError as error:\n"
        "    refused = 'has 4 places for 2 ranks' in str(error)\nreport(refused=refused)\n"
        "raise SystemExit\nmesh, rank",
    )  # fmt: skip
    run = launch(worker("case.py", script), nproc=2)
    assert [each["refused"] for each in run.reports] == [True] * 2


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("nproc", "meshes"),
    [
        (2, ("2,1,1,1", "1,2,1,1", "1,1,2,1", "1,1,1,2")),
        (3, ("3,1,1,1", "1,3,1,1", "1,1,3,1", "1,1,1,3")),
        (4, ("2,1,1,2", "4,1,1,1", "1,1,2,2")),
    ],
)
def test_a_step_on_a_mesh_is_the_step_of_one_process(launch, nproc, meshes):
    run = launch("audit_layouts.py", *meshes, "--batch", "13", nproc=nproc)
    (told,) = [each for each in run.reports if "claim" in each]
    assert told["worst"] <= told["bound"]


@pytest.mark.parametrize("average", ["dp", "cp", "tp"])
def test_the_audit_sees_gradients_averaged_over_too_few_or_other_ranks(launch, average):
    run = launch("audit_layouts.py", "2,1,2,1", "--average", average, nproc=4)
    assert run.reports[0]["worst"] > run.reports[0]["bound"]
    assert "missing all-reduce" in run.ranks[0].stdout
