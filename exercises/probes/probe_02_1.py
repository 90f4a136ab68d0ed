"""Calls the student's scatter and gather on nested values, and lets gradients flow through both."""

from typing import Any

import torch
from torch import Tensor

from course_utils.checking.calls import called
from course_utils.checking.compare import NAN, Wrong, count, has_nan, kind, plain, unlike
from course_utils.checking.findings import judging, random_values
from course_utils.checking.values import flat, is_plain

from exercise_02_1 import gather, scatter

CPU, META = torch.device("cpu"), torch.device("meta")  # meta: a device that every machine has


def differ(got: Any, expected: Any, name: str) -> tuple[str, str] | None:
    """What is wrong with `got`, and the question that fits; None if it is as expected."""
    if type(got) is not type(expected):
        question = "A tuple stays a tuple, a list a list, a dict a dict: what does yours build?"
        if isinstance(expected, Tensor):
            question = "What does your code do with this tensor?"
        return f"{name} is {kind(got)}, expected {kind(expected)}", question
    if isinstance(expected, dict) and list(got) != list(expected):
        return f"{name} has the keys {list(got)}, expected {list(expected)}", "Which keys are lost?"
    if isinstance(expected, (dict, tuple, list)):
        if len(got) != len(expected):
            said = f"{name} has {count(len(got), 'entry')}, expected {len(expected)}"
            return said, "How many entries did the value have?"
        keys = expected if isinstance(expected, dict) else range(len(expected))
        found = (differ(got[key], expected[key], f"{name}[{key!r}]") for key in keys)
        return next((wrong for wrong in found if wrong), None)
    if isinstance(expected, Tensor):
        return differ_in_values(got, expected, name)
    if got != expected:
        said = f"{name} is {got!r}, expected {expected!r}"
        return said, "Pass on unchanged what can't be cut."
    return None


def differ_in_values(got: Tensor, expected: Tensor, name: str) -> tuple[str, str] | None:
    """The same for tensors: device, dtype, shape, values."""
    if got.device != expected.device:
        said = f"{name} is on {got.device}, expected {expected.device}"
        return said, "The call names the device. Which line sends the tensor there?"
    if is_plain(got) != is_plain(expected):
        return f"{name} is {kind(got)}, expected {kind(expected)}", "Which line makes it one?"
    if got.dtype != expected.dtype:
        return f"{name} is {got.dtype}, expected {expected.dtype}", "Which line changed the dtype?"
    if got.shape != expected.shape:
        said = f"{name} has the shape {tuple(got.shape)}, expected {tuple(expected.shape)}"
        return said, "Only the first dimension is cut or joined. Which rows belong there?"
    if got.device == CPU and not torch.equal(got, expected):
        ours, right = plain(got), plain(expected)
        hint = "The shape is right. Which of your lines changes the values of a row?"
        if sorted(flat(ours)) == sorted(flat(right)):
            hint = "The values are right. In which order do the rows come?"
        return f"{name} is {unlike(ours, right)}", NAN if has_nan(ours) else hint
    return None


def cut(batch: Tensor, devices: list[torch.device]) -> list[Tensor]:
    """What `scatter` has to make of a tensor."""
    parts = batch.chunk(len(devices))  # fewer than devices where rows are few
    return [part.to(device) for part, device in zip(parts, devices, strict=False)]


def check_scatter(call: str, value: Any, devices: list, expected: list) -> None:
    """Judge every part, with its structure, device and values."""
    hint = "With fewer rows than devices, how many parts does chunk make?"
    with judging():
        parts = called(call, scatter, value, list(devices), hint=hint)
        if not isinstance(parts, (list, tuple)):
            raise Wrong(f"{call} returned {kind(parts)}, expected a list of parts", hint)
        if len(parts) != len(expected):
            question = "Which devices get nothing when there are few rows? How does chunk cut them?"
            said = f"{call} gave {count(len(parts), 'part')}, expected {len(expected)}"
            raise Wrong(said, question)
        for number, (got, wanted) in enumerate(zip(parts, expected, strict=True)):
            if wrong := differ(got, wanted, f"part {number}"):
                raise Wrong(f"{call}: {wrong[0]}", wrong[1])


def check_gather(call: str, outputs: list, device: torch.device, expected: Any) -> None:
    """Judge what the outputs are joined to."""
    hint = "Tensors are joined along their rows. What about those without rows?"
    with judging():
        got = called(call, gather, list(outputs), device, hint=hint)
        if wrong := differ(got, expected, "the result"):
            raise Wrong(f"{call}: {wrong[0]}", wrong[1])


def check_flow() -> None:
    """Every row's gradient comes back through gather and scatter, once, with its own weight."""
    batch, weights = random_values(5, 7, 2).cpu().requires_grad_(), random_values(6, 7, 2).cpu()
    call = "7 rows on 3 devices, scattered and gathered"
    hint = "Do you use only tensor operations, so that autograd can follow?"
    with judging():
        more = {"hint": hint, "may_change": True}
        parts = called("scatter of 7 rows", scatter, (batch,), [CPU] * 3, **more)
        outputs = [part[0] for part in parts]
        whole = called("gather of 3 parts", gather, outputs, CPU, **more)
        if not whole.requires_grad:
            question = "Do the parts still belong to the batch's autograd graph?"
            raise Wrong(f"{call}: no gradient flows back to the batch", question)
        (whole * weights).sum().backward()
        if batch.grad is None or not torch.allclose(batch.grad, weights):
            found = None if batch.grad is None else batch.grad[0].tolist()
            said = f"{call}: the gradient of row 0 is {found}, expected {weights[0].tolist()}"
            raise Wrong(said, "How often does each row pass through? Are all operations torch's?")


for rows in (5, 10, 4, 3, 13, 1, 6, 7, 9):
    for number in (4, 2, 3, 1, 7):
        devices = [CPU] * number
        where = f"{count(rows, 'row')} on {count(number, 'device')}"
        for dtype, shape in ((torch.float32, (rows,)), (torch.float64, (rows, 2, 3))):
            batch = random_values(rows, *shape, dtype=dtype).cpu()
            check_scatter(f"scatter of {where}", batch, devices, cut(batch, devices))
places = [CPU, META, CPU, META]
batch = random_values(1, 7, 2).cpu()
check_scatter("scatter of 7 rows on cpu, meta, cpu, meta", batch, places, cut(batch, places))

one, two, lone = torch.arange(5), random_values(3, 5, 2).cpu(), torch.tensor(2.5)
firsts, seconds = cut(one, [CPU] * 3), cut(two, [CPU] * 3)
pairs = list(zip(firsts, seconds, strict=True))
for what, value, expected in (
    ("a tuple of tensors", (one, two), pairs),
    ("a list of tensors", [one, two], [list(pair) for pair in pairs]),
    ("a dict of tensors", {"x": one, "y": two}, [{"x": x, "y": y} for x, y in pairs]),
    ("a tuple in a dict", {"p": (one, [two])}, [{"p": (x, [y])} for x, y in pairs]),
    ("a tensor beside a number", (two, 0.5), [(y, 0.5) for y in seconds]),
    ("a tensor beside None", (two, None, "sum"), [(y, None, "sum") for y in seconds]),
    ("a tensor without dimensions", (two, lone), [(y, lone) for y in seconds]),
    ("inputs and no keywords", ((two,), {}), [((y,), {}) for y in seconds]),
    ("a tensor and empty ones", (two, (), []), [(y, (), []) for y in seconds]),
    ("a number alone", 7, [7, 7, 7]),
):
    check_scatter(f"scatter of {what} on 3 devices", value, [CPU] * 3, expected)

check_gather("gather of 3 parts of 5 rows", firsts, CPU, one)
check_gather("gather of parts (2, 2), (2, 2), (1, 2)", seconds, CPU, two)
check_gather("gather of one part", [two], CPU, two)
check_gather("gather of 3 parts on meta", seconds, META, two.to(META))
losses = [random_values(seed, dtype=torch.float64).cpu() for seed in range(4)]
check_gather("gather of 4 losses without dimensions", losses, CPU, torch.stack(losses))
check_gather("gather of tuples", pairs, CPU, (one, two))
check_gather("gather of lists", [[x, y] for x, y in pairs], CPU, [one, two])
check_gather("gather of dicts", [{"x": x, "y": y} for x, y in pairs], CPU, {"x": one, "y": two})
nested = [{"p": (x, [y]), "loss": loss} for (x, y), loss in zip(pairs, losses, strict=False)]
joined = {"p": (one, [two]), "loss": torch.stack(losses[:3])}
check_gather("gather of dicts with tuples and losses", nested, CPU, joined)
check_flow()
