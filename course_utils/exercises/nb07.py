"""Notebook 07, the Transformer lab: the causal mask, and perplexity over ranks."""

import math
from typing import Any

from course_utils.exercises.checking import Wrong, exercise, probe

SHARES = {1: [4], 2: [3, 1], 3: [4, 0, 2], 4: [0, 5, 1, 2]}  # as in probe_07_2.py
MOST_COLLECTIVES, MOST_BYTES = 2, 32


@exercise("07.1", "causal mask", file="exercise_07_1.py")
def check_07_1() -> list[str]:
    """Rows as they should be, for several lengths and windows."""
    for case in probe("probe_07_1.py", 1):
        _check_mask(**{name: case[name] for name in ("length", "window", "kind", "shape", "rows")})
    return [
        "no position looks ahead, each looks at itself and at all before it: lengths 1, 3, 5",
        "with a window of w each looks at the last w positions: w = 1, 2, 3 and beyond the length",
    ]


def _check_mask(length: int, window: int | None, kind: str, shape: list[int], rows: Any) -> None:
    call = f"causal_mask({length})" if window is None else f"causal_mask({length}, window={window})"
    if kind != "Tensor of bool":
        raise Wrong(
            f"{call} returned a {kind}, expected a Tensor of bool",
            "Attention asks of every pair: may t look at s? Which dtype answers yes or no?",
        )
    expected = [[0 <= t - s < (window or length) for s in range(length)] for t in range(length)]
    if shape != [length, length]:
        found = f"{call} has the wrong shape {tuple(shape)}, expected {(length, length)}"
        raise Wrong(found, "A row for each position, and what it may look at: how many dimensions?")
    for t, (row, wanted) in enumerate(zip(rows, expected, strict=True)):
        if row != wanted:
            s = next(s for s in range(length) if row[s] != wanted[s])
            found = f"{call}: row {t} is {_bits(row)}, expected {_bits(wanted)}"
            raise Wrong(f"{found}, first wrong at position {s}", _mask_hint(t, row, wanted))


def _bits(row: list[bool]) -> str:
    return "[" + " ".join("1" if value else "0" for value in row) + "]"


def _mask_hint(t: int, row: list[bool], wanted: list[bool]) -> str:
    """The question that fits the mistake in row `t`."""
    if any(row[t + 1 :]):
        return f"Position {t} may look at one after it. Is the token it has to predict among them?"
    if not any(row):
        return f"Position {t} may look at nothing. What is the softmax of nothing but -inf?"
    if not row[t]:
        return f"May position {t} not look at itself? It has read its own token."
    if sum(row) > sum(wanted):
        return f"Position {t} looks too far back. A window of w holds w positions, itself included."
    return f"Position {t} does not look back far enough. What has it already read?"


@exercise("07.2", "exact perplexity over ranks", file="exercise_07_2.py")
def check_07_2() -> list[str]:
    """The value on each rank, and what was sent for it, with shares that differ."""
    for ranks in (1, 2, 3, 4):
        try:
            reports = probe("probe_07_2.py", ranks, timeout=20)
        except Wrong as wrong:
            question = "Does every rank come to each collective, one with an empty share too?"
            raise Wrong(wrong.message, wrong.hint or question * (ranks > 2)) from None
        for report in reports:
            _check_perplexity(ranks, **report)
    return [
        "1, 2, 3 and 4 ranks with uneven shares, some of them empty: the same number on each rank",
        "equal to one process to 12 digits, over up to 400,000 tokens",
        f"at most {MOST_COLLECTIVES} collectives and {MOST_BYTES} bytes a rank",
    ]


def _check_perplexity(
    ranks: int,
    rank: int,
    case: str,
    answer: float | None,
    kind: str,
    expected: float,
    collectives: int,
    sent: int,
) -> None:
    where = "1 rank" if ranks == 1 else f"{ranks} ranks"
    shares = [n * (50_000 if case == "large" else 1) for n in SHARES[ranks]]
    where += f" with {', '.join(f'{n:,}' for n in shares)} tokens: rank {rank}"
    if answer is None:
        raise Wrong(
            f"{where} returned a {kind}, expected a float",
            "Every rank needs the number, as a plain Python number: what does yours return there?",
        )
    if not math.isclose(answer, expected, rel_tol=1e-12):
        digits = 6 if case == "small" else 15
        found = f"{where} returned {answer:.{digits}g}, expected {expected:.{digits}g}"
        if case == "small":
            found += f" (each loss of rank r is {'1' if ranks == 1 else '1 + r'})"
        raise Wrong(found, _value_hint(ranks, rank, case, answer))
    if collectives > MOST_COLLECTIVES or sent > MOST_BYTES:
        raise Wrong(
            f"{where} took part in {collectives} collectives with {sent:,} bytes of its own, "
            f"allowed are {MOST_COLLECTIVES} with {MOST_BYTES} bytes",
            "Which two numbers of a rank are all that the others need to know?",
        )


def _value_hint(ranks: int, rank: int, case: str, answer: float) -> str:
    """The question that fits a wrong value; the mistakes are tried one after another."""
    if case == "large":
        return "Nearly right: with many tokens the last digits go. In which dtype do you add?"
    if math.isnan(answer):
        return "What is the mean of an empty share? And its sum?"
    shares = SHARES[ranks]
    total = sum(n * (1 + r) for r, n in enumerate(shares))
    mean = total / sum(shares)
    filled = [1.0 + r for r, n in enumerate(shares) if n]
    mistakes = {
        "That is the mean loss. Perplexity is one step further: which?": [mean],
        "Losses are in nats, to the base e. Which base did you use?": [2**mean],
        "That is this rank's own. Who tells it of the others?": [math.exp(1 + rank)],
        "That is a mean of the ranks' means. Whose tokens weigh too much in it?": [
            math.exp(sum(filled) / len(filled)),
            math.exp(sum(filled) / ranks),
        ],
        "That is a mean of perplexities. Is exp of a mean the mean of exp?": [
            sum(map(math.exp, filled)) / len(filled),
            sum(map(math.exp, filled)) / ranks,
            (sum(map(math.exp, filled)) + ranks - len(filled)) / ranks,
        ],
        "Right sum, wrong count: has every rank as many tokens as this one?": [
            math.exp(min(700, total / (ranks * shares[rank]))) if shares[rank] else math.inf
        ],
    }
    for question, values in mistakes.items():
        if any(math.isclose(answer, value, rel_tol=1e-5) for value in values):
            return question
    return "Write down, rank by rank, the sum of the losses and their number. What do you divide?"
