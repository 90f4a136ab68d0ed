"""Plausible wrong answers to 07.3 and 07.4, and what each must be told.

For each exercise a list of (what is wrong, the answer's source, a part of the message).
"""

from course_utils.notebook import cells

SHARE = (
    "batch(ids, 32, size // dist.get_world_size(), seed=0, step=step)",
    "batch(ids, 32, size, 0, step).chunk(dist.get_world_size())[dist.get_rank()]",
)
ZERO = "            optimizer.zero_grad()\n"
BUGS_LEFT = [  # what is left, what is mended, what is said
    ("share", ("zero", "replica"), "the same windows as all others"),
    ("replica", ("share", "zero"), "end with different parameters"),
    ("zero", ("share", "replica"), "Only the last micro-batch of each step counts"),
]

_PLAN = """
def plan(batch, memory, window_bytes, machine):
    plans = []
    for n, (f, w, e) in machine.items():
        for b in range(1, batch + 1):
            m = batch // (n * b)
            if ({ranks}) and ({whole}) and m and ({fits}):
                plans.append(({time}, n, m, b))
    if not plans:
        raise ValueError
    time, n, m, b = min(plans, key=lambda p: ({best}))
    return n, b, m, time
"""


def repaired(*mended: str) -> str:
    """The notebook's faulty function with some of its bugs mended."""
    source = cells.sources()["exercise_07_3.py"]
    if "share" in mended:
        source = source.replace(*SHARE)
    if "zero" in mended:
        source = source.replace(ZERO, "").replace("mean = 0.0", "mean = 0.0; optimizer.zero_grad()")
    return source.replace("= model(", "= replica(") if "replica" in mended else source


def _plan(
    ranks="True",
    whole="batch % (n * b) == 0",
    fits="b * window_bytes <= memory",
    time="m * (f + b * w) + e",
    best="p",
) -> str:
    return _PLAN.format(ranks=ranks, whole=whole, fits=fits, time=time, best=best)


def _mended() -> str:
    return repaired("share", "zero", "replica")


MUTANTS = {
    "07.3": [
        *((f"{left} left", repaired(*mend), said) for left, mend, said in BUGS_LEFT),
        (
            "a seed for each rank",
            repaired("zero", "replica").replace("seed=0", "seed=dist.get_rank()"),
            "did not train on the batch of each step",
        ),
        (
            "the whole batch on every rank",
            repaired("zero", "replica").replace("size // dist.get_world_size()", "size"),
            "windows through the model",
        ),
        (
            "not divided",
            repaired("share", "zero", "replica").replace("(len(part) / len(mine))", "1"),
            "2.00 times as long",
        ),
        (
            "a message for each micro-batch",
            repaired("share", "zero", "replica").replace("if number == len(parts) - 1", "if True"),
            "once per step",
        ),
        (
            "losses forgotten",
            repaired("share", "zero", "replica").replace("append(mean)", "append(0.0)"),
            "over all its micro-batches",
        ),
        (
            "two steps only",
            _mended().replace("range(steps)", "range(2)"),
            "windows through the model",
        ),
        (
            "divided by m, where chunk makes fewer parts",
            _mended().replace("(len(part) / len(mine))", "(1 / m)"),
            "How much weight",
        ),
        (
            "never the last part, where chunk makes fewer",
            _mended().replace("len(parts) - 1", "m - 1"),
            "When does DDP send?",
        ),
        ("a tuple", _mended().replace("return losses", "return tuple(losses)"), "expected list"),
        (
            "nan on rank 1",
            _mended().replace(
                "append(mean)", "append(mean * (float('nan') if dist.get_rank() else 1))"
            ),
            "returned",
        ),
    ],
    "07.4": [
        ("one rank", _plan("n == min(machine)"), "There is a faster plan"),
        ("memory ignored", _plan(fits="True"), "do not fit into the memory"),
        ("rounded down", _plan(whole="b <= batch // n"), "are not 8 windows"),
        ("a message per pass", _plan(time="m * (f + b * w + e)"), "You finish after every"),
        ("no finish", _plan(time="m * (f + b * w)"), "What comes after the last pass?"),
        ("one fixed", _plan(time="f + m * b * w + e"), "How many passes"),
        ("all ranks added", _plan(time="n * m * (f + b * w) + e"), "at the same time"),
        ("most ranks of equals", _plan(best="p[0], -p[1]"), "Which of the two has fewer ranks"),
        (
            "a shorter tuple",
            _plan() + "\n_all = plan\ndef two(*a):\n    return _all(*a)[:2]",
            "Four",
        ),
    ],
}
RIGHT = {
    "07.3": [
        (
            "strided, and zeroed after the step",
            repaired("zero", "replica")
            .replace(SHARE[0], "batch(ids, 32, size, 0, step)[dist.get_rank() :: WORLD]")
            .replace("replica = DDP", "WORLD = dist.get_world_size()\n    replica = DDP"),
        ),
    ],
    "07.4": [("another way round", _plan(best="p[0], p[1], -p[3]"))],
}
