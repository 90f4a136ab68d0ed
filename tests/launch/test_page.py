"""What an open page is sent while a run lives and when it failed; what is saved without one."""

import re
import time

import pytest

from course_utils import paths
from nbtorchrun.diagnosis.calls import Place
from nbtorchrun.diagnosis.verdict import Line, Says, Verdict, excerpt, fact
from nbtorchrun.display import cards
from tests.launch.page import DEADLINE, html, seen_all, text

# Rank 1 waits for rank 0, which reports until the test has seen enough.
WATCHED = f"""
import sys, time
import torch.distributed as dist
from nbtorchrun.worker import init, report
from pathlib import Path
init()
print("rank", dist.get_rank(), "is here")
end = time.monotonic() + {DEADLINE}
if dist.get_rank() == 0:
    for step in range(100_000):
        report(step=step, total=100_000, loss=1 / (1 + step))
        time.sleep(0.05)
        if Path(sys.argv[1]).exists() or time.monotonic() > end:
            break
dist.barrier()
"""


@pytest.fixture(autouse=True)
def no_rank_is_left(no_rank_of_the_page_is_left):
    """As in all tests; the kernel's agent leads a group too, and is no rank."""


def test_lanes_live_in_one_output_that_becomes_the_card_of_the_finished_run(page, worker, tmp_path):
    script = worker("watched.py", WATCHED)
    enough = tmp_path / "enough"
    messages = page.run(
        f'run = launch("{script}", r"{enough}", timeout={DEADLINE})',
        until=seen_all(
            '<section class="course-lane" data-rank="0" data-state="running"',
            '<section class="course-lane" data-rank="1" data-state="waiting"',
            "waits in barrier #1",
            "rank 1 is here",
            'class="course-progress"',
            'class="course-curve"',
            " of 100000   loss 0.",
        ),
        then=enough.touch,
    )
    shown = [message for message in messages if "data" in message["content"]]
    assert [message["msg_type"] for message in shown[:2]] == ["display_data", "update_display_data"]
    assert {message["msg_type"] for message in shown[1:]} == {"update_display_data"}
    assert len({message["content"]["transient"]["display_id"] for message in shown}) == 1
    card = shown[-1]["content"]["data"]
    assert re.search(
        r"</i> 2 ranks · gloo · cpu · ok · \d+(\.\d)? s · loss 0\.\d+</header>", card["text/html"]
    )
    assert "rank 1 is here" in card["text/html"]
    assert "<polyline" in card["text/html"]
    assert "course-lane" not in card["text/html"].partition("</style>")[2]
    assert card["text/plain"].splitlines()[1:] == [
        "2 ranks · gloo · cpu · ok",
        "rank 0 │ rank 0 is here",
        "rank 1 │ rank 1 is here",
    ]
    assert text(messages) == ""


MANY = "for i in range(10): print('line', i)\n"


def test_of_a_finished_run_a_page_has_a_card_and_what_is_saved_is_plain(page, worker):
    source = f'run = launch("{worker("many.py", MANY)}", timeout={DEADLINE})'
    (*_, card), saved = page.run(source), page.run(source, cell=None)
    assert 'class="course-card" data-kind="✓"' in html(card)
    assert html(card).count("<summary>4 lines before these</summary>") == 2
    assert {message["msg_type"] for message in saved} == {"stream"}
    assert text(saved) == card["content"]["data"]["text/plain"] + "\n"


def test_the_first_launch_says_at_once_that_torch_is_being_started(page, worker):
    script = worker("first.py", "print('here')\n")
    close = "from nbtorchrun.launcher import client; client.close_kept_agent()\n"
    began = time.monotonic()
    first = []

    def look(message) -> bool:
        if "starting torch, once per notebook" in html(message) and not first:
            first.append(time.monotonic() - began)
        return False

    messages = page.run(f'{close}run = launch("{script}", timeout={DEADLINE})', until=look)
    assert first
    assert messages[0]["msg_type"] == "display_data"
    assert "2 ranks · ok" in html(messages[-1])  # in place of it
    saved = page.run(f'{close}run = launch("{script}", timeout={DEADLINE})', cell=None)
    assert {message["msg_type"] for message in saved} == {"stream"}


def said(messages):
    """What stays of a cell's outputs: neither those of a living run, nor one that was folded."""
    lives = [message for message in messages if 'class="course-run' in html(message)]
    places = {message["content"]["transient"]["display_id"] for message in lives}
    return [
        each
        for each in messages
        if each["content"].get("transient", {}).get("display_id") not in places
    ]


FAILING = "import os\nif os.environ['RANK'] == '1':\n    raise ValueError('<as asked>')\n"


def test_an_uncaught_failure_is_a_card_and_a_title(page, worker):
    script = worker("failing.py", FAILING)
    error, card = said(page.run(f'launch("{script}", timeout={DEADLINE})'))
    card = html(card)
    assert 'class="course-card" data-kind="raised"' in card
    assert "rank 1 raised ValueError: &lt;as asked&gt;</header>" in card
    assert "<b>&gt;    3      raise ValueError(&#x27;&lt;as asked&gt;&#x27;)</b>" in card
    assert card.count("os.environ") == 1  # the excerpt, and not the text's own copy of it too
    assert card.count("<details>") == 2
    assert "Traceback" in card
    assert error["content"]["traceback"] == ["rank 1 raised ValueError: <as asked>"]
    assert "failing.py, line 3" in error["content"]["evalue"]


@pytest.mark.parametrize("key", ["cellId", "colab"], ids=["JupyterLab", "Colab"])
def test_a_verdict_is_a_card_on_a_page_alone(page, worker, key):
    script = worker("failing.py", FAILING)
    source = f'launch("{script}", timeout={DEADLINE}, check=False, show=False).verdict'
    (watched,), (saved,) = said(page.run(source, key=key)), page.run(source, cell=None)
    assert 'class="course-card" data-kind="raised"' in html(watched)
    assert set(saved["content"]["data"]) == {"text/plain"}


def test_a_run_that_shows_nothing_is_a_line_that_counts_its_seconds(page, worker, tmp_path):
    enough = tmp_path / "enough"
    script = worker("watched.py", WATCHED)
    source = f'launch("{script}", r"{enough}", nproc=3, timeout={DEADLINE}, show=False)'
    script = worker("many.py", MANY)
    source += f'\nlaunch("{script}", nproc=2, show=False);'
    sent = page.run(source, until=seen_all("<p>3 ranks · 1 s</p>"), then=enough.touch)
    assert {message["msg_type"] for message in sent} == {"display_data", "update_display_data"}
    assert len({message["content"]["transient"]["display_id"] for message in sent}) == 1
    assert any(re.search("<p>3 ranks · gloo · cpu · ok · [^<]* s</p>", html(m)) for m in sent)
    assert re.search("<p>run 2 · 2 ranks · ok · [^<]* s</p>", html(sent[-1]))
    assert "line" not in html(sent[-1]).partition("<p>")[2]  # of what the ranks printed
    assert page.run(source.splitlines()[1], cell=None) == []


@pytest.mark.parametrize("written", ["run.verdict", 'f"so:\\n{run.verdict}\\n"'])
def test_a_verdict_that_a_cell_prints_is_a_card(page, worker, written):
    script = worker("failing.py", FAILING)
    source = f'run = launch("{script}", check=False, show=False)\nprint({written})\nprint("and on")'
    *before, card, after = said(page.run(source))
    assert text(before) == "so:\n" * written.startswith("f")
    assert 'class="course-card" data-kind="raised"' in html(card)
    assert text([after]) == "and on\n"
    saved = page.run(source, cell=None)
    assert {message["msg_type"] for message in saved} == {"stream"}
    assert "failing.py, line 3" in text(saved)


def test_a_failed_run_that_is_returned_is_its_card_once(page, worker):
    script = worker("failing.py", FAILING)
    source = f'run = launch("{script}", check=False)\nprint(run.verdict)'
    (card,) = said(page.run(source))
    assert 'class="course-card" data-kind="raised"' in html(card)
    (again,) = page.run("print(run.verdict)")
    assert 'class="course-card" data-kind="raised"' in html(again)


@pytest.mark.parametrize("after", [[], [Line(Says.LOG, "Its last output: ", "a log")]])
def test_a_card_has_the_lines_of_the_script_once_wherever_its_text_has_them(worker, after):
    place = Place(str(paths.workers() / worker("ends.py", "begin()\nleave()\n")), 2)
    lines = (fact("rank 0 waited"), *excerpt(place), *after)
    card = cards.failure(Verdict("exited", "rank 1 left", lines, 1, place.file, place.line))
    assert card.count("leave()") == card.count("<b>") == card.count("rank 0 waited") == 1
    assert card.count("Its last output") == len(after)


def test_without_a_page_the_whole_verdict_is_the_error(page, worker):
    script = worker("failing.py", FAILING)
    *block, error = page.run(f'launch("{script}", timeout={DEADLINE})', cell=None)
    assert {message["msg_type"] for message in block} == {"stream"}
    assert error["content"]["traceback"] == [error["content"]["evalue"]]
    assert "failing.py, line 3" in error["content"]["evalue"]


HANGS = """
import time
import torch.distributed as dist
from nbtorchrun.worker import init
init()
print("up", flush=True)
if dist.get_rank() == 1:
    time.sleep(1000)
dist.barrier()
"""


def test_a_run_that_is_stopped_by_hand_leaves_its_verdict_as_a_card(page, worker):
    script = worker("hangs.py", HANGS)
    source = f"%torchrun --timeout {DEADLINE} --as stopped {script.removeprefix('workers/')}"
    sent = page.run(
        source,
        until=seen_all("waits in barrier #1"),
        then=page.manager.interrupt_kernel,
    )
    error, card = said(sent)
    title = (
        r"you stopped the run after \d+ s: rank 1 had not reached barrier #1; rank 0 waits for it"
    )
    assert re.fullmatch(title, "".join(error["content"]["traceback"]))
    assert 'data-kind="stopped"' in html(card)
    assert re.search(f"{title}</header>", html(card))
    assert "waits in barrier #1 (workers/hangs.py, line 9)" in html(card)
    assert html(card).count("you stopped the run after") == 1
    assert "its ranks have ended" in error["content"]["evalue"]
    assert "<pre>up</pre>" in html(card)
    assert "'stopped'" in str(page.run("stopped.verdict.kind")[0]["content"]["data"])


def test_the_card_of_a_hang_says_each_fact_once(page, worker):
    script = worker("hangs.py", HANGS)
    source = f'launch("{script}", nproc=4, stall=2, check=False, show=False).verdict'
    (card,) = said(page.run(source))
    told = html(card).partition("</style>")[2]
    assert "rank 1 never reached barrier #1; ranks 0, 2 and 3 wait for it</header>" in told
    assert told.count("wait in barrier #1 (workers/hangs.py, line 9)") == 1  # of three ranks
    assert told.count("time.sleep(1000)") == 1
    assert "never got to where" not in told
    culprit = told.partition('class="course-row"')[2].partition("<details>")[0]
    assert ">rank 1</span> is at workers/hangs.py, line 8" in culprit
    assert "<pre>up</pre>" in culprit  # open


def test_the_rank_that_failed_first_and_the_others_are_told_apart(page, worker):
    script = worker("failing.py", FAILING + "import time\ntime.sleep(1000)\n")
    source = f'launch("{script}", nproc=3, timeout={DEADLINE}, check=False, show=False).verdict'
    (card,) = said(page.run(source))
    assert ">rank 1</span> failed first · exit status 1" in html(card)
    assert "rank 2</span> ended as a consequence" in html(card)


KILLED = """
import os, signal
import torch.distributed as dist
from nbtorchrun.worker import init
init()
dist.barrier()
if dist.get_rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
dist.barrier()
"""


def test_where_a_killed_rank_was_is_called_its_last_call_seen(page, worker):
    source = f'launch("{worker("killed.py", KILLED)}", nproc=2, check=False, show=False).verdict'
    (card,) = said(page.run(source))
    assert "<small>last call seen: workers/killed.py, line 6</small>" in html(card)


def test_a_dollar_in_a_card_is_no_formula(page, worker):
    script = worker("dollar.py", "raise ValueError('$RANK and $WORLD_SIZE')\n")
    source = f'launch("{script}", nproc=1, check=False, show=False).verdict'
    said = "".join(map(html, page.run(source)))  # a slow run has a line of its own before its card
    assert said.index('class="tex2jax_ignore mathjax_ignore"') < said.index("$RANK")
