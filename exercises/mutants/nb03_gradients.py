"""Wrong answers to 03.2 and 03.1, and right ones of another kind."""

BACKWARDS = "reversed(range(len(sizes)))"
ROOM = "cap if buckets else first_cap"
FULL = "sizes[place] > room"
RETURN = "return buckets"
DIVIDE = "parameter.grad /= dist.get_world_size()"
SUM = "dist.all_reduce(parameter.grad)"
TRAINED = "if parameter.requires_grad:"

MUTANTS = {
    "03.2": [
        (
            "the caller's list is emptied",
            RETURN,
            "sizes.clear()\nreturn buckets",
            "changed its arguments",
        ),
        ("first parameter first", BACKWARDS, "range(len(sizes))", "begins at the last layer"),
        (
            "order within a bucket",
            RETURN,
            "return [sorted(each) for each in buckets]",
            "Whose gradient is complete first",
        ),
        ("order of the buckets", RETURN, "return buckets[::-1]", "Which is full first"),
        ("a cap that is passed", FULL, "room <= 0", "Look before you add, not after"),
        ("no small first bucket", ROOM, "cap", "its own cap"),
        ("all buckets small", ROOM, "first_cap", "Only the first bucket"),
        (
            "an empty bucket",
            RETURN,
            "return [[], *buckets]",
            "An empty bucket is an empty message",
        ),
        (
            "too large is left out",
            RETURN,
            "return [each for each in buckets if sum(sizes[place] for place in each) <= cap]",
            "exactly one bucket",
        ),
        ("room is one less", FULL, "sizes[place] >= room", "exactly full"),
        ("flat", RETURN, "return sum(buckets, [])", "a list of lists"),
    ],
    "03.1": [
        (
            "every rank's gradient in one message",
            DIVIDE,
            "every = parameter.grad.new_zeros(dist.get_world_size(), *parameter.shape)\n"
            "every[dist.get_rank()] = parameter.grad",
            SUM,
            "dist.all_reduce(every)\nparameter.grad = every.mean(0)",
            "What else do you send?",
        ),
        (
            "not waited for, with a sleep",
            SUM,
            "import time\ndist.all_reduce(parameter.grad, async_op=True)\ntime.sleep(0.3)",
            "backward did not wait for a request",
        ),
        (
            "a gradient for the frozen bias",
            TRAINED,
            "if not parameter.requires_grad:\n    parameter.grad = 0 * parameter\nelse:",
            "last.bias can be trained now, or has a gradient",
        ),
        (
            "the frozen bias is trained",
            TRAINED,
            "if parameter.requires_grad_() is parameter:",
            "last.bias can be trained now, or has a gradient",
        ),
        (
            "the parameter, as published",
            SUM,
            "dist.all_reduce(parameter.detach())",
            "backward changed a parameter",
        ),
        ("a sum", DIVIDE, "pass", "That is the sum"),
        ("divided twice", SUM, f"{SUM}\n{DIVIDE}", "Do you divide twice"),
        (
            "a copy is averaged",
            DIVIDE,
            "mean = parameter.grad / dist.get_world_size()",
            SUM,
            "dist.all_reduce(mean)",
            "this rank's own gradient",
        ),
        ("on rank 0 only", SUM, "dist.reduce(parameter.grad, 0)", "rank 1: the gradient"),
        ("gradient lost", SUM, f"{SUM}\nparameter.grad = None", "It is gone"),
        (
            "rank 0's for all",
            DIVIDE,
            "pass",
            SUM,
            "dist.broadcast(parameter.grad, 0)",
            "That is this rank's own",
        ),
        (
            "gathered, then averaged",
            DIVIDE,
            "every = [parameter.grad.clone() for _ in range(dist.get_world_size())]",
            SUM,
            "dist.all_gather(every, parameter.grad)\nparameter.grad = sum(every) / len(every)",
            "Which collective alone gives every rank the sum?",
        ),
        (
            "two collectives",
            SUM,
            f"{SUM}\ndist.broadcast(parameter.grad, 0)",
            "expected one all_reduce for each gradient",
        ),
        (
            "tied twice",
            "module.parameters()",
            "[p for _, p in module.named_parameters(remove_duplicate=False)]",
            "expected",
        ),
    ],
}

RIGHT = {
    "03.1": [
        (
            "a rank alone sends nothing",
            DIVIDE,
            f"if dist.get_world_size() == 1:\n    return\n{DIVIDE}",
        )
    ]
}
