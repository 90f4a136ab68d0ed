"""Wrong answers to 07.3 and 07.4, and right ones of another kind."""

SHARE = ".chunk(dist.get_world_size())[dist.get_rank()]"
WEIGHT = "(len(part) / len(mine))"
ZERO = "optimizer.zero_grad()"
SYNC = "with nullcontext() if number == len(parts) - 1"
TIME = "m * (fixed + b * per_window) + finish"

MUTANTS = {
    "07.3": [
        (
            "share left",
            "size, seed=0",
            "size // dist.get_world_size(), seed=0",
            SHARE,
            "",
            "the same windows as all others",
        ),
        ("replica left", "= replica(", "= model(", "end with different parameters"),
        (
            "zero left",
            ZERO,
            "pass",
            SYNC,
            f"{ZERO}\n{SYNC}",
            "Only the last micro-batch of each step counts",
        ),
        (
            "a seed for each rank",
            "size, seed=0",
            "size // dist.get_world_size(), seed=dist.get_rank()",
            SHARE,
            "",
            "did not train on the batch of each step",
        ),
        ("the whole batch on every rank", SHARE, "", "windows through the model"),
        ("not divided", WEIGHT, "1", "2.00 times as long"),
        ("a message for each micro-batch", SYNC, "with nullcontext() if True", "once per step"),
        ("losses forgotten", "append(mean)", "append(0.0)", "over all its micro-batches"),
        ("two steps only", "range(steps)", "range(2)", "windows through the model"),
        (
            "divided by m, where chunk makes fewer parts",
            WEIGHT,
            "(1 / m)",
            "How much weight",
        ),
        (
            "never the last part, where chunk makes fewer",
            "len(parts) - 1",
            "m - 1",
            "When does DDP send?",
        ),
        ("a tuple", "return losses", "return tuple(losses)", "expected list"),
        (
            "nan on rank 1",
            "append(mean)",
            "append(mean * (float('nan') if dist.get_rank() else 1))",
            "returned",
        ),
    ],
    "07.4": [
        (
            "one rank",
            "m and not rest",
            "m and not rest and ranks == min(machine)",
            "There is a faster plan",
        ),
        (
            "memory ignored",
            "memory // window_bytes + 1",
            "batch + 1",
            "do not fit into the memory",
        ),
        ("rounded down", "m and not rest", "m", "are not 8 windows"),
        (
            "a message per pass",
            TIME,
            "m * (fixed + b * per_window + finish)",
            "You finish after every",
        ),
        ("no finish", " + finish", "", "What comes after the last pass?"),
        ("one fixed", TIME, "fixed + m * b * per_window + finish", "How many passes"),
        ("all ranks added", TIME, "ranks * " + TIME, "at the same time"),
        (
            "most ranks of equals",
            "min(plans)",
            "min(plans, key=lambda plan: (plan[0], -plan[1]))",
            "Which of the two has fewer ranks",
        ),
        ("a shorter tuple", "return ranks, b, m, milliseconds", "return ranks, b", "Four"),
    ],
}

RIGHT = {
    "07.3": [
        (
            "strided, and zeroed after the step",
            SHARE,
            "[dist.get_rank() :: dist.get_world_size()]",
            ZERO,
            "pass",
            "optimizer.step()",
            f"optimizer.step()\n{ZERO}",
        ),
    ],
    "07.4": [
        (
            "another way round",
            "min(plans)",
            "min(plans, key=lambda plan: (plan[0], plan[1], -plan[3]))",
        )
    ],
}
