"""The Trainer of notebook 08, with its packages and without."""

import pytest

from tests.needs import needs

PACKAGES = ("accelerate", "deepspeed", "transformers")
WITHOUT = f"""
import importlib.util
import runpy

find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name in {PACKAGES} else find_spec(name)
import train_with_trainer
runpy.run_module("train_with_trainer", run_name="__main__")
"""


@needs(modules=PACKAGES)
@pytest.mark.timeout(300)
def test_three_ranks_have_our_losses_with_ddp_and_with_zero_2(launch):
    arguments = ("--deepspeed", "--steps", 5)
    run = launch("train_with_trainer.py", *arguments, nproc=3, timeout=240, stall=120)
    rows = run.ranks[0].reports
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5]
    for row in rows:
        assert row["as ours"] == pytest.approx(row["our loop"], abs=1e-5)
        assert row["ZeRO-2"] == pytest.approx(row["our loop"], abs=1e-5)
    assert abs(rows[2]["Trainer"] - rows[2]["our loop"]) > 1e-4  # its rate has gone down


def test_without_its_packages_one_sentence_says_how_to_install_them(launch, worker):
    run = launch(worker("without_transformers.py", WITHOUT), nproc=2)
    (said,) = run.ranks[0].stdout.splitlines()
    assert said.startswith("not installed: accelerate, transformers. In the course's folder: ")
    assert "pip install" in said
    assert not run.ranks[1].stdout
