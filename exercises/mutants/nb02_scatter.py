"""Wrong answers to 02.1, and right ones of another kind."""

MOVED = "part.to(device) for part, device"
FLAT = "leaves, structure = tree_flatten(value)"
THERE = "[part.to(device) for part in parts]"

MUTANTS = {
    "02.1": [
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
        ("gathered where it was", THERE, "list(parts)", "gather of 3 parts on meta"),
    ],
}

RIGHT = {
    "02.1": [
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
        )
    ],
}
