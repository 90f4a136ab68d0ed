"""02.1: scatter and gather."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_utils.checking.calls import called
from course_utils.checking.compare import NAN, Wrong, count, has_nan, kind, plain, unlike
from course_utils.checking.findings import random_values
from course_utils.checking.values import flat, is_plain, listed

TITLE = "scatter and gather"
PROVEN = (
    "scatter: 1 to 13 rows on 1 to 7 devices, nested values, each part on its own device",
    "gather: uneven parts, losses without dimensions, nested outputs, on the right device",
    "gradients flow back through both, and from a vector of losses to each loss",
)
WITHOUT = ("DataParallel", "comm")
OURS = '''"""Cut a batch into parts, one per device, and join the outputs again."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten


def scatter_tensor(tensor: Tensor, devices: list[torch.device]) -> list[Tensor]:
    """The parts of `tensor` (B, ...), cut as `chunk` cuts it, each on its own device.

    With few rows, such as 5 on 4 devices, you get fewer parts than devices.
    """
    parts = tensor.chunk(len(devices))
    return [part.to(device) for part, device in zip(parts, devices, strict=False)]


def gather_tensors(parts: Sequence[Tensor], device: torch.device) -> Tensor:
    """The parts row after row on `device`; losses () become a vector, one value per part.

    Raises:
        TypeError: a part is no tensor.
    """
    if not isinstance(parts[0], Tensor):
        raise TypeError(
            f"a replica returned {type(parts[0]).__name__}, which cannot be joined: return "
            "tensors, or tuples, lists and dicts of tensors"
        )
    there = [part.to(device) for part in parts]
    return torch.cat(there) if there[0].dim() else torch.stack(there)


def scatter(value: Any, devices: list[torch.device]) -> list[Any]:
    """One part of `value` per device; what can't be cut, such as a number, goes to all."""
    leaves, structure = tree_flatten(value)
    can_be_cut = [isinstance(leaf, Tensor) and leaf.dim() > 0 for leaf in leaves]
    cut = [
        scatter_tensor(leaf, devices) if can else [leaf] * len(devices)
        for leaf, can in zip(leaves, can_be_cut, strict=True)
    ]
    parts = zip(devices, *cut, strict=False)  # as many as the tensor with the fewest
    return [tree_unflatten(part, structure) for _, *part in parts]


def gather(outputs: list[Any], device: torch.device) -> Any:
    """Join the outputs of the replicas, which all have the same structure."""
    return tree_map(lambda *parts: gather_tensors(parts, device), *outputs)
'''
CPU, META = torch.device("cpu"), torch.device("meta")  # meta: a device that every machine has


def cases(scatter: Callable, gather: Callable) -> None:
    """Parts of tensors and of nested values, joined outputs, devices, and the gradient."""
    for rows in (5, 10, 4, 3, 13, 1, 6, 7, 9):
        for number in (4, 2, 3, 1, 7):
            devices = [CPU] * number
            where = f"{count(rows, 'row')} on {count(number, 'device')}"
            for dtype, shape in ((torch.float32, (rows,)), (torch.float64, (rows, 2, 3))):
                batch = random_values(rows, *shape, dtype=dtype).cpu()
                look_at_parts(scatter, where, batch, devices, cut(batch, devices))
    places = [CPU, META, CPU, META]
    batch = random_values(1, 7, 2).cpu()
    on = "7 rows on cpu, meta, cpu, meta"
    look_at_parts(scatter, on, batch, places, cut(batch, places))

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
        look_at_parts(scatter, f"{what} on 3 devices", value, [CPU] * 3, expected)

    losses = [random_values(seed, dtype=torch.float64).cpu() for seed in range(4)]
    nested = [{"p": (x, [y]), "loss": loss} for (x, y), loss in zip(pairs, losses, strict=False)]
    joined = {"p": (one, [two]), "loss": torch.stack(losses[:3])}
    for what, outputs, device, whole in (
        ("3 parts of 5 rows", firsts, CPU, one),
        ("parts (2, 2), (2, 2), (1, 2)", seconds, CPU, two),
        ("one part", [two], CPU, two),
        ("3 parts on meta", seconds, META, two.to(META)),
        ("parts on cpu, meta, cpu", cut(two, [CPU, META, CPU]), META, two.to(META)),
        ("4 losses without dimensions", losses, CPU, torch.stack(losses)),
        ("one loss without dimensions", losses[:1], CPU, losses[0][None]),
        ("tuples", pairs, CPU, (one, two)),
        ("lists", [[x, y] for x, y in pairs], CPU, [one, two]),
        ("dicts", [{"x": x, "y": y} for x, y in pairs], CPU, {"x": one, "y": two}),
        ("dicts with tuples and losses", nested, CPU, joined),
    ):
        look_at_whole(gather, what, outputs, device, whole)
    look_at_gradients(scatter, gather)


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


def look_at_parts(scatter: Callable, what: str, value: Any, devices: list, expected: list) -> None:
    """Judge every part, with its structure, device and values."""
    call = f"scatter of {what}"
    hint = "With 5 rows on 4 devices, how many parts does chunk make?"
    answer = called(call, scatter, value, list(devices), hint=hint)
    parts = None if torch.is_tensor(answer) else listed(answer)
    if parts is None:
        raise Wrong(f"{call} returned {kind(answer)}, expected a list of parts", hint)
    if len(parts) != len(expected):
        question = "Which devices get nothing when there are few rows? How does chunk cut them?"
        said = f"{call} gave {count(len(parts), 'part')}, expected {len(expected)}"
        raise Wrong(said, question)
    for number, (got, wanted) in enumerate(zip(parts, expected, strict=True)):
        if wrong := differ(got, wanted, f"part {number}"):
            raise Wrong(f"{call}: {wrong[0]}", wrong[1])


def look_at_whole(
    gather: Callable, what: str, outputs: list, device: torch.device, expected: Any
) -> None:
    """Judge what the outputs are joined to."""
    call = f"gather of {what}"
    hint = "Tensors are joined along their rows. What about those without rows?"
    got = called(call, gather, list(outputs), device, hint=hint)
    if wrong := differ(got, expected, "the result"):
        raise Wrong(f"{call}: {wrong[0]}", wrong[1])


def look_at_gradients(scatter: Callable, gather: Callable) -> None:
    """Every row's gradient comes back, once, with its own weight, and so does every loss's."""
    hint = "Do you use only tensor operations, so that autograd can follow?"
    more = {"hint": hint, "may_change": True}
    batch, weights = random_values(5, 7, 2).cpu().requires_grad_(), random_values(6, 7, 2).cpu()
    parts = list(called("scatter of 7 rows", scatter, (batch,), [CPU] * 3, **more))
    outputs = [part[0] for part in parts]
    whole = called("gather of 3 parts", gather, outputs, CPU, **more)
    question = "Do the parts still belong to the batch's autograd graph?"
    call = "7 rows on 3 devices, scattered and gathered"
    flows(call, whole, batch, weights, "batch", "row 0", question)
    losses, weights = random_values(7, 4).cpu().requires_grad_(), random_values(8, 4).cpu()
    whole = called("gather of 4 losses", gather, list(losses.unbind()), CPU, **more)
    question = "A new tensor of the losses' numbers is no part of their autograd graph. What joins "
    question += "the losses themselves?"
    flows("4 losses gathered", whole, losses, weights, "losses", "loss 0", question)


def flows(
    call: str, whole: Tensor, start: Tensor, weights: Tensor, named: str, first: str, question: str
) -> None:
    """Judge the gradient that comes back from the joined outputs to where they came from."""
    if not whole.requires_grad:
        raise Wrong(f"{call}: no gradient flows back to the {named}", question)
    (whole * weights).sum().backward()
    if start.grad is None or not torch.allclose(start.grad, weights):
        found = None if start.grad is None else start.grad[0].tolist()
        said = f"{call}: the gradient of {first} is {found}, expected {weights[0].tolist()}"
        raise Wrong(said, "How often does each row pass through? Are all operations torch's?")


MOVED = "part.to(device) for part, device"
FLAT = "leaves, structure = tree_flatten(value)"
THERE = "[part.to(device) for part in parts]"

WRONG = [
    ("stays where it was", MOVED, "part for part, device", "is on cpu, expected meta"),
    ("as tensor_split", "tensor.chunk(", "tensor.tensor_split(", "How does chunk cut them?"),
    (
        "dealt like cards",
        "tensor.chunk(len(devices))",
        "[tensor[i :: len(devices)] for i in range(min(len(tensor), len(devices)))]",
        "gave 4 parts",
    ),
    (
        "cut off from autograd",
        MOVED,
        "part.detach().to(device) for part, device",
        "belong to the batch's autograd graph",
    ),
    ("one number cut", " and leaf.dim() > 0", "", "chunk expects at least"),
    (
        "an empty tuple is lost",
        FLAT,
        "if isinstance(value, (tuple, list)):\n"
        "    cut = [scatter(each, devices) for each in value]\n"
        "    return [type(value)(part) for part in zip(*cut)]\n" + FLAT,
        "gave 0 parts, expected 3",
    ),
    (
        "a tuple becomes a list",
        FLAT,
        f"value = list(value) if isinstance(value, tuple) else value\n{FLAT}",
        "stays a tuple",
    ),
    (
        "dicts go whole",
        "tree_flatten(value)",
        "tree_flatten(value, is_leaf=lambda each: isinstance(each, dict))",
        "has the shape (5,), expected (2,)",
    ),
    (
        "the dict is emptied",
        FLAT,
        FLAT + "\nif isinstance(value, dict):\n    value.clear()",
        "",
    ),
    ("joined in the other order", THERE, THERE + "[::-1]", "order"),
    (
        "stacked",
        "torch.cat(there) if there[0].dim() else ",
        "",
        "raised RuntimeError: stack expects each tensor to be equal size",
    ),
    (
        "losses are added up",
        "torch.stack(there)",
        "sum(there)",
        "gather of 4 losses without dimensions: the result has the shape ()",
    ),
    (
        "single precision",
        MOVED,
        "part.to(device).float() for part, device",
        "is torch.float32, expected torch.float64",
    ),
    (
        "a gradient twice as large",
        "torch.cat(there)",
        "(lambda w: w + (w - w.detach()))(torch.cat(there))",
        "How often does each row pass through?",
    ),
    (
        "losses as new numbers",
        "torch.stack(there)",
        "torch.tensor([each.item() for each in there], dtype=there[0].dtype)",
        "4 losses gathered: no gradient flows back",
    ),
    (
        "losses copied",
        "torch.stack(there)",
        "torch.tensor(there, dtype=there[0].dtype, device=device)",
        "4 losses gathered: no gradient flows back",
    ),
    (
        "only the last loss learns",
        "torch.stack(there)",
        "torch.stack([*(each.detach() for each in there[:-1]), there[-1]])",
        "the gradient of loss 0 is 0.0",
    ),
    (
        "one loss stays without dimensions",
        "torch.stack(there)",
        "torch.stack(there) if len(there) > 1 else there[0]",
        "gather of one loss without dimensions: the result has the shape (), expected (1,)",
    ),
    (
        "other values",
        "->",
        "lambda whole: -whole if torch.is_tensor(whole) else whole",
        "values of a row",
    ),
    (
        "another order",
        "->",
        "lambda whole: whole.flip(0) if torch.is_tensor(whole) else whole",
        "which order",
    ),
    (
        "joined first, moved then",
        f"there = {THERE}\n    return torch.cat(there) if there[0].dim() else torch.stack(there)",
        "there = torch.cat(list(parts)) if parts[0].dim() else torch.stack(list(parts))\n"
        "return there.to(device)",
        "gather of parts on cpu, meta, cpu raised RuntimeError",
    ),
    ("gathered where it was", THERE, "list(parts)", "gather of 3 parts on meta"),
]
RIGHT = [
    (
        "a generator of parts",
        "[tree_unflatten(part, structure) for _, *part in parts]",
        "(tree_unflatten(part, structure) for _, *part in parts)",
    ),
    (
        "losses as vectors of one",
        "return torch.cat(there) if there[0].dim() else torch.stack(there)",
        "return torch.cat([each.reshape(-1) if not each.dim() else each for each in there])",
    ),
    (
        "by slices, with map and match",
        """
import math
import torch

def scatter(value, devices):
    match value:
        case torch.Tensor() if value.ndim:
            n = math.ceil(len(value) / len(devices))
            return [value[k * n : k * n + n].to(d) for k, d in enumerate(devices)
                    if k * n < len(value)]
        case dict() if value:
            parts = {key: scatter(each, devices) for key, each in value.items()}
            number = min(map(len, parts.values()))
            return [{key: part[k] for key, part in parts.items()} for k in range(number)]
        case (tuple() | list()) if value:
            return list(map(type(value), zip(*[scatter(each, devices) for each in value])))
    return [value for _ in devices]

def gather(outputs, device):
    match outputs[0]:
        case torch.Tensor():
            return torch.cat([torch.atleast_1d(each).to(device) for each in outputs])
        case dict():
            return {k: gather([each[k] for each in outputs], device) for k in outputs[0]}
        case tuple() | list():
            number = range(len(outputs[0]))
            return type(outputs[0])([gather([e[i] for e in outputs], device) for i in number])
""",
    ),
]
