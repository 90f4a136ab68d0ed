"""Plausible wrong answers to exercises 09.1 and 09.2, and right ones of another kind."""


def _accumulate(*body: str, back: str = "return total", scale: str = "len(x) / len(inputs)") -> str:
    head = "def accumulate(model, loss, inputs, targets, microbatches):"
    lines = body or (
        "total = 0.0",
        "parts = zip(inputs.chunk(microbatches), targets.chunk(microbatches))",
        "for x, y in parts:",
        f"    part = loss(model(x), y) * ({scale})",
        "    part.backward()",
        "    total += part.item()",
        back,
    )
    return "\n".join([head, *(f"    {line}" for line in lines)]) + "\n"


def _order(*body: str, head: str = "from pipeline_actions import Action") -> str:
    lines = "\n    ".join(body)
    return f"{head}\n\n\ndef one_f_one_b(stage, stages, microbatches):\n    {lines}\n"


def _alternating(warm_up: str, first: str = 'Action("F", warm_up + i)') -> str:
    return _order(
        f"warm_up = {warm_up}",
        'order = [Action("F", i) for i in range(warm_up)]',
        "for i in range(microbatches):",
        "    if warm_up + i < microbatches:",
        f"        order.append({first})",
        '    order.append(Action("B", i))',
        "return order",
    )


MUTANTS = {
    "09.1": [
        ("as published", _accumulate(scale="1"), "Yours is 4.00 times"),
        ("the number of parts", _accumulate(scale="1 / microbatches"), "their sizes are"),
        (
            "the loss as a mean of means",
            _accumulate(
                "parts = list(zip(inputs.chunk(microbatches), targets.chunk(microbatches)))",
                "losses = []",
                "for x, y in parts:",
                "    losses.append(loss(model(x), y))",
                "    (losses[-1] * len(x) / len(inputs)).backward()",
                "return sum(losses).item() / len(losses)",
            ),
            "How much weight does each part",
        ),
        (
            "the whole batch at once",
            _accumulate(
                "total = loss(model(inputs), targets)", "total.backward()", "return total.item()"
            ),
            "Pass every row once",
        ),
        ("no backward", _accumulate("return loss(model(inputs), targets).item()"), "rows"),
        ("nothing returned", _accumulate(back="return None"), "returned None, expected"),
        (
            "the inputs scaled in place",
            _accumulate(
                "total = 0.0",
                "for x, y in zip(inputs.chunk(microbatches), targets.chunk(microbatches)):",
                "    part = loss(model(x), y) * (len(x) / len(inputs))",
                "    part.backward()",
                "    total += part.item()",
                "inputs.zero_()",
                "return total",
            ),
            "changed its arguments",
        ),
        (
            "takes the step too",
            _accumulate(
                "total = 0.0",
                "for x, y in zip(inputs.chunk(microbatches), targets.chunk(microbatches)):",
                "    part = loss(model(x), y) * (len(x) / len(inputs))",
                "    part.backward()",
                "    total += part.item()",
                "for each in model.parameters():",
                "    if each.grad is not None:",
                "        each.data -= each.grad",
                "return total",
            ),
            "parameters have changed",
        ),
    ],
    "09.2": [
        (
            "GPipe",
            _order('return [Action(kind, i) for kind in "FB" for i in range(microbatches)]'),
            "How many micro-batches fit",
        ),
        (
            "longer than m",
            _alternating("stages - 1 - stage"),
            "Is your warm-up longer than that?",
        ),
        (
            "the last backwards lost",
            _order(
                "warm_up = min(stages - 1 - stage, microbatches)",
                'order = [Action("F", i) for i in range(warm_up)]',
                "for i in range(microbatches - warm_up):",
                '    order += [Action("F", warm_up + i), Action("B", i)]',
                "return order",
            ),
            "Which one is missing?",
        ),
        (
            "backward first",
            _order(
                "warm_up = min(stages - 1 - stage, microbatches)",
                'order = [Action("F", i) for i in range(warm_up)]',
                "for i in range(microbatches):",
                '    order.append(Action("B", i))',
                "    if warm_up + i < microbatches:",
                '        order.append(Action("F", warm_up + i))',
                "return order",
            ),
            "expected",
        ),
        ("words", _order('return ["F0", "B0"]'), "expected a list of Action"),
    ],
}

RIGHT = {
    "09.1": [
        (
            "a sum over rows, with tensor_split",
            _accumulate(
                "total = 0.0",
                "cut = inputs.tensor_split(microbatches), targets.tensor_split(microbatches)",
                "for x, y in zip(*cut):",
                "    part = loss(model(x), y) * len(x)",
                "    (part / len(inputs)).backward()",
                "    total += part.detach()",
                "return total / len(inputs)",
            ),
        ),
    ],
    "09.2": [
        (
            "by counting",
            _order(
                "order, forwards, backwards = [], 0, 0",
                "while backwards < microbatches:",
                "    full = forwards - backwards == stages - stage",
                "    if forwards < microbatches and not full:",
                '        order.append(Action("F", forwards))',
                "        forwards += 1",
                "    else:",
                '        order.append(Action("B", backwards))',
                "        backwards += 1",
                "return order",
            ),
        ),
    ],
}
