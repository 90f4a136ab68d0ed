"""How many ranks a demo starts by itself where there are GPUs."""

import pytest

from tools import demos, gpus, stage
from tools.__main__ import main

DEMOS = demos.find_all()


@pytest.mark.parametrize("name", DEMOS)
def test_on_two_gpus_every_demo_starts_two_ranks_or_says_why_not(name):
    ranks, said = gpus.ranks_for(DEMOS[name], 2)
    assert ranks == 2 or said.startswith(("It uses no GPU: ", "It starts one process"))
    if ranks == 2 < DEMOS[name].main.nproc:
        assert (
            said
            == f"It starts 2 ranks, one for each GPU (-n {DEMOS[name].main.nproc}: on the CPU)."
        )


@pytest.mark.parametrize(
    ("name", "here", "ranks"),
    [
        ("ring", 0, 5),
        ("ring", 1, 5),  # one GPU: all on the CPU, as before
        ("ring", 3, 3),
        ("ring", 8, 5),
        ("fsdp", 2, 2),
        ("fsdp", 3, 2),  # it takes 2, 4 or 6
        ("audit", 2, 4),  # it takes 4 only, over gloo
        ("transformer", 8, 2),
    ],
)
def test_a_demo_starts_a_rank_for_each_gpu_up_to_its_notebooks_number(name, here, ranks):
    assert gpus.ranks_for(DEMOS[name], here)[0] == ranks


@pytest.mark.parametrize(
    ("arguments", "ranks", "said"),
    [
        (["ring"], 2, "It starts 2 ranks, one for each GPU (-n 5: on the CPU).\n"),
        (["ring", "-n", "5"], 5, ""),
        (["transformer"], 2, ""),
        (["audit"], 4, "It uses no GPU: its script asks for gloo"),
    ],
)
def test_the_command_starts_what_fits_the_gpus_unless_told(
    monkeypatch, capsys, arguments, ranks, said
):
    started = []
    monkeypatch.setattr(gpus, "gpus_here", lambda: 2)
    monkeypatch.setattr(stage, "perform", lambda *_, **options: started.append(options) or True)
    assert main(["demo", *arguments]) == 0
    assert [options["nproc"] for options in started] == [ranks]
    out = capsys.readouterr().out
    assert out.startswith(said) if said else out == ""
