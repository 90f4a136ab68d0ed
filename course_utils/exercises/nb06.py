"""Notebook 06, tensor parallel: f and g, column, row, and a loss without all logits."""

import math
from typing import Any

from course_utils.exercises.checking import exercise, probe
from course_utils.exercises.compare import (
    TOLERANCE,
    Wrong,
    close,
    expect,
    flat,
    is_number,
    named_calls,
    shape,
)

TORCHS = ("_functional_collectives", "parallelize_module", "DTensor", "loss_parallel")

MOST_VALUES = 4  # that a rank may hand to collectives for each token of 06.4
BY_CHANCE = (
    "PyTorch warned: it does not know the derivative of a plain collective, and guesses. "
    "What says, in yours, what the backward pass is?"
)


@exercise("06.1", "f and g", file="exercise_06_1.py", without=TORCHS)
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
    _compare(f"{where} gave", found, found["y"], y, _pair_hint(name, ranks, members, found["y"], y))
    if changed:
        hint = "Somebody may still need x: into whose memory does the sum go?"
        raise Wrong(f"{where} changed the x that it was given", hint)
    got = found["gradients"]["x"]
    hint = _gradient_hint(name, len(members), got, gradient)
    if beside:
        hint = "What came past f is not f's. What does its backward touch, and in whose memory?"
    _compare(f"{where} gave the gradient", found, got, gradient, hint)
    message = [["all_reduce", len(flat(y))]]
    sent: tuple[list, list] = ([], message) if name == "f" else (message, [])
    _check_calls(where, found, *sent, alone=len(members) == 1)


def _pair_hint(name: str, ranks: int, members: list[int], got: Any, y: list) -> str:
    if name == "f":
        return "Forward f is a copy: x is already the same on every rank."
    if len(members) < ranks:
        return "Only the ranks of the group take part. Where does `group` go?"
    if _times(got, y) == round(1 / ranks, 4):
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
    if times == round(1 / ranks, 4):
        return "That is the mean of the uses. The chain rule adds them."
    return "x was used on every rank of the group. Who adds up what they say?"


@exercise("06.2", "column, with and without a gather", file="exercise_06_2.py", without=TORCHS)
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
    _compare(f"{where} gave", found, found["y"], y, _column_hint(flag, found["y"], y))
    for name in ("weight", "bias", "x"):
        got, wanted = found["gradients"][name], gradients[name]
        _compare(
            f"{where}, gradient of {name}:", found, got, wanted, _cut_hint(name, ranks, got, wanted)
        )
    gather = [["all_gather", len(flat(y)) // ranks]] if flag else []
    _check_calls(where, found, gather, [["all_reduce", len(flat(gradients["x"]))]])


def _column_hint(gather: bool, got: Any, y: list) -> str:
    columns = len(got[0]) if isinstance(got, list) and got and isinstance(got[0], list) else 0
    if columns > len(y[0]):
        return "Without gather a rank gives its own outputs only."
    if 0 < columns < len(y[0]):
        return "With gather every rank gives all outputs: side by side, along which dimension?"
    return "y = x W^T + b: x is whole here, W and b are this rank's rows."


@exercise("06.3", "row, with its bias", file="exercise_06_3.py", without=TORCHS)
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
    _compare(f"{where} gave", found, found["y"], y, _row_hint(ranks, found["y"], y))
    for name in ("bias", "weight", "x"):
        got, wanted = found["gradients"][name], gradients[name]
        hint = _bias_hint(ranks, got, wanted) if name == "bias" else ""
        hint = hint or _cut_hint(name, ranks, got, wanted)
        _compare(f"{where}, gradient of {name}:", found, got, wanted, hint)
    gather = [] if flag else [["all_gather", len(flat(gradients["x"])) // ranks]]
    _check_calls(where, found, [["all_reduce", len(flat(y))]], gather)


def _row_hint(ranks: int, got: Any, y: list) -> str:
    if _times(got, y) == round(1 / ranks, 4):
        return "That is the mean of the terms. y is their sum."
    if shape(got) == shape(y):
        off = [[a - b for a, b in zip(*rows, strict=True)] for rows in zip(got, y, strict=True)]
        if all(close(row, off[0], 1e-4) for row in off):
            return "Every row is off by the same: how often is the bias in it?"
        return "Is a term missing from the sum over the ranks?"
    return "Every rank gives the whole y: (B, out)."


def _bias_hint(ranks: int, got: Any, wanted: list) -> str:
    if got is None or not any(flat(got)):
        return "The bias is on every rank, and should learn on every rank. Who uses it in yours?"
    if _times(got, wanted) == round(1 / ranks, 4):
        return "y is right, but this bias learns P times too slowly. Where does it belong?"
    return ""


@exercise("06.4", "a loss without all logits", file="exercise_06_4.py", without=TORCHS)
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
    _compare(f"{where} gave", found, found["y"], y, _loss_hint(case, found["y"], y))
    got, wanted = found["gradients"]["logits"], gradients["logits"]
    hint = _cut_hint("logits", ranks, got, wanted)
    _compare(f"{where}, gradient of its logits:", found, got, wanted, hint)
    for changed in found["changed"]:
        raise Wrong(f"{where} changed {changed} that it was given", "Somebody may still need it.")
    if found["dtypes"] != [found["dtype"]]:
        said = f"{where} gave {', '.join(found['dtypes'])}, expected {found['dtype']}"
        raise Wrong(said, "The values are right. Where does yours take another dtype?")
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
    if case in ("large", "negative"):
        return "With small logits yours is right. What is exp(1000)? And whose maximum is taken?"
    right = sum(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(got, y, strict=True))
    if right:
        return f"Right for {right} of {len(y)} tokens. Which rank has the target of the others?"
    return "ln of the sum over the whole vocabulary, minus the target's logit, which one rank has."


def _check_calls(
    where: str, found: dict[str, Any], forward: list, backward: list, alone: bool = False
) -> None:
    """Nothing by chance, no input changed, no collective too many; `alone` need not call any.

    `forward` and `backward` are `[name, values]` for each call that is expected.
    """
    if found["warned"]:
        raise Wrong(f"{where} has the right values, by chance", BY_CHANCE)
    for name in found["changed"]:
        raise Wrong(f"{where} changed {name} that it was given", "Somebody may still need it.")
    if found["dtypes"] != [found["dtype"]]:
        said = f"{where} gave {', '.join(found['dtypes'])}, expected {found['dtype']}"
        raise Wrong(said, "The values are right. Where does yours take another dtype?")
    width = 8 if found["dtype"] == "float64" else 4
    for when, calls in (("forward", forward), ("backward", backward)):
        wanted = [[name, size * width] for name, size in calls]
        if found[when] == wanted or (alone and not found[when]) or _in_halves(found[when], wanted):
            continue
        question = "Which collective does just this?"
        if len(found[when]) > len(wanted):
            question = "Which of the messages could be spared?"
        elif [name for name, _ in found[when]] == [name for name, _ in wanted]:
            question = "What travels besides, or in which dtype?"
        said = f"{where} called {named_calls(found[when])} {when}, expected {named_calls(wanted)}"
        raise Wrong(said, f"The values are right. {question}")


def _in_halves(calls: list, wanted: list) -> bool:
    """Whether an all-reduce was made of its two halves, with at most a padded value more."""
    if [name for name, _ in calls] != ["reduce_scatter", "all_gather"] or len(wanted) != 1:
        return False
    size = wanted[0][1]
    return wanted[0][0] == "all_reduce" and size <= calls[0][1] < size + 64 and calls[1][1] <= size


def _cut_hint(name: str, ranks: int, got: Any, wanted: list) -> str:
    """The question that fits a wrong gradient."""
    if got is None:
        return "None came through: a plain collective does not tell autograd where x came from."
    if _times(got, wanted) == ranks:
        return "P times too large: every rank has this gradient already, and yours adds them up."
    if _times(got, wanted) == round(1 / ranks, 4):
        return "P times too small: what was divided?"
    if name == "x" and any(value == 0 for value in flat(got)):
        return "0 where another rank's part is used. Who tells this rank of it?"
    if name == "x":
        return "Is x whole here, or cut? If whole, who adds up what each rank says of it?"
    return "Compare it with the whole layer's, cut as the tensor is cut."


def _compare(what: str, found: dict[str, Any], got: Any, wanted: list, hint: str) -> None:
    """Raise `Wrong` if the numbers are not those wanted, or not as many."""
    expect(what, got, wanted, otherwise=hint, tolerance=TOLERANCE[found["dtype"]])


def _times(got: Any, wanted: list) -> float | None:
    """How many times `wanted` the values of `got` are, if they all are equally many times."""
    if not isinstance(got, list) or shape(got) != shape(wanted):
        return None
    pairs = [(a, b) for a, b in zip(flat(got), flat(wanted), strict=True) if abs(b) > 1e-9]
    if not pairs or not all(is_number(a) and math.isfinite(a) for a, _ in pairs):
        return None
    times = sum(a * b for a, b in pairs) / sum(b * b for _, b in pairs)
    return (
        round(times, 4)
        if close([a for a, _ in pairs], [times * b for _, b in pairs], 1e-4)
        else None
    )
