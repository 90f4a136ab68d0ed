"""08.4: a learning rate for four ranks."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong, count, plain
from course_utils.checking.values import is_number, listed

TITLE = "a learning rate for four ranks"
PROVEN = (
    "seven trainings, two rates: where the linear rule holds, and where it does not",
    "a better rate was never left aside, in at most 8 trainings",
)
OURS = '''"""A learning rate with its defence: start at the rule of thumb, and walk downhill."""

import math
from collections.abc import Callable


def choose(train: Callable[[float], float], rate: float) -> tuple[float, dict[float, float]]:
    """The learning rate for four ranks, and the loss of every rate that was tried."""
    tried: dict[float, float] = {}

    def loss(power: int) -> float:
        """With the rate times a power of two; a training that diverges is infinitely bad."""
        each = rate * 2.0**power
        if each not in tried:
            tried[each] = train(each)
        return tried[each] if math.isfinite(tried[each]) else math.inf

    best = 2  # the linear rule: four times the rate
    while loss(best + 1) < loss(best):
        best += 1
    while loss(best - 1) < loss(best):
        best -= 1
    return rate * 2.0**best, tried
'''
MOST_CALLS, FURTHEST = 8, 2.1
# Where the best rate is, as a multiple of one rank's; where training diverges; how steep it is.
LANDSCAPES = [(4, 100, 1.0), (1.1, 3.1, 0.3), (3, 3.5, 0.7), (2, 100, 2.0), (8.7, 12, 0.5)]
LANDSCAPES += [(13, 40, 0.2), (0.4, 5, 1.0)]


def cases(choose: Callable) -> None:
    """The choice and its defence, where the linear rule is right and where it is not."""
    for base in (0.1, 0.0037):
        for number, landscape in enumerate(LANDSCAPES):
            look(choose, base, number, landscape)


def look(choose: Callable, base: float, number: int, landscape: tuple[float, float, float]) -> None:
    """One call, with a loss that has its least value at a known rate."""
    best, limit, steep = landscape
    losses: dict[float, float] = {}
    calls, refused = [], []

    def train(given: Any) -> float:
        rate = plain(given)  # of NumPy or torch, too
        if not is_number(rate) or not 0 < rate < math.inf:
            refused.append(given)
            raise ValueError(f"a learning rate is a number above 0, not {_short(given)}")
        calls.append(rate)
        broken = math.inf if number % 2 else math.nan
        way = math.log2(rate / base / best)
        losses[rate] = broken if rate > base * limit else 0.3137 + steep * 0.1 * way**2
        return losses[rate]

    where = f"training {number + 1}, choose(train, {base:g})"
    try:
        answer = called(where, choose, train, base)
    except Wrong:
        if not refused:
            raise
    if refused:
        said = f"{where}: train({_short(refused[0])})"
        raise Wrong(said, "A learning rate is a number above 0.")
    if len(calls) > MOST_CALLS:
        hint = "Each is paid for. Is a rate trained twice, or one far from the best?"
        raise Wrong(f"{where} trained {count(len(calls), 'time')}, allowed are {MOST_CALLS}", hint)
    pair = listed(answer)
    if not (pair and len(pair) == 2 and isinstance(pair[1], Mapping)):
        raise Wrong(f"{where} returned {_short(answer)}", "Return a rate, and a dict of losses.")
    chosen = plain(pair[0])
    if not is_number(chosen):
        raise Wrong(f"{where} chose {_short(chosen)}", "A learning rate is a number.")
    rates = list(map(plain, pair[1]))
    if other := [rate for rate in rates if not is_number(rate)]:
        said = f"{where}: the dict has the key {_short(other[0])}"
        raise Wrong(said, "Its keys are the learning rates: numbers.")
    tried = dict(zip(rates, map(plain, pair[1].values()), strict=True))
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
    defended(where, chosen, base, losses)


def defended(where: str, chosen: float, base: float, losses: dict[float, float]) -> None:
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
        hint = "Which of the rates in your dict has the lowest loss?"
        raise Wrong(f"{where} chose {times}, but {better[0] / base:g} times gives {said}", hint)
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


KEPT = "tried: dict[float, float] = {}"
WALK = (
    "tried = {}",
    "best = 4 * rate",
    "for _ in range(20):",
    "    for each in (best / 2, best, best * 2):",
    "        if each not in tried: tried[each] = train(each)",
    "    finite = {each: loss for each, loss in tried.items() if math.isfinite(loss)}",
    "    best = min(finite, key=finite.get) if finite else best / 4",
    "return best, tried",
)


def _choose(*lines: str) -> str:
    """An answer to 08.4 that searches in another way than ours."""
    return "import math\n\ndef choose(train, rate):\n" + "".join(f"    {line}\n" for line in lines)


WRONG = [
    (
        "one dict for all calls",
        KEPT,
        "tried = choose.__dict__.setdefault('kept', {})",
        "is said to give",
    ),
    (
        "one dict for all calls, emptied first",
        KEPT,
        "tried = choose.__dict__.setdefault('kept', {})\ntried.clear()",
        "changed what the call before had returned",
    ),
    (
        "a rate of 0, and the error is swallowed",
        "best = 2",
        "try:\n    train(0.0)\nexcept ValueError:\n    pass\nbest = 2",
        "A learning rate is a number above 0",
    ),
    (
        "rates as words",
        "->",
        "lambda pair: (pair[0], {str(r): l for r, l in pair[1].items()})",
        "the learning rates: numbers",
    ),
    (
        "losses alone",
        "->",
        "lambda pair: (pair[0], list(pair[1].values()))",
        "Return a rate, and a dict",
    ),
    ("the linear rule", _choose("return 4 * rate, {4 * rate: train(4 * rate)}"), "linear rule"),
    (
        "one rank's",
        _choose("return rate, {rate: train(rate), 2 * rate: train(2 * rate)}"),
        "training 1, choose(train, 0.1) chose 1 times 0.1, but 2 times gives",
    ),
    (
        "a fixed list",
        _choose(
            "tried = {k * rate: train(k * rate) for k in (1, 2, 4, 8)}",
            "tried = {each: loss for each, loss in tried.items()}",
            "finite = {each: loss for each, loss in tried.items() if math.isfinite(loss)}",
            "return min(finite, key=finite.get), tried",
        ),
        "tried nothing right",
    ),
    (
        "nan is the least",
        _choose(
            "tried = {k * rate: train(k * rate) for k in (16, 8, 4, 2, 1, 0.5, 0.25)}",
            "return min(tried, key=tried.get), tried",
        ),
        "what does min make of it",
    ),
    (
        "too many",
        _choose(
            "tried = {k * rate / 4: train(k * rate / 4) for k in range(1, 65)}",
            "finite = {each: loss for each, loss in tried.items() if math.isfinite(loss)}",
            "return min(finite, key=finite.get), tried",
        ),
        "trained 64 times",
    ),
    (
        "the bad ones are kept back",
        _choose(*WALK[:-1], "return best, {best: tried[best]}"),
        "is not in the dict",
    ),
    (
        "an invented defence",
        _choose("train(4 * rate)", "return 4 * rate, {4 * rate: 0.1, 8 * rate: 0.2}"),
        "is said to give",
    ),
    (
        "never tried",
        _choose("return 3 * rate, {2 * rate: train(2 * rate)}"),
        "which it never tried",
    ),
    ("a rate alone", _choose("train(rate)", "return 4 * rate"), "Return a rate, and a dict"),
]
RIGHT = [
    ("a list of both", "->", "list"),
    ("a generator of both", "->", "iter"),
    (
        "numpy's numbers",
        "->",
        "lambda pair: (numpy.float64(pair[0]), "
        "{numpy.float64(rate): numpy.float64(loss) for rate, loss in pair[1].items()})",
    ),
    (
        "a view of a dict",
        "->",
        "lambda pair: (pair[0], __import__('types').MappingProxyType(pair[1]))",
    ),
    (
        "exact rates",
        "each = rate * 2.0**power",
        "each = Fraction(rate) * Fraction(2) ** power",
        "rate * 2.0**best",
        "Fraction(rate) * Fraction(2) ** best",
        "import math",
        "import math\nfrom fractions import Fraction",
    ),
    ("three at a time", _choose(*WALK)),
]
