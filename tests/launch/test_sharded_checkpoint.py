"""Notebook 14's checkpoints: bits on any number of ranks, and every damage refused by name."""

import os
import shutil
import signal

import pytest

from course_utils import launch
from course_utils.files import load_worker, write_missing

TENSORS = """
import torch


def tensors(step):
    random = torch.Generator().manual_seed(step)
    made = {}
    for count in (0, 1, 2, 3, 7, 64, 1001):
        made[f"float32 {count}"] = torch.randn(count, generator=random)
        made[f"bytes {count}"] = torch.randint(-128, 128, (count,), generator=random).to(torch.int8)
    for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.complex64, torch.int64,
                  torch.bool, torch.float8_e4m3fn, torch.uint8):
        for shape in ((), (1,), (5, 3), (3, 5, 2), (0, 4), (4, 0)):
            values = torch.randn(shape, generator=random) * 3
            made[f"{dtype} {shape}"] = (values > 0) if dtype == torch.bool else values.to(dtype)
    made["transposed"] = torch.randn(6, 7, generator=random).T
    made["not a number"] = torch.tensor([float("nan"), float("inf"), -0.0, 5e-324]).double()
    return made


def bits(tensor):
    return tensor.reshape(-1).contiguous().view(torch.uint8).tolist()


def equal(one, other):
    return one.shape == other.shape and one.dtype == other.dtype and bits(one) == bits(other)
"""
SAVE = """
import sys
import torch.distributed as dist
from checkpointed import tensors
from nbtorchrun.worker import init
from sharded_checkpoint import save

init()
for step in map(int, sys.argv[2:]):
    save(sys.argv[1], tensors(step), step)
"""
LOAD = """
import sys
import torch
import torch.distributed as dist
from checkpointed import equal, tensors
from nbtorchrun.meter import meter
from nbtorchrun.worker import init, report
from sharded_checkpoint import load, load_shards, saved_step

init()
folder, rank, world = sys.argv[1], dist.get_rank(), dist.get_world_size()
expected = tensors(saved_step(folder))
like = {name: torch.empty_like(value) for name, value in expected.items()}
whole = load(folder, like)
report(wrong=[name for name, value in expected.items() if not equal(whole[name], value)],
       names=list(whole) == list(expected), step=saved_step(folder))
with_rows = {name: value for name, value in expected.items() if value.dim()}
of_rank = {name: torch.tensor_split(value, world)[rank] for name, value in with_rows.items()}
for like in (with_rows, of_rank):
    with meter() as moved:
        mine = load_shards(folder, {n: torch.empty_like(v) for n, v in like.items()})
    report(wrong=[name for name in like if not equal(mine[name], of_rank[name])], names=True,
           step=saved_step(folder))
meta = {name: torch.empty_like(value, device="meta") for name, value in expected.items()}
whole = load(folder, meta)
report(wrong=[name for name in meta if not equal(whole[name], expected[name])], names=True,
       step=saved_step(folder))
"""
SAVE_SHARDS = """
import sys
import torch
import torch.distributed as dist
from checkpointed import tensors
from nbtorchrun.worker import init
from sharded_checkpoint import save_shards

init()
rank, world = dist.get_rank(), dist.get_world_size()
with_rows = {n: v for n, v in tensors(5).items()}
try:
    save_shards(sys.argv[1], {"lonely": torch.zeros(())}, 5)
except ValueError as error:
    assert "lonely" in str(error)
rows = {n: torch.tensor_split(v, world)[rank] for n, v in with_rows.items() if v.dim()}
save_shards(sys.argv[1], rows, 5)
"""
GROUPS = """
import sys
import torch
import torch.distributed as dist
from checkpointed import equal, tensors
from nbtorchrun.worker import init, report
from sharded_checkpoint import load, save

init(ranks=4)
pairs = [dist.new_group([0, 2]), dist.new_group([1, 3])]
number = dist.get_rank() % 2
folder = f"{sys.argv[1]}/{number}"
save(folder, tensors(number), number, pairs[number])
whole = load(folder, tensors(9), pairs[number])
report(equal=all(equal(whole[n], v) for n, v in tensors(number).items()))
try:
    save(folder, {"w": torch.zeros(2 + (dist.get_rank() == 3))}, 3)
except ValueError as error:
    report(said=str(error))
"""


@pytest.fixture
def script(worker):
    write_missing("sharded_checkpoint.py")
    worker("checkpointed.py", TENSORS)
    return worker


def loaded(script, folder, nproc):
    run = launch(script("load_all.py", LOAD), str(folder), nproc=nproc, show=False)
    return [report for rank in run.ranks for report in rank.reports]


def import_fall_back():
    """`fall_back` of the module that `sharded_checkpoint` has imported, whose errors it raises."""
    from checkpoint_files import fall_back  # workers/ is on the path by now

    return fall_back


@pytest.mark.timeout(120)
def test_bits_survive_other_numbers_of_ranks(script, tmp_path):
    saving = script("save_all.py", SAVE)
    for world, others in ((4, (3, 2, 1)), (3, (4, 2)), (1, (3,))):
        folder = tmp_path / str(world)
        launch(saving, str(folder), "1", nproc=world, show=False)
        for nproc in others:
            reports = loaded(script, folder, nproc)
            assert len(reports) == 4 * nproc
            assert all(each == {"wrong": [], "names": True, "step": 1} for each in reports)


@pytest.mark.timeout(120)
def test_every_rank_writes_its_share_and_two_checkpoints_stay(script, module, tmp_path):
    launch(script("save_all.py", SAVE), str(tmp_path), "2", "3", "4", nproc=3, show=False)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files[:2] == ["manifest.json", "manifest_older.json"]
    kept = [f"step_{step}-rank_{rank}_of_3" for step in (3, 4) for rank in range(3)]
    assert [name.rpartition("-")[0] for name in files[2:]] == kept
    sizes = [path.stat().st_size for path in tmp_path.glob("*.bin")]
    assert max(sizes) < 1.2 * min(sizes)
    assert {each["step"] for each in loaded(script, tmp_path, 2)} == {4}
    flip(next(tmp_path.glob("step_4-*.bin")))
    import_fall_back()(tmp_path)
    reports = loaded(script, tmp_path, 2)
    assert {each["step"] for each in reports} == {3}
    assert all(each["wrong"] == [] for each in reports)
    with pytest.raises(module.CheckpointError, match=r"manifest_older\.json is missing"):
        import_fall_back()(tmp_path)


def test_a_torn_manifest_takes_no_older_checkpoint_s_place(module, tmp_path):
    import torch

    for step in (1, 2):
        module.save(tmp_path, {"w": torch.full((3,), float(step))}, step)
    truncate(tmp_path / "manifest.json")
    module.save(tmp_path, {"w": torch.zeros(3)}, 3)
    import_fall_back()(tmp_path)
    assert module.load(tmp_path, {"w": torch.empty(3)})["w"].tolist() == [1, 1, 1]


@pytest.mark.timeout(120)
def test_rows_that_each_rank_holds(script, tmp_path):
    launch(script("save_rows.py", SAVE_SHARDS), str(tmp_path), nproc=4, show=False)
    code = LOAD.replace(
        "tensors(saved_step(folder))", "{n: v for n, v in tensors(5).items() if v.dim()}"
    )
    for nproc in (3, 2, 1):
        run = launch(script("load_rows.py", code), str(tmp_path), nproc=nproc, show=False)
        assert all(each["wrong"] == [] for rank in run.ranks for each in rank.reports)


@pytest.mark.timeout(120)
def test_groups_save_apart_and_unlike_ranks_are_refused(script, tmp_path):
    run = launch(script("save_groups.py", GROUPS), str(tmp_path), nproc=4, show=False)
    for rank in run.ranks:
        assert rank.reports == [
            {"equal": True},
            {"said": "rank 3 saves other names, dtypes or shapes than rank 0"},
        ]


@pytest.fixture
def module(script):
    return load_worker("sharded_checkpoint.py")


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path):
    path.write_bytes(b"")


def grow(path):
    path.write_bytes(path.read_bytes() + b"\0")


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGES = {
    "torn": truncate,
    "empty": empty,
    "longer": grow,
    "one bit": flip,
    "missing": lambda path: path.unlink(),
}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_refused_by_name(script, module, tmp_path, damage):
    launch(script("save_all.py", SAVE), str(tmp_path / "good"), "1", nproc=3, show=False)
    like = load_worker("checkpointed.py").tensors(1)
    files = sorted(path.name for path in (tmp_path / "good").iterdir())
    assert len(files) == 4
    for name in files:
        folder = shutil.copytree(tmp_path / "good", tmp_path / name)
        DAMAGES[damage](folder / name)
        for call in (module.load, module.load_shards):
            with pytest.raises(module.CheckpointError, match=name):
                call(folder, {n: v for n, v in like.items() if v.dim()})


@pytest.mark.timeout(120)
def test_all_ranks_refuse_what_one_rank_has_found(script, module, tmp_path):
    launch(script("save_all.py", SAVE), str(tmp_path), "1", nproc=3, show=False)
    flip(sorted(tmp_path.glob("*.bin"))[1])
    code = LOAD.replace("whole = load(folder, like)", "")
    code = code[: code.index("report(wrong")] + (
        "try:\n    load(folder, like)\nexcept Exception as error:\n"
        "    report(kind=type(error).__name__, said=str(error))\n"
    )
    run = launch(script("load_torn.py", code), str(tmp_path), nproc=2, show=False)
    for rank in run.ranks:
        (found,) = rank.reports
        assert found["kind"] == "CheckpointError"
        assert sorted(tmp_path.glob("*.bin"))[1].name in found["said"]


@pytest.mark.timeout(120)
def test_files_of_another_step_are_refused(script, module, tmp_path):
    saving = script("save_all.py", SAVE)
    for step in (1, 2):
        launch(saving, str(tmp_path / str(step)), str(step), nproc=3, show=False)
    like = load_worker("checkpointed.py").tensors(1)
    one, two = (sorted((tmp_path / step).glob("*.bin")) for step in "12")
    for older, newer in zip(one, two, strict=True):
        kept = newer.read_bytes()
        newer.write_bytes(older.read_bytes())
        with pytest.raises(module.CheckpointError, match=f"{newer.name} is of step 1, not of"):
            module.load(tmp_path / "2", like)
        newer.write_bytes(kept)
    shutil.copy(tmp_path / "1" / "manifest.json", tmp_path / "2")
    with pytest.raises(module.CheckpointError, match=f"{one[0].name} is missing"):
        module.load(tmp_path / "2", like)


def test_other_tensors_are_refused(module, tmp_path):
    import torch

    module.save(tmp_path, {"w": torch.zeros(3, 2), "b": torch.tensor(1.0)}, 7)
    assert module.saved_step(tmp_path) == 7
    assert module.saved_step(tmp_path / "elsewhere") is None
    for like, said in (
        ({"v": torch.zeros(3, 2)}, "no tensor 'v'"),
        ({"w": torch.zeros(3, 2).half()}, "float32, not torch.float16"),
        ({"w": torch.zeros(2, 3)}, r"\[3, 2\], not \[2, 3\]"),
    ):
        for call in (module.load, module.load_shards):
            with pytest.raises(module.CheckpointError, match=said):
                call(tmp_path, like)
    with pytest.raises(module.CheckpointError, match="no rows"):
        module.load_shards(tmp_path, {"b": torch.tensor(0.0)})
    with pytest.raises(module.CheckpointError, match=r"manifest\.json is missing"):
        module.load(tmp_path / "elsewhere", {})
    assert module.load(tmp_path, {}) == {}


def test_a_disk_that_is_full_is_an_error_and_the_older_checkpoint_stays(
    module, tmp_path, monkeypatch
):
    import torch

    module.save(tmp_path, {"w": torch.ones(3)}, 1)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(module.CheckpointError, match="No space left"):
        module.save(tmp_path, {"w": torch.zeros(3)}, 2)
    monkeypatch.undo()
    assert module.load(tmp_path, {"w": torch.empty(3)})["w"].tolist() == [1, 1, 1]
    module.save(tmp_path, {"w": torch.zeros(3)}, 3)
    assert not list(tmp_path.glob("*.part"))
    assert len(list(tmp_path.iterdir())) == 4  # steps 1 and 3, and a manifest of each


@pytest.mark.parametrize("renamed", [0, 1, 2])
def test_a_save_killed_before_any_of_its_renames_leaves_two_checkpoints(module, tmp_path, renamed):
    import torch

    for step in (10, 15):
        module.save(tmp_path, {"w": torch.full((3,), float(step))}, step)
    if not (pid := os.fork()):
        rename, done = os.replace, []

        def replace(draft, path):  # the file of the only rank, the manifest, the older one
            if len(done) == renamed:
                os.kill(os.getpid(), signal.SIGKILL)
            done.append(rename(draft, path))

        os.replace = replace
        module.save(tmp_path, {"w": torch.full((3,), 20.0)}, 20)
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    newest, older = [(15, 10), (15, 10), (20, 10)][renamed]
    assert module.load(tmp_path, {"w": torch.empty(3)})["w"].tolist() == 3 * [newest]
    import_fall_back()(tmp_path)
    assert module.load(tmp_path, {"w": torch.empty(3)})["w"].tolist() == 3 * [older]
