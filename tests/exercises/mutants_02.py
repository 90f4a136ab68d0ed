"""Plausible wrong answers to exercises 02.2 and 02.3, and the hint that each must get.

For each exercise a list of (what is wrong, the answer's source, a part of the message).
"""

from tests.exercises.mutants_02_scatter import but

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


def _mean(*lines: str) -> str:
    return _MEAN.format(body="\n    ".join(lines))


RIGHT = {
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
    "02.2": [
        (
            "one after the other",
            but(_APPLY, "thread.start()\n", "thread.start()\n        thread.join()\n"),
            "did not run at the same time",
        ),
        (
            "nobody waits",
            but(_APPLY, "thread.join()", "pass"),
            "Does your function wait until every thread has ended?",
        ),
        (
            "in the order of arrival",
            but(_APPLY, "[None] * len(replicas)", "[]").replace(
                "outputs[k] = replicas[k](*inputs[k])",
                "outputs.append(replicas[k](*inputs[k]))",
            ),
            "Are yours in the order in which they ended?",
        ),
        (
            "always records",
            but(_APPLY, "records, outputs", "_, outputs").replace("(records)", "(True)"),
            "the replicas recorded gradients",
        ),
        (
            "never records",
            but(_APPLY, "torch.set_grad_enabled(records)", "torch.no_grad()"),
            "the replicas recorded no gradients",
        ),
        (
            "asked in the wrong thread",
            but(_APPLY, "(records)", "(torch.is_grad_enabled())"),
            "in the right thread",
        ),
        (
            "exceptions are dropped",
            but(_APPLY, "sorted(errors.items())", "()"),
            "it raised nothing",
        ),
        (
            "the exception itself",
            but(_APPLY, 'RuntimeError(f"replica {k}: {error}") from error', "error"),
            "it raised ValueError, expected a RuntimeError",
        ),
        ("no number", but(_APPLY, "replica {k}: ", "a replica: "), "not `replica 2`"),
        ("no message", but(_APPLY, "{k}: {error}", "{k} failed"), "not what the replica said"),
        (
            "who failed first in time",
            but(_APPLY, "sorted(errors.items())", "errors.items()"),
            "Which replica should the caller look at first?",
        ),
        ("one argument", but(_APPLY, "(*inputs[k])", "(inputs[k])"), ""),
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
