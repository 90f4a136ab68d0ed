"""What an open page is sent of checks, guesses and claims; what is saved without one."""

import pytest

from tests.launch.page import html, text


@pytest.fixture(autouse=True)
def no_rank_is_left(no_rank_of_the_page_is_left):
    """As in all tests; the kernel's agent leads a group too, and is no rank."""


def test_progress_over_the_exercises_is_a_table(page):
    source = 'check("04.4", lambda *_: None); check.progress()'
    saved = page.run(source, cell=None)
    assert {message["msg_type"] for message in saved} == {"stream"}
    assert "04.4  predict time and bytes  ✗ not yet" in text(saved)
    assert text(saved).splitlines()[-1] == "0 of 4 passed"
    card, table = page.run(source)
    assert 'class="course-card" data-kind="not yet"' in html(card)
    assert "<td>04.4</td><td>predict time and bytes</td><td>✗ not yet</td>" in html(table)


def test_what_is_to_do_is_a_card_whose_text_is_what_is_saved(page):
    source = 'def answer(*_):\n    raise NotImplementedError\ncheck("04.4", answer)'
    (watched,), saved = page.run(source), page.run(source, cell=None)
    assert 'class="course-card" data-kind="to do"' in html(watched)
    assert watched["content"]["data"]["text/plain"] + "\n" == text(saved)
    assert text(saved) == "04.4 predict time and bytes: to do\n"


def test_progress_survives_the_kernel(page):
    right = "from course_utils.checking.registry import find\nexec(find('04.4').solution)\n"
    page.run(right + 'check("04.4", seconds_and_bytes)')
    forget = "from course_utils.checking import check as checking; checking._states.clear()\n"
    saved = page.run(forget + "check.progress('04')", cell=None)
    assert "04.4  predict time and bytes  ✓ passed" in text(saved)


def test_our_solution_is_offered_after_the_second_try(page):
    source = 'check("04.4", lambda *_: None)'
    page.run("from course_utils.checking import check as checking; checking._tries.clear()")
    (first,), (second,) = page.run(source), page.run(source)
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


def test_the_card_of_a_guess_stands_above_the_output_of_its_cell(page):
    page.run("from course_utils import predict\nguess, none = predict('b'), predict('')")
    place, printed, filled = page.run("print('measured')\nguess.compare('b')")
    kinds = [sent["msg_type"] for sent in (place, printed, filled)]
    assert kinds == ["display_data", "stream", "update_display_data"]
    assert place["content"]["transient"] == filled["content"]["transient"]
    assert "You guessed b. Measured: b." in html(filled)
    assert [sent["msg_type"] for sent in page.run("print(1)\nnone.compare('b')")] == ["stream"]


def test_the_claims_are_a_table_with_marks(page):
    page.run('from course_utils import proofs; proofs.record("x is small", "1 rank", 0.0, 1.0)')
    (card,), saved = page.run("proofs.table()"), page.run("proofs.table()", cell=None)
    assert "<td>✓</td><td>x is small</td>" in html(card)
    assert text(saved).splitlines()[0].split() == "claim measured on worst ≤ bound".split()
