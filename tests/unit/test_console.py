"""What a terminal shows of a failed run: a card as wide as the terminal, each fact once."""

from types import SimpleNamespace

import pytest
from rich.console import Console

from nbtorchrun.diagnosis.verdict import Line, Row, Says, Verdict, fact
from nbtorchrun.display import console

LOG = "rank_1/stderr.log"
SCRIPT = "x = torch.ones(1000)  # " + "a comment that is longer than eighty columns " * 3


@pytest.fixture(params=[80, 120])
def shown(request, monkeypatch, capsys):
    """Show a verdict on a terminal of some width; give its rows without the frame."""

    def show(**told):
        wide = Console(width=request.param, force_terminal=True, color_system=None)
        monkeypatch.setattr(console, "open_console", lambda: wide)
        console.show_failure(SimpleNamespace(verdict=Verdict(**told), dir="/runs/1"))
        rows = capsys.readouterr().out.split("\n")
        card = [row for row in rows if row.startswith("│")]
        assert {len(row) for row in card} == {request.param}
        return [row.strip("│ ") for row in card]

    return show


def test_ranks_that_wait_alike_share_a_line_and_the_late_one_stands_above_its_code(shown):
    waits = "in all_reduce #2 (workers/s.py, line 27)"
    ranks = [f"rank 0 waits {waits}", "rank 1 is at workers/s.py, line 26", f"rank 2 waits {waits}"]
    rows = shown(
        kind="hung",
        title="the run hangs: for 5 s no rank computed, printed or reported",
        finding="rank 1 never reached all_reduce #2; ranks 0 and 2 wait for it",
        lines=(
            *(Line(Says.RANK, words) for words in ranks),
            Line(Says.AGAIN, "rank 1 never got to where the others are waiting."),
            Line(Says.PLACE, ">   26  time.sleep(1000)"),
        ),
        rank=1,
        rows=(Row((1,), "", "is at workers/s.py, line 26"), Row((0, 2), "", f"wait {waits}")),
    )
    assert rows == [
        "rank 1 never reached all_reduce #2; ranks 0 and 2 wait for it",
        "the run hangs: for 5 s no rank computed, printed or reported",
        f"ranks 0 and 2 wait {waits}",
        "rank 1 is at workers/s.py, line 26",
        ">   26  time.sleep(1000)",
    ]


def test_words_are_wrapped_and_code_is_cropped(shown):
    said = "word " * 40
    rows = shown(
        kind="raised",
        title="rank 1 raised ValueError: no",
        lines=(
            Line(Says.PLACE, "workers/r.py, line 2"),
            Line(Says.PLACE, f">    2  {SCRIPT}"),
            fact(said),
            Line(Says.LOG, "Its full traceback: ", LOG),
        ),
        rank=1,
    )
    code = [row for row in rows if row.startswith(">")]
    assert len(code) == 1
    assert code[0].endswith("…")
    assert " ".join(row for row in rows if row.startswith("word")) == said.strip()
    assert rows[-1] == f"Its full traceback: {LOG}"
