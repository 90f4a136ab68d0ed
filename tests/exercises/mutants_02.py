"""Plausible wrong answers to the exercises of notebook 02, and the hint that each must get.

For each exercise a list of (what is wrong, the answer's source, a part of the message).
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

_APPLY = """
import torch
from threading import Thread

def parallel_apply(replicas, inputs):
    records, outputs, errors = torch.is_grad_enabled(), [None] * len(replicas), {}

    def run(k):
        try:
            with torch.set_grad_enabled(records):
                outputs[k] = replicas[k](*inputs[k])
        except Exception as error:
            errors[k] = error

    threads = [Thread(target=run, args=(k,)) for k in range(len(replicas))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, error in sorted(errors.items()):
        raise RuntimeError(f"replica {k}: {error}") from error
    return outputs
"""

_MEAN = """
import torch

def mean_gradient(gradients, rows):
    {body}
"""


def _but(right: str, before: str, after: str) -> str:
    """A right answer with one mistake."""
    assert before in right, before
    return right.replace(before, after)


def _mean(*lines: str) -> str:
    return _MEAN.format(body="\n    ".join(lines))


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
    "02.2": [
        (
            "with a pool",
            """
from concurrent.futures import ThreadPoolExecutor
import torch

def parallel_apply(replicas, inputs):
    records = torch.is_grad_enabled()

    def run(replica, arguments):
        with torch.set_grad_enabled(records):
            return replica(*arguments)

    with ThreadPoolExecutor(len(replicas)) as pool:
        futures = [pool.submit(run, *each) for each in zip(replicas, inputs)]
    for k, future in enumerate(futures):
        if future.exception():
            raise RuntimeError(f"replica {k} said {future.exception()}") from future.exception()
    return [future.result() for future in futures]
""",
        )
    ],
}

MUTANTS = {
    "02.1": [
        (
            "stays where it was",
            _but(_PARTS, "part.to(device) for", "part for"),
            "is on cpu, expected meta",
        ),
        (
            "as tensor_split",
            _but(_PARTS, "value.chunk(", "value.tensor_split("),
            "How does chunk cut them?",
        ),
        ("dealt like cards", _but(_PARTS, "value.chunk(len(devices))", _DEALT), "gave 4 parts"),
        (
            "cut off from autograd",
            _but(_PARTS, "part.to(device) for", "part.detach().to(device) for"),
            "belong to the batch's autograd graph",
        ),
        ("one number cut", _but(_PARTS, " and value.dim():", ":"), "chunk expects at least"),
        (
            "an empty tuple is lost",
            _but(_PARTS, "(tuple, list)) and value", "(tuple, list))"),
            _FEW,
        ),
        (
            "a tuple becomes a list",
            _but(_PARTS, "type(value)(part)", "list(part)"),
            "stays a tuple",
        ),
        (
            "dicts go whole",
            _but(_PARTS, "isinstance(value, dict) and value", "False"),
            "has the shape (5,), expected (2,)",
        ),
        (
            "the dict is emptied",
            _but(_PARTS, "list(value.values())", "[value.pop(key) for key in list(value)]"),
            "",
        ),
        ("joined in the other order", _but(_PARTS, "in outputs]\n        ret", _REVERSED), "order"),
        (
            "stacked",
            _but(_PARTS, "torch.cat(there) if first.dim() else ", ""),
            "raised RuntimeError: stack expects each tensor to be equal size",
        ),
        (
            "losses are added up",
            _but(_PARTS, "torch.stack(there)", "sum(there)"),
            "gather of 4 losses without dimensions: the result has the shape ()",
        ),
        (
            "single precision",
            _but(_PARTS, "part.to(device) for", "part.to(device).float() for"),
            "is torch.float32, expected torch.float64",
        ),
        (
            "a gradient twice as large",
            _but(_PARTS, "torch.cat(there)", "(lambda w: w + (w - w.detach()))(torch.cat(there))"),
            "How often does each row pass through?",
        ),
        (
            "gathered where it was",
            _but(_PARTS, "output.to(device) for", "output for"),
            "gather of 3 parts on meta",
        ),
    ],
    "02.2": [
        ("torch's own", "from torch.nn.parallel import parallel_apply\n", "uses parallel_apply"),
        (
            "one after the other",
            _but(_APPLY, "thread.start()\n", "thread.start()\n        thread.join()\n"),
            "did not run at the same time",
        ),
        (
            "no threads",
            _but(_APPLY, "thread.start()", "thread.run()").replace("thread.join()", "pass"),
            "did not run at the same time",
        ),
        (
            "nobody waits",
            _but(_APPLY, "thread.join()", "pass"),
            "Does your function wait until every thread has ended?",
        ),
        (
            "in the order of arrival",
            _but(_APPLY, "[None] * len(replicas)", "[]").replace(
                "outputs[k] = replicas[k](*inputs[k])",
                "outputs.append(replicas[k](*inputs[k]))",
            ),
            "Are yours in the order in which they ended?",
        ),
        (
            "always records",
            _but(_APPLY, "records, outputs", "_, outputs").replace("(records)", "(True)"),
            "the replicas recorded gradients",
        ),
        (
            "never records",
            _but(_APPLY, "torch.set_grad_enabled(records)", "torch.no_grad()"),
            "the replicas recorded no gradients",
        ),
        (
            "asked in the wrong thread",
            _but(_APPLY, "(records)", "(torch.is_grad_enabled())"),
            "in the right thread",
        ),
        (
            "exceptions are dropped",
            _but(_APPLY, "sorted(errors.items())", "()"),
            "it raised nothing",
        ),
        (
            "the exception itself",
            _but(_APPLY, 'RuntimeError(f"replica {k}: {error}") from error', "error"),
            "it raised ValueError, expected a RuntimeError",
        ),
        ("no number", _but(_APPLY, "replica {k}: ", "a replica: "), "not `replica 2`"),
        ("no message", _but(_APPLY, "{k}: {error}", "{k} failed"), "not what the replica said"),
        (
            "who failed first in time",
            _but(_APPLY, "sorted(errors.items())", "errors.items()"),
            "Which replica should the caller look at first?",
        ),
        ("one argument", _but(_APPLY, "(*inputs[k])", "(inputs[k])"), ""),
    ],
    "02.3": [
        (
            "always float64",
            _mean("return sum(g.double() * n for g, n in zip(gradients, rows) if n) / sum(rows)"),
            "returned float64, expected float32",
        ),
        (
            "who diverged is left out too",
            _mean(
                "pairs = [(g, n) for g, n in zip(gradients, rows) if not g.isnan().any()]",
                "return sum(g * n for g, n in pairs) / sum(n for _, n in pairs)",
            ),
            "expected nan",
        ),
        (
            "the rows are emptied",
            _mean(
                "total, mean = sum(rows), 0",
                "for g in reversed(gradients):",
                "    n = rows.pop()",
                "    mean = mean + g * n / total if n else mean",
                "return mean",
            ),
            "changed its arguments",
        ),
        ("mean of means", _mean("return torch.stack(gradients).mean(0)"), "a mean of means"),
        ("sum of means", _mean("return sum(gradients)"), "a sum of means"),
        (
            "no division",
            _mean("return sum(g * n for g, n in zip(gradients, rows) if n)"),
            "gradient of the sum over all rows",
        ),
        (
            "divided by the devices",
            _mean("return sum(g * n for g, n in zip(gradients, rows) if n) / len(rows)"),
            "the divisor is wrong",
        ),
        (
            "zero times nan",
            _mean("return sum(g * n for g, n in zip(gradients, rows)) / sum(rows)"),
            "What is 0 times nan?",
        ),
        (
            "nan becomes 0 in a mean of means",
            _mean("return torch.stack(gradients).nan_to_num().mean(0)"),
            "a mean of means",
        ),
        (
            "in place",
            _mean(
                "for g, n in zip(gradients, rows):",
                "    g.mul_(n / sum(rows)) if n else g.zero_()",
                "return sum(gradients)",
            ),
            "changed its arguments",
        ),
        (
            "single precision",
            _mean("return sum(g.float() * (n / sum(rows)) for g, n in zip(gradients, rows) if n)"),
            "Nearly right. Which dtype do your weights",
        ),
        (
            "weights in single precision",
            _mean(
                "weights = torch.tensor(rows) / sum(rows)",
                "return sum(g * w for g, w in zip(gradients, weights) if w)",
            ),
            "Which dtype do your weights",
        ),
        (
            "more devices than there are",
            _mean("return gradients[9] * rows[9]"),
            "raised IndexError: list index out of range",
        ),
        (
            "divided by no rows",
            _mean("return sum(g / (sum(rows) / n) for g, n in zip(gradients, rows))"),
            "A device without rows has the gradient nan",
        ),
        (
            "weights upside down",
            _mean("return sum(g * (sum(rows) / n) for g, n in zip(gradients, rows) if n)"),
            "what weight in the mean?",
        ),
        (
            "a list",
            _mean("return [sum(g * n for g, n in zip(gradients, rows) if n) / sum(rows)]"),
            "returned a list, expected a tensor",
        ),
    ],
}
