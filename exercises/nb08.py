"""Notebook 08, a real training run: exact accuracy, answers in order, three mistakes, a rate."""

import math
from collections.abc import Callable
from typing import Any

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong, count, plain
from course_utils.checking.failures import lonely
from course_utils.checking.probes import probe_each
from course_utils.checking.registry import exercise
from course_utils.checking.values import is_number

MOST_CALLS, FURTHEST = 8, 2.1
# Where the best rate is, as a multiple of one rank's; where training diverges; how steep it is.
LANDSCAPES = [(4, 100, 1.0), (1.1, 3.1, 0.3), (3, 3.5, 0.7), (2, 100, 2.0), (8.7, 12, 0.5)]
LANDSCAPES += [(13, 40, 0.2), (0.4, 5, 1.0)]
LONELY = lonely("Does every rank call each collective, even a rank without samples?")


@exercise("08.1", "exact accuracy over ranks", file="exercise_08_1.py")
def check_08_1() -> list[str]:
    """The value on each rank, and what was sent for it, with padded shares."""
    probe_each("probe_08_1.py", (1, 2, 3, 4), hint=LONELY)
    return [
        "1, 2, 3 and 4 ranks, 1 to 5,000 samples, also ranks that have only padding",
        "the same number on each rank, at most 2 collectives and 32 bytes per rank",
    ]


@exercise("08.2", "answers in order", file="exercise_08_2.py")
def check_08_2() -> list[str]:
    """The rows on each rank, and what was sent for them."""
    probe_each("probe_08_2.py", (2, 3, 4, 1), hint=LONELY)
    return [
        "1, 2, 3 and 4 ranks, 1 to 101 samples, a rank without any; numbers, rows and images",
        "float32, float64, int64 and bool, every row in its place on every rank",
        "one all-gather of the longest share's rows",
    ]


@exercise("08.3", "three mistakes that run", file="exercise_08_3.py")
def check_08_3() -> list[str]:
    """Orders, replicas, parameters and accuracies of a small training."""
    probe_each("probe_08_3.py", (2, 3, 1), hint=LONELY)
    return [
        "1, 2 and 3 ranks: a new order in each epoch, all replicas equal",
        "the parameters and accuracies of one process with the whole batch, in training mode",
    ]


@exercise("08.4", "a learning rate for four ranks")
def check_08_4(choose: Callable) -> list[str]:
    """The choice and its defence, where the linear rule is right and where it is not."""
    for base in (0.1, 0.0037):
        for number, landscape in enumerate(LANDSCAPES):
            _check_choice(choose, base, number, landscape)
    return [
        "seven trainings, two rates: where the linear rule holds, and where it does not",
        f"a better rate was never left aside, in at most {MOST_CALLS} trainings",
    ]


def _check_choice(
    choose: Callable, base: float, number: int, landscape: tuple[float, float, float]
) -> None:
    """One call of the student's function, with a loss that has its least value at a known rate."""
    best, limit, steep = landscape
    losses: dict[float, float] = {}
    calls = []

    def train(given: Any) -> float:
        rate = plain(given)  # of NumPy or torch, too
        if not is_number(rate) or rate <= 0:
            raise Wrong(f"{where}: train({given!r})", "A learning rate is a number above 0.")
        calls.append(rate)
        broken = math.inf if number % 2 else math.nan
        way = math.log2(rate / base / best)
        losses[rate] = broken if rate > base * limit else 0.3137 + steep * 0.1 * way**2
        return losses[rate]

    where = f"training {number + 1}, choose(train, {base:g})"
    answer = called(where, choose, train, base)
    if len(calls) > MOST_CALLS:
        hint = "Each is paid for. Is a rate trained twice, or one far from the best?"
        raise Wrong(f"{where} trained {count(len(calls), 'time')}, allowed are {MOST_CALLS}", hint)
    pair = isinstance(answer, (tuple, list)) and len(answer) == 2
    if not (pair and isinstance(answer[1], dict)):
        raise Wrong(f"{where} returned {_short(answer)}", "Return a rate, and a dict of losses.")
    chosen = plain(answer[0])
    tried = {plain(rate): plain(loss) for rate, loss in answer[1].items()}
    if not is_number(chosen):
        raise Wrong(f"{where} chose {_short(chosen)}", "A learning rate is a number.")
    for rate, loss in tried.items():
        real = losses.get(rate)
        diverged = real is not None and not math.isfinite(real)
        if not (loss == real or (diverged and is_number(loss) and not math.isfinite(loss))):
            hint = "The defence holds what train returned, for each rate that was tried."
            said = f"{where}: {_short(rate)} is said to give {_short(loss)}"
            gave = "it was never tried" if real is None else f"train returned {_short(real)}"
            raise Wrong(f"{said}, but {gave}", hint)
    if missing := [rate for rate in losses if rate not in tried]:
        hint = "The bad ones belong to the defence too."
        raise Wrong(f"{where}: {missing[0]:g} was tried, and is not in the dict", hint)
    _defended(where, chosen, base, losses)


def _defended(where: str, chosen: float, base: float, losses: dict[float, float]) -> None:
    """Raise `Wrong` unless a rate was tried, is the best, and has neighbours on both sides."""
    times = f"{chosen / base:g} times {base:g}"
    if chosen not in losses:
        raise Wrong(f"{where} chose {times}, which it never tried", "What is its loss?")
    if not math.isfinite(losses[chosen]):
        hint = "nan is neither larger nor smaller than any number: what does min make of it?"
        raise Wrong(f"{where} chose {times}, whose loss is {losses[chosen]}", hint)
    better = [rate for rate, loss in losses.items() if loss < losses[chosen]]
    if better:
        said = f"{losses[better[0]]:.4f}, not {losses[chosen]:.4f}"
        raise Wrong(f"{where} chose {times}, but {better[0] / base:g} times gives {said}")
    for side, near in (
        ("above", [r for r in losses if chosen < r <= FURTHEST * chosen]),
        ("below", [r for r in losses if chosen / FURTHEST <= r < chosen]),
    ):
        if not near:
            hint = f"Who says that a rate {side} it is not better? Try one within a factor of 2.1."
            if math.isclose(chosen, 4 * base) and len(losses) == 1:
                hint = "That is the linear rule, and nothing that defends it."
            raise Wrong(f"{where} chose {times}, and tried nothing right {side} it", hint)


def _short(value: Any) -> str:
    return f"{value:g}" if is_number(value) else repr(value)[:60]
