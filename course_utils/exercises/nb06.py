"""Notebook 06, tensor parallel: f and g, column, row, and a loss without all logits."""

import math
from typing import Any

from course_utils.exercises.checking import Wrong, exercise, probe
from course_utils.formats import number

MOST_VALUES = 4  # that a rank may hand to collectives for each token of 06.4
BY_CHANCE = (
    "PyTorch warned: it does not know the derivative of a plain collective, and guesses. "
    "What says, in yours, what the backward pass is?"
)


@exercise("06.1", "f and g", file="exercise_06_1.py")
def check_06_1() -> list[str]:
    """Values and gradients on all ranks and on smaller groups, and what each pass sends."""
    for ranks in (2, 3, 4):
        for case in probe("probe_06_1.py", ranks):
            _check_pair(ranks, **case)
    return [
        "2, 3 and 4 ranks, and smaller groups: values and gradients, also where x is used beside f",
        "f sends nothing forward, g nothing backward; neither changes what it is given",
    ]


def _check_pair(
    ranks: int,
    rank: int,
    name: str,
    members: list[int],
    found: dict[str, Any],
    y: list,
    gradient: list,
    changed: bool,
    beside: bool,
) -> None:
    where = f"{ranks} ranks"
    if len(members) < ranks:
        where += f", a group of ranks {members}"
    where += f": {name} on rank {rank}"
    if beside:
        where += ", x used beside it"
    _compare(f"{where} gave", found["y"], y, _pair_hint(name, ranks, members, found["y"], y))
    if changed:
        hint = "Somebody may still need x: into whose memory does the sum go?"
        raise Wrong(f"{where} changed the x that it was given", hint)
    got = found["gradients"]["x"]
    hint = _gradient_hint(name, len(members), got, gradient)
    if beside:
        hint = "What came past f is not f's. What does its backward touch, and in whose memory?"
    _compare(f"{where} gave the gradient", got, gradient, hint)
    sent: tuple[list, list] = ([], ["all_reduce"]) if name == "f" else (["all_reduce"], [])
    _check_calls(where, found, *sent, alone=len(members) == 1)


def _pair_hint(name: str, ranks: int, members: list[int], got: Any, y: list) -> str:
    if name == "f":
        return "Forward f is a copy: x is already the same on every rank."
    if len(members) < ranks:
        return "Only the ranks of the group take part. Where does `group` go?"
    if _times(got, y) == 1 / ranks:
        return "That is the mean. The terms of a product are added."
    return "Forward g adds up what every rank has."


def _gradient_hint(name: str, ranks: int, got: Any, wanted: list) -> str:
    if got is None:
        return "No gradient came through: a collective does not tell autograd where x came from."
    times = _times(got, wanted)
    if name == "g":
        if times == ranks:
            return "If y = x0 + x1, what is dy/dx0? The gradient of y is on every rank already."
        return "Backward g passes the gradient on as it comes."
    if times == 1 / ranks:
        return "That is the mean of the uses. The chain rule adds them."
    return "x was used on every rank of the group. Who adds up what they say?"


@exercise("06.2", "column, with and without a gather", file="exercise_06_2.py")
def check_06_2() -> list[str]:
    """Outputs and gradients beside the whole layer, and what each pass sends."""
    for ranks in (2, 3, 4):
        for case in probe("probe_06_2.py", ranks):
            _check_column(ranks, **case)
    return [
        "2, 3 and 4 ranks: outputs, and gradients of x, weight and bias, with and without gather",
        "forward nothing, or one all-gather; backward one all-reduce",
    ]


def _check_column(
    ranks: int, rank: int, flag: bool, found: dict[str, Any], y: list, gradients: dict[str, list]
) -> None:
    where = f"{ranks} ranks, gather={flag}: rank {rank}"
    _compare(f"{where} gave", found["y"], y, _column_hint(flag, found["y"], y))
    for name in ("weight", "bias", "x"):
        got, wanted = found["gradients"][name], gradients[name]
        _compare(f"{where}, gradient of {name}:", got, wanted, _cut_hint(name, ranks, got, wanted))
    _check_calls(where, found, ["all_gather"] if flag else [], ["all_reduce"])


def _column_hint(gather: bool, got: Any, y: list) -> str:
    columns = len(got[0]) if isinstance(got, list) and got and isinstance(got[0], list) else 0
    if columns > len(y[0]):
        return "Without gather a rank gives its own outputs only."
    if 0 < columns < len(y[0]):
        return "With gather every rank gives all outputs: side by side, along which dimension?"
    return "y = x W^T + b: x is whole here, W and b are this rank's rows."


@exercise("06.3", "row, with its bias", file="exercise_06_3.py")
def check_06_3() -> list[str]:
    """Outputs and gradients beside the whole layer, and what each pass sends."""
    for ranks in (2, 3, 4):
        for case in probe("probe_06_3.py", ranks):
            _check_row(ranks, **case)
    return [
        "2, 3 and 4 ranks: outputs, and gradients of x, weight and bias, x cut and whole",
        "forward one all-reduce; backward nothing, or one all-gather",
    ]


def _check_row(
    ranks: int, rank: int, flag: bool, found: dict[str, Any], y: list, gradients: dict[str, list]
) -> None:
    where = f"{ranks} ranks, cut={flag}: rank {rank}"
    _compare(f"{where} gave", found["y"], y, _row_hint(ranks, found["y"], y))
    for name in ("bias", "weight", "x"):
        got, wanted = found["gradients"][name], gradients[name]
        hint = _bias_hint(ranks, got, wanted) if name == "bias" else ""
        hint = hint or _cut_hint(name, ranks, got, wanted)
        _compare(f"{where}, gradient of {name}:", got, wanted, hint)
    _check_calls(where, found, ["all_reduce"], [] if flag else ["all_gather"])


def _row_hint(ranks: int, got: Any, y: list) -> str:
    if _times(got, y) == 1 / ranks:
        return "That is the mean of the terms. y is their sum."
    if isinstance(got, list) and _flat(got) and len(_flat(got)) == len(_flat(y)):
        if all(a > b for a, b in zip(_flat(got), _flat(y), strict=True)):
            return "Too much: how often is the bias in it?"
        return "Too little: is a term missing, or the bias?"
    return "Every rank gives the whole y: (B, out)."


def _bias_hint(ranks: int, got: Any, wanted: list) -> str:
    if got is None or not any(_flat(got)):
        return "The bias is on every rank, and should learn on every rank. Who uses it in yours?"
    if _times(got, wanted) == 1 / ranks:
        return "y is right, but this bias learns P times too slowly. Where does it belong?"
    return ""


@exercise("06.4", "a loss without all logits", file="exercise_06_4.py")
def check_06_4() -> list[str]:
    """Losses and gradients beside those of all logits, large ones too, and what is sent."""
    for ranks in (2, 3, 4):
        for case in probe("probe_06_4.py", ranks):
            _check_loss(ranks, **case)
    return [
        "2, 3 and 4 ranks: each token's loss and the gradient of each logit, also of large ones",
        f"at most {MOST_VALUES} values a token in collectives",
    ]


def _check_loss(
    ranks: int, rank: int, case: str, found: dict[str, Any], y: list, gradients: dict[str, list]
) -> None:
    where = f"{ranks} ranks, {case} logits: rank {rank}"
    _compare(f"{where} gave", found["y"], y, _loss_hint(case, found["y"], y))
    got, wanted = found["gradients"]["logits"], gradients["logits"]
    hint = _cut_hint("logits", ranks, got, wanted)
    _compare(f"{where}, gradient of its logits:", got, wanted, hint)
    if found["warned"]:
        raise Wrong(f"{where} has the right values, by chance", BY_CHANCE)
    if found["values"] > MOST_VALUES:
        raise Wrong(
            f"{where} handed {found['values']:g} values a token to collectives, "
            f"allowed are {MOST_VALUES}",
            "Which numbers of a rank does the formula need, for each token?",
        )


def _loss_hint(case: str, got: Any, y: list) -> str:
    if not isinstance(got, list) or len(got) != len(y):
        return "A loss for each token, (n,): not their mean, and not a number for each id."
    if case == "large":
        return "With small logits yours is right. What is exp(1000)? And whose maximum is taken?"
    right = sum(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(got, y, strict=True))
    if right:
        return f"Right for {right} of {len(y)} tokens. Which rank has the target of the others?"
    return "ln of the sum over the whole vocabulary, minus the target's logit, which one rank has."


def _check_calls(
    where: str, found: dict[str, Any], forward: list, backward: list, alone: bool = False
) -> None:
    """Nothing by chance, and no collective too many; who is `alone` need not call any."""
    if found["warned"]:
        raise Wrong(f"{where} has the right values, by chance", BY_CHANCE)
    for when, allowed in (("forward", forward), ("backward", backward)):
        if found[when] != allowed and not (alone and not found[when]):
            question = "Which collective does just this?"
            if len(found[when]) > len(allowed):
                question = "Which of the messages could be spared?"
            said = f"{where} called {_names(found[when])} {when}, expected {_names(allowed)}"
            raise Wrong(said, f"The values are right. {question}")


def _cut_hint(name: str, ranks: int, got: Any, wanted: list) -> str:
    """The question that fits a wrong gradient."""
    if got is None:
        return "None came through: a plain collective does not tell autograd where x came from."
    if _times(got, wanted) == ranks:
        return "P times too large: every rank has this gradient already, and yours adds them up."
    if _times(got, wanted) == 1 / ranks:
        return "P times too small: what was divided?"
    if name == "x" and any(value == 0 for value in _flat(got)):
        return "0 where another rank's part is used. Who tells this rank of it?"
    if name == "x":
        return "Is x whole here, or cut? If whole, who adds up what each rank says of it?"
    return "Compare it with the whole layer's, cut as the tensor is cut."


def _compare(what: str, got: Any, wanted: list, hint: str) -> None:
    """Raise `Wrong` if the numbers are not those wanted, or not as many."""
    same = isinstance(got, list) and _shape(got) == _shape(wanted)
    if same and all(map(_close, _flat(got), _flat(wanted))):
        return
    raise Wrong(f"{what} {_short(got)}, expected {_short(wanted)}", hint)


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-9)


def _times(got: Any, wanted: list) -> float | None:
    """How many times `wanted` the values of `got` are, if they all are equally many times."""
    if not isinstance(got, list) or _shape(got) != _shape(wanted):
        return None
    pairs = [(a, b) for a, b in zip(_flat(got), _flat(wanted), strict=True) if abs(b) > 1e-9]
    if not pairs or not all(math.isfinite(a) for a, _ in pairs):
        return None
    times = pairs[0][0] / pairs[0][1]
    return round(times, 6) if all(_close(a, times * b) for a, b in pairs) else None


def _shape(values: Any) -> tuple[int, ...]:
    return (len(values), *_shape(values[0])) if isinstance(values, list) and values else ()


def _flat(values: Any) -> list[float]:
    if not isinstance(values, list):
        return [values]
    return [each for value in values for each in _flat(value)]


def _short(values: Any) -> str:
    return str(values) if values is None or isinstance(values, str) else number(values)


def _names(calls: list[str]) -> str:
    return ", ".join(calls) or "nothing"
