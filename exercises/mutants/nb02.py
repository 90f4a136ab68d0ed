"""Wrong answers to 02.2 and 02.3, and right ones of another kind."""

CALL = "outputs[number] = replicas[number](*inputs[number])"
RAISED = 'RuntimeError(f"replica {number}: {type(error).__name__}: {error}") from error'
WEIGHT = "(count / sum(rows))"
MEAN = f"sum(gradient * {WEIGHT} for gradient, count in pairs)"

MUTANTS = {
    "02.2": [
        (
            "one after the other",
            "thread.start()",
            "thread.start()\nthread.join()",
            "did not run at the same time",
        ),
        (
            "nobody waits",
            "thread.join()",
            "pass",
            "Does your function wait until every thread has ended?",
        ),
        (
            "in the order of arrival",
            "[None] * len(replicas)",
            "[]",
            CALL,
            "outputs.append(replicas[number](*inputs[number]))",
            "Are yours in the order in which they ended?",
        ),
        ("always records", "(records)", "(True)", "the replicas recorded gradients"),
        (
            "never records",
            "torch.set_grad_enabled(records)",
            "torch.no_grad()",
            "the replicas recorded no gradients",
        ),
        (
            "asked in the wrong thread",
            "(records)",
            "(torch.is_grad_enabled())",
            "in the right thread",
        ),
        ("exceptions are dropped", "if errors:", "if False:", "it raised nothing"),
        (
            "the exception itself",
            RAISED,
            "error",
            "it raised ValueError, expected a RuntimeError",
        ),
        ("no number", "replica {number}: ", "a replica: ", "not `replica 2`"),
        (
            "no message",
            ": {type(error).__name__}: {error}",
            " failed",
            "not what the replica said",
        ),
        (
            "who failed first in time",
            "min(errors.items(), key=lambda item: item[0])",
            "next(iter(errors.items()))",
            "Which replica should the caller look at first?",
        ),
        ("one argument", "(*inputs[number])", "(inputs[number])", ""),
    ],
    "02.3": [
        (
            "always float64",
            "gradient * (",
            "gradient.double() * (",
            "returned float64, expected float32",
        ),
        (
            "who diverged is left out too",
            "if count]",
            "if not gradient.isnan().any()]",
            WEIGHT,
            "(count / sum(count for _, count in pairs))",
            "expected nan",
        ),
        (
            "the rows are emptied",
            WEIGHT,
            "(count / total)",
            "return sum",
            "total = sum(rows)\nrows.clear()\nreturn sum",
            "changed its arguments",
        ),
        ("mean of means", MEAN, "torch.stack(gradients).mean(0)", "a mean of means"),
        ("sum of means", MEAN, "sum(gradients)", "a sum of means"),
        ("no division", WEIGHT, "count", "gradient of the sum over all rows"),
        ("divided by the devices", "sum(rows)", "len(rows)", "the divisor is wrong"),
        ("zero times nan", " if count]", "]", "What is 0 times nan?"),
        ("in place", f"gradient * {WEIGHT}", f"gradient.mul_{WEIGHT}", "changed its arguments"),
        (
            "single precision",
            "gradient * (",
            "gradient.float() * (",
            "In which dtype do you compute",
        ),
        (
            "divided by no rows",
            " if count]",
            "]",
            f"gradient * {WEIGHT}",
            "gradient / (sum(rows) / count)",
            "A device without rows has the gradient nan",
        ),
        ("weights upside down", WEIGHT, "(sum(rows) / count)", "what weight in the mean?"),
        ("a list", MEAN, f"[{MEAN}]", "returned a list, expected a tensor"),
    ],
}

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
