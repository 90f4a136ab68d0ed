"""Wrong answers to 09.1 and 09.2, and right ones of another kind."""

CHUNKS = "inputs.chunk(microbatches), targets.chunk(microbatches)"
WEIGHT = "(len(x) / len(inputs))"
START = "total = 0.0"
WARM_UP = "min(stages - 1 - stage, microbatches)"
FORWARD = "if warm_up + i < microbatches:"
BACKWARD = 'order.append(Action("B", i))'

MUTANTS = {
    "09.1": [
        ("as published", WEIGHT, "1", "Yours is 4.00 times"),
        ("the number of parts", WEIGHT, "(1 / microbatches)", "their sizes are"),
        (
            "the loss as a mean of means",
            f"part = loss(model(x), y) * {WEIGHT}",
            f"mean = loss(model(x), y)\npart = mean * {WEIGHT}",
            "part.item()",
            "mean.item() / len(inputs.chunk(microbatches))",
            "How much weight does each part",
        ),
        ("the whole batch at once", CHUNKS, "[inputs], [targets]", "Pass every row once"),
        ("no backward", CHUNKS, "[inputs], [targets]", "part.backward()", "pass", "rows"),
        ("nothing returned", "return total", "return None", "returned None, expected"),
        (
            "the inputs scaled in place",
            "return total",
            "inputs.zero_()\nreturn total",
            "changed its arguments",
        ),
        (
            "takes the step too",
            "return total",
            "for each in model.parameters():\n"
            "    if each.grad is not None:\n"
            "        each.data -= each.grad\n"
            "return total",
            "parameters have changed",
        ),
        (
            "one backward at the end",
            "part.backward()",
            "total = total + part",
            "total += part.item()",
            "pass",
            "return total",
            "total.backward()\nreturn total.item()",
            "activations were held",
        ),
        (
            "one row at a time",
            CHUNKS,
            "inputs.split(1), targets.split(1)",
            "in at most m parts",
        ),
        ("evaluation mode", START, f"model.eval()\n{START}", "left in evaluation mode"),
        (
            "clears what was there",
            START,
            f"model.zero_grad()\n{START}",
            "not that of the whole batch",
        ),
    ],
    "09.2": [
        ("GPipe", WARM_UP, "microbatches", "How many micro-batches fit"),
        (
            "longer than m",
            WARM_UP,
            "stages - 1 - stage",
            "Is your warm-up longer than that?",
        ),
        (
            "the last backwards lost",
            "for i in range(microbatches):",
            "for i in range(microbatches - warm_up):",
            "Which one is missing?",
        ),
        (
            "backward first",
            BACKWARD,
            "",
            FORWARD,
            f"{BACKWARD}\n{FORWARD}",
            "expected",
        ),
        ("words", "return order", 'return ["F0", "B0"]', "expected a list of Action"),
        (
            "a tuple",
            "return order",
            "return tuple(order)",
            "returned a tuple, expected a list",
        ),
        ("the stage as the chunk", "warm_up + i)", "warm_up + i, stage)", "The chunk stays 0"),
    ],
}

RIGHT = {
    "09.1": [
        (
            "a sum over rows, with tensor_split",
            CHUNKS,
            "inputs.tensor_split(microbatches), targets.tensor_split(microbatches)",
            WEIGHT,
            "len(x)",
            "part.backward()",
            "(part / len(inputs)).backward()",
            "part.item()",
            "part.detach()",
            "return total",
            "return total / len(inputs)",
        ),
    ],
    "09.2": [
        (
            "by counting",
            """
from pipeline_actions import Action

def one_f_one_b(stage, stages, microbatches):
    order, forwards, backwards = [], 0, 0
    while backwards < microbatches:
        full = forwards - backwards == stages - stage
        if forwards < microbatches and not full:
            order.append(Action("F", forwards))
            forwards += 1
        else:
            order.append(Action("B", backwards))
            backwards += 1
    return order
""",
        ),
    ],
}
