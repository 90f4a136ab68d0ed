"""Plausible wrong answers to the exercises of notebook 02, and what each must be told.

For each exercise a list of (what is wrong, the answer's source, a part of the message).
"""

_SCATTER = """
import math
import torch

def _sizes(batch, count):
    size, larger = divmod(len(batch), count)
    return [size + (part < larger) for part in range(count)]

def _cut(batch, count):
    return batch.split(_sizes(batch, count))

def scatter(batch, count):
    {body}
"""

_MEAN = """
import torch

def mean_gradient(gradients, rows):
    {body}
"""


def _scatter(*lines: str) -> str:
    return _SCATTER.format(body="\n    ".join(lines))


def _mean(*lines: str) -> str:
    return _MEAN.format(body="\n    ".join(lines))


MUTANTS = {
    "02.1": [
        (
            "the batch emptied",
            _scatter(
                "parts = [part.clone() for part in _cut(batch, count)]",
                "if not batch.requires_grad: batch.zero_()",
                "return parts",
            ),
            "changed what it was given",
        ),
        (
            "no gradient where rows are few",
            _scatter(
                "parts = list(_cut(batch, count))",
                "return [p.detach() for p in parts] if len(batch) < count else parts",
            ),
            "still connected with the batch",
        ),
        (
            "a gradient twice as large",
            _scatter(
                "parts = _cut(batch, count)",
                "twice = [part + (part - part.detach()) for part in parts]",
                "return twice if batch.requires_grad else list(parts)",
            ),
            "how often?",
        ),
        ("torch's own", _scatter("return list(batch.tensor_split(count))"), "uses tensor_split"),
        ("as torch.chunk", _scatter("return list(batch.chunk(count))"), "gets no part at all"),
        (
            "through NumPy",
            _scatter(
                "import numpy",
                "ends = numpy.cumsum(_sizes(batch, count))",
                "parts = numpy.split(batch.numpy(), ends[:-1])",
                "return [torch.from_numpy(part) for part in parts]",
            ),
            "stay with tensors",
        ),
        (
            "the rest to the last",
            _scatter(
                "n = len(batch) // count",
                "return [batch[i * n : (i + 1) * n if i < count - 1 else None] "
                "for i in range(count)]",
            ),
            "the larger parts come first",
        ),
        (
            "the rest to the first",
            _scatter(
                "n, more = divmod(len(batch), count)",
                "return list(batch.split([n + more] + [n] * (count - 1)))",
            ),
            "the rows go that are left over",
        ),
        (
            "the rest is lost",
            _scatter(
                "n = len(batch) // count",
                "return [batch[i * n : (i + 1) * n] for i in range(count)]",
            ),
            "some are lost",
        ),
        (
            "rounded sizes",
            _scatter(
                "n = math.ceil(len(batch) / count)",
                "return [batch[i * n : (i + 1) * n] for i in range(count)]",
            ),
            "parts of [2, 2, 1, 0], expected [2, 1, 1, 1]",
        ),
        (
            "fixed size",
            _scatter("return list(batch.split(max(1, len(batch) // count)))"),
            "more parts than devices",
        ),
        (
            "dealt like cards",
            _scatter("return [batch[i::count] for i in range(count)]"),
            "In which order do the rows come back",
        ),
        (
            "cut off from autograd",
            _scatter("return [part.detach() for part in _cut(batch, count)]"),
            "still connected with the batch",
        ),
        (
            "flattened",
            _scatter("return [p.flatten(1) for p in _cut(batch.unsqueeze(-1), count)]"),
            "gave the shapes",
        ),
        (
            "an empty part of nothing",
            _scatter("return [p if len(p) else torch.empty(0) for p in _cut(batch, count)]"),
            "gave parts of torch.float32, expected torch.int64",
        ),
        (
            "an empty part without columns",
            _scatter(
                "parts = _cut(batch, count)",
                "return [p if len(p) else batch.new_empty(0) for p in parts]",
            ),
            "for an empty part too",
        ),
        (
            "a tensor",
            _scatter("return batch.repeat(count, 1)"),
            "returned a Tensor, expected a list",
        ),
        (
            "empty batch divides by zero",
            _scatter(
                "share = count / len(batch)",
                "return list(_cut(batch, count))",
            ),
            "raised ZeroDivisionError",
        ),
    ],
    "02.2": [
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
            "changed what it was given",
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
            "wrong divisor",
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
            "changed what it was given",
        ),
        (
            "single precision",
            _mean("return sum(g.float() * (n / sum(rows)) for g, n in zip(gradients, rows) if n)"),
            "Nearly right. In which dtype are the weights",
        ),
        (
            "weights in single precision",
            _mean(
                "weights = torch.tensor(rows) / sum(rows)",
                "return sum(g * w for g, w in zip(gradients, weights) if w)",
            ),
            "In which dtype are the weights",
        ),
        (
            "more devices than there are",
            _mean("return gradients[9] * rows[9]"),
            "raised IndexError: list index out of range",
        ),
        (
            "divided by no rows",
            _mean("return sum(g / (sum(rows) / n) for g, n in zip(gradients, rows))"),
            "Who had no rows brings nan",
        ),
        (
            "weights upside down",
            _mean("return sum(g * (sum(rows) / n) for g, n in zip(gradients, rows) if n)"),
            "What is its weight?",
        ),
        (
            "a list",
            _mean("return [sum(g * n for g, n in zip(gradients, rows) if n) / sum(rows)]"),
            "returned a list, expected a tensor",
        ),
    ],
}
