"""What the exercises of notebook 06 share: one call of a cut layer, judged in both passes."""

import warnings
from collections.abc import Callable
from typing import Any

from torch import Tensor

from course_utils.checking.calls import same
from course_utils.checking.compare import (
    TOLERANCE,
    Mistakes,
    Wrong,
    expect,
    expect_calls,
    judge,
    name_of,
    plain,
)
from course_utils.checking.findings import judging, observe
from course_utils.checking.values import close

NO_GRADIENT = "No gradient came through: a collective does not tell autograd where x came from."
BY_CHANCE = (
    "PyTorch warned: it does not know the derivative of a plain collective, and acts as if the "
    "collective were not there. What says, in yours, what the backward pass is?"
)
BUFFER = "The caller still holds the first answer. Does yours keep one buffer for all calls?"
NEEDED = "Somebody may still need it: in whose memory do you add up?"


def _in_one_memory(answers: list[Any]) -> bool:
    """Whether two of several answers share memory."""
    tensors = [each for each in answers if isinstance(each, Tensor)]
    return len({each.untyped_storage().data_ptr() for each in tensors}) < len(tensors)


def look(
    here: str,
    layer: Callable,
    tensors: dict[str, Tensor | None],
    factors: Tensor,
    y: Tensor,
    gradients: dict[str, Tensor],
    *,
    forward: list | None,
    backward: list | None,
    mistakes: dict[str, Mistakes],
    otherwise: dict[str, str],
) -> None:
    """Call a layer, take the gradients of (output * factors).sum(), and judge both passes.

    Args:
        here: how a message begins.
        layer: the student's, called with the tensors.
        tensors: by name; those with a gradient are in `gradients`.
        factors: the gradient of the output.
        y: the right output.
        gradients: the right ones.
        forward: the lists of calls allowed in the forward pass; None: not looked at.
        backward: in the backward pass.
        mistakes: as in `hint_for`, for "y" and for each gradient.
        otherwise: the question where no known mistake fits.
    """
    leaves = {n: None if t is None else t.clone().requires_grad_() for n, t in tensors.items()}
    kept: list[Any] = []

    def others() -> list[Tensor | None]:
        return [None if t is None else 2 * t for t in leaves.values()]

    def call(*given: Tensor | None) -> Tensor:
        inner = [None if each is None else each * 1 for each in given]  # no leaves, as in a model
        kept[:] = [layer(*inner), inner]
        return kept[0]

    def back(gradient: Tensor) -> None:
        if isinstance(kept[0], Tensor) and kept[0].requires_grad and kept[0].shape == y.shape:
            kept[0].backward(gradient)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        there = observe(call, *leaves.values(), names=tuple(leaves), again=False)
        held = [layer(*others()), layer(*others())]  # before the backward pass of the first
        again = observe(back, factors, names=("the gradient",), again=False)
    with judging():  # after both passes: the others may wait in the second
        known = mistakes.get("y", ())
        judge(here, there, y, known, otherwise["y"], dtype=y.dtype, verb="gave")
        if _in_one_memory([kept[0], *held]) or not close(plain(kept[0]), there["answer"]):
            raise Wrong(f"{here}: a later call changed the answer of an earlier one", BUFFER)
        for each, right in gradients.items():
            got = leaves[each].grad
            what = f"{here}, gradient of {each}:"
            if got is None:
                raise Wrong(f"{what} None", otherwise.get(f"no {each}", NO_GRADIENT))
            tolerance = TOLERANCE[name_of(y.dtype)]
            expect(what, got, right, mistakes.get(each, ()), otherwise[each], tolerance)
        pairs = zip(leaves.items(), kept[1], strict=True)
        changed = [n for (n, leaf), t in pairs if t is not None and not same(t, leaf)]
        for each in [*changed, *again["changed"]]:
            raise Wrong(f"{here} changed {each} that it was given", NEEDED)
        if any("autograd kernel" in str(each.message) for each in said):
            raise Wrong(f"{here} has the right values, by chance", BY_CHANCE)
        for when, found, allowed in (("forward", there, forward), ("backward", again, backward)):
            if allowed is not None:
                hint = "The values are right. Which of the messages could be spared?"
                if [call for call, _ in found["calls"]] == [call for call, _ in allowed[0]]:
                    hint = "The values are right. What travels besides, or in which dtype?"
                expect_calls(f"{here}, {when},", found["calls"], allowed, hint)
