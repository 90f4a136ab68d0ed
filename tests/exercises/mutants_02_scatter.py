"""Plausible wrong answers to exercise 02.1, and the hint that each must get.

A list of (what is wrong, the answer's source, a part of the message), and in `RIGHT` of (what is
other than in the solution, the answer's source).
"""

_PARTS = """
import torch
from torch import Tensor

def scatter(value, devices):
    if isinstance(value, Tensor) and value.dim():
        return [part.to(device) for part, device in zip(value.chunk(len(devices)), devices)]
    if isinstance(value, dict) and value:
        parts = scatter(list(value.values()), devices)
        return [dict(zip(value, part)) for part in parts]
    if isinstance(value, (tuple, list)) and value:
        return [type(value)(part) for part in zip(*(scatter(each, devices) for each in value))]
    return [value] * len(devices)

def gather(outputs, device):
    first = outputs[0]
    if isinstance(first, Tensor):
        there = [output.to(device) for output in outputs]
        return torch.cat(there) if first.dim() else torch.stack(there)
    if isinstance(first, dict):
        return {key: gather([output[key] for output in outputs], device) for key in first}
    return type(first)(gather(entries, device) for entries in zip(*outputs))
"""


def but(right: str, before: str, after: str) -> str:
    """A right answer with one mistake."""
    assert before in right, before
    return right.replace(before, after)


_DEALT = "[value[i :: len(devices)] for i in range(min(len(value), len(devices)))]"
_FEW = "gave 0 parts, expected 3"
_REVERSED = "in outputs][::-1]\n        ret"

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

MUTANTS = {
    "02.1": [
        (
            "stays where it was",
            but(_PARTS, "part.to(device) for", "part for"),
            "is on cpu, expected meta",
        ),
        (
            "as tensor_split",
            but(_PARTS, "value.chunk(", "value.tensor_split("),
            "How does chunk cut them?",
        ),
        ("dealt like cards", but(_PARTS, "value.chunk(len(devices))", _DEALT), "gave 4 parts"),
        (
            "cut off from autograd",
            but(_PARTS, "part.to(device) for", "part.detach().to(device) for"),
            "belong to the batch's autograd graph",
        ),
        ("one number cut", but(_PARTS, " and value.dim():", ":"), "chunk expects at least"),
        (
            "an empty tuple is lost",
            but(_PARTS, "(tuple, list)) and value", "(tuple, list))"),
            _FEW,
        ),
        (
            "a tuple becomes a list",
            but(_PARTS, "type(value)(part)", "list(part)"),
            "stays a tuple",
        ),
        (
            "dicts go whole",
            but(_PARTS, "isinstance(value, dict) and value", "False"),
            "has the shape (5,), expected (2,)",
        ),
        (
            "the dict is emptied",
            but(_PARTS, "list(value.values())", "[value.pop(key) for key in list(value)]"),
            "",
        ),
        ("joined in the other order", but(_PARTS, "in outputs]\n        ret", _REVERSED), "order"),
        (
            "stacked",
            but(_PARTS, "torch.cat(there) if first.dim() else ", ""),
            "raised RuntimeError: stack expects each tensor to be equal size",
        ),
        (
            "losses are added up",
            but(_PARTS, "torch.stack(there)", "sum(there)"),
            "gather of 4 losses without dimensions: the result has the shape ()",
        ),
        (
            "single precision",
            but(_PARTS, "part.to(device) for", "part.to(device).float() for"),
            "is torch.float32, expected torch.float64",
        ),
        (
            "a gradient twice as large",
            but(_PARTS, "torch.cat(there)", "(lambda w: w + (w - w.detach()))(torch.cat(there))"),
            "How often does each row pass through?",
        ),
        (
            "gathered where it was",
            but(_PARTS, "output.to(device) for", "output for"),
            "gather of 3 parts on meta",
        ),
    ],
}
