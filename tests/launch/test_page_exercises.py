"""What an open page is sent of checks, guesses and claims; what is saved without one."""

import pytest

from course_utils import cells, paths
from course_utils.exercises import find
from tests.launch.page import html, text


@pytest.fixture(autouse=True)
def no_rank_is_left(no_rank_of_the_page_is_left):
    """As in all tests; the kernel's agent leads a group too, and is no rank."""


@pytest.fixture(autouse=True)
def no_answers_left():
    yield
    (paths.workers() / find("04.4").file).unlink(missing_ok=True)


def hand_in(answer):
    (paths.workers() / find("04.4").file).write_text(answer)


def returning(value):
    return f"def seconds_and_bytes(*given):\n    return {value}\n"


def test_progress_over_the_exercises_is_a_table(page):
    hand_in(returning(None))
    source = 'check("04.4"); check.progress()'
    saved = page.run(source, cell=None)
    assert {message["msg_type"] for message in saved} == {"stream"}
    assert "04.4  predict time and bytes  ✗ not yet" in text(saved)
    assert text(saved).splitlines()[-1] == "0 of 4 passed"
    card, table = page.run(source)
    assert 'class="course-card" data-kind="not yet"' in html(card)
    assert "<td>04.4</td><td>predict time and bytes</td><td>✗ not yet</td>" in html(table)


def test_what_is_to_do_is_a_card_whose_text_is_what_is_saved(page):
    hand_in("def seconds_and_bytes(*given):\n    raise NotImplementedError\n")
    (watched,), saved = page.run('check("04.4")'), page.run('check("04.4")', cell=None)
    assert 'class="course-card" data-kind="to do"' in html(watched)
    assert watched["content"]["data"]["text/plain"] + "\n" == text(saved)
    assert text(saved) == "04.4 predict time and bytes: to do\n"


def test_progress_survives_the_kernel(page):
    hand_in(find("04.4").ours)
    page.run('check("04.4")')
    forget = "from course_utils.checking import check as checking; checking._states.clear()\n"
    saved = page.run(forget + "check.progress('04')", cell=None)
    assert "04.4  predict time and bytes  ✓ passed" in text(saved)


def test_our_solution_is_offered_after_the_second_try(page):
    hand_in(returning(None))
    page.run("from course_utils.checking import check as checking; checking._tries.clear()")
    (first,), (second,) = page.run('check("04.4")'), page.run('check("04.4")')
    assert "%solution 04.4" not in html(first)
    assert "%solution 04.4" in html(second)
    assert "%solution 04.4" in first["content"]["data"]["text/plain"]


def test_a_guess_is_a_card_with_its_score(page):
    (right,) = page.run("from course_utils import predict\npredict('(B)').compare('b')")
    assert 'data-kind="✓"' in html(right)
    (wrong,) = page.run("predict('a').compare('b')")
    assert 'data-kind="≠"' in html(wrong)
    assert "1 of 2 right so far" in html(wrong)
    assert page.run("predict('a').compare('b')", cell=None) == []


def test_a_guess_made_anew_counts_once(page):
    page.run("from course_utils import predict")
    scores = []
    for letter in "abb":
        page.run(f"guess = predict('{letter}')")
        card = html(page.run("guess.compare('b')  # once")[-1])
        scores.append(card.partition("<small>")[2].partition(" right")[0])
    assert scores[1] == scores[2]
    right, all_ = (list(map(int, score.split(" of "))) for score in (scores[0], scores[1]))
    assert (right[0] + 1, right[1]) == tuple(all_)


def test_the_card_of_a_guess_stands_above_the_output_of_its_cell(page):
    page.run("from course_utils import predict\nguess = predict('b')")
    place, printed, filled = page.run("print('measured')\nguess.compare('b')")
    kinds = [sent["msg_type"] for sent in (place, printed, filled)]
    assert kinds == ["display_data", "stream", "update_display_data"]
    assert place["content"]["transient"] == filled["content"]["transient"]
    assert "You guessed b. Measured: b." in html(filled)


COURSE = "sent = 5\nprint('measured')\nguess.compare()"


def test_without_a_guess_a_card_waits_for_it_and_the_answer_is_on_no_page(page):
    """As in notebook 00; the ids are those of its cells."""
    page.run("from course_utils import predict")
    page.run('guess = predict("")', cell="two-sends-run")
    place, _, filled = page.run(COURSE, cell="stuck-launch-two")
    assert "no guess yet" in html(filled)
    assert "Measured" not in html(filled)
    (both,) = page.run('guess = predict("a")', cell="two-sends-run")
    assert "You guessed a. Measured: c." in html(both)
    assert both["content"]["transient"] == place["content"]["transient"]
    assert page.run('guess = predict("b")', cell="two-sends-run") == []  # the measuring cell, again
    assert "You guessed b. Measured: c." in html(page.run(COURSE, cell="stuck-launch-two")[-1])
    assert text(page.run(COURSE, cell=None)) == "measured\n"


def test_an_answer_is_made_of_what_was_measured(page):
    page.run('from course_utils import predict\nguess = predict("b")', cell="held-inside")
    *_, filled = page.run("guess.compare(5.04)", cell="discard-run")
    assert 'data-kind="✓"' in html(filled)
    assert "You guessed b. Measured: b, 5.0 MB." in html(filled)


def test_a_cell_is_known_by_its_text_where_a_page_has_ids_of_its_own(page):
    (source,) = (
        "".join(cell["source"])
        for cell in cells.read(paths.NOTEBOOKS / "05_fsdp.ipynb")["cells"]
        if cell.get("id") == "one-equal-add"
    )
    page.run('from course_utils import predict\nguess = predict("b")', cell="W0sZmlsZQ==")
    page.run("""from types import SimpleNamespace
proofs = SimpleNamespace(add=lambda run: None)
one_equal = SimpleNamespace(series=lambda name: [1])""")
    *_, filled = page.run(source, cell="W2sZmlsZQ==")
    assert "You guessed b. Measured: b." in html(filled)
    *_, filled = page.run(f"{source}\nchanged = True", cell="W2sZmlsZQ==")
    assert "undo your change" in html(filled)


def test_the_claims_are_a_table_with_marks(page):
    page.run('from course_utils import proofs; proofs.record("x is small", "1 rank", 0.0, 1.0)')
    (card,), saved = page.run("proofs.table()"), page.run("proofs.table()", cell=None)
    assert "<td>✓</td><td>x is small</td>" in html(card)
    assert text(saved).splitlines()[0].split() == "claim measured on worst ≤ bound".split()
