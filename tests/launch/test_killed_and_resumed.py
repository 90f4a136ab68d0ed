"""Notebook 14: saves that are killed, and a training resumed on another number of ranks."""

import pytest
import torch

from course_utils import LaunchError, launch, paths
from course_utils.files import load_worker, write_missing


@pytest.mark.timeout(600)
def test_200_kills_at_random_moments_of_a_save_lose_nothing():
    write_missing("kill_saves.py")
    kills = ("--kills", 200, "--seed", 1)
    run = launch("kill_saves.py", *kills, nproc=1, timeout=540, show=False, check=False)
    assert run.ok, f"{run.verdict}\n{run.ranks[0].stderr}"
    lost = [report["lost"] for report in run.ranks[0].reports]
    assert len(lost) == 200
    assert set(lost) <= {0, -1}, lost  # the older checkpoint, or the new one
    assert lost.count(0) >= 20  # kills before the end; on a busy machine few come after it


@pytest.mark.timeout(120)
def test_a_rank_that_outlives_another_by_much_leaves_the_checkpoint_alone(worker):
    write_missing("kill_saves.py")
    script, moment = (paths.workers() / "kill_saves.py").read_text(), "time.sleep(0.002)"
    assert moment in script
    slow = worker("kill_slowly.py", script.replace(moment, "time.sleep(0.1)"))
    run = launch(slow, "--kills", 40, nproc=1, timeout=100, show=False)
    lost = [report["lost"] for report in run.ranks[0].reports]
    assert len(lost) == 40
    assert set(lost) <= {0, -1}, lost


@pytest.mark.timeout(120)
def test_the_kills_find_what_a_save_over_the_old_file_loses():
    write_missing("kill_torch_save.py")
    run = launch("kill_torch_save.py", nproc=1, timeout=100, show=False)
    lost = [report["lost"] for report in run.ranks[0].reports]
    assert len(lost) == 40
    assert None in lost


@pytest.mark.timeout(120)
def test_a_draft_that_is_renamed_loses_nothing():
    write_missing("kill_torch_save.py")
    run = launch("kill_torch_save.py", "draft", nproc=1, timeout=100, show=False)
    lost = [report["lost"] for report in run.ranks[0].reports]
    assert len(lost) == 40
    assert set(lost) <= {0, -1}, lost


@pytest.mark.timeout(120)
def test_another_number_of_ranks_resumes_if_it_forgets_the_random_states(tmp_path):
    write_missing("survivor.py")
    training = ("survivor.py", "--folder", str(tmp_path), "--save-every", 6, "--steps")
    launch(*training, 6, nproc=3, show=False)
    with pytest.raises(LaunchError, match=r"random\.states"):
        launch(*training, 9, nproc=2, show=False)
    run = launch(*training, 9, "--forget", "random", nproc=2, show=False)
    assert run.ranks[0].stdout.startswith("resumed at step 6\n")
    assert run.series("step", rank=0) == [7, 8, 9]


def test_a_state_that_went_wrong_equals_no_other():
    write_missing("survivor.py")
    fingerprint = load_worker("survivor.py").fingerprint
    assert fingerprint({"weight": torch.ones(2)}) != fingerprint({"weight": torch.zeros(2)})
    with pytest.raises(ValueError, match="weight holds not-a-number"):
        fingerprint({"weight": torch.tensor([1.0, torch.nan])})
