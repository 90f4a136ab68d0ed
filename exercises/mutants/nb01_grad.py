"""Wrong answers to 01.1, and right ones of another kind."""

ONE = "Variable(torch.ones_like(result.value))"
ORDER = "reversed(list(gradient_tape))"
ADD = "gradients[name] = gradients[name] + part if name in gradients else part"
EACH = "gradients.get(each.name)"
ALL = f"[{EACH} for each in wanted]"

MUTANTS = {
    "01.1": [
        ("the last use wins", ADD, "gradients[name] = part", "the gradient that came first?"),
        ("forwards", ORDER, "list(gradient_tape)", "From which end"),
        (
            "the inputs overwritten",
            "in wanted]",
            "in wanted if each.value.mul_(2) is not None]",
            "grad changed a value of a, b or c",
        ),
        ("nothing skipped", "is None:", "is False:", "Skip them"),
        (
            "nothing skipped, and no word of it",
            "if (arriving := gradients.get(entry.outputs[0])) is None:",
            "try:\n"
            "    parts = entry.propagate([gradients.get(entry.outputs[0])])\n"
            "except BaseException:",
            "entry.propagate([arriving])",
            "parts",
            "Skip them",
        ),
        (
            "zero where there is no path",
            EACH,
            "gradients.get(each.name, each * Variable(0.0))",
            "What should you return for c",
        ),
        (
            "added in place",
            ADD,
            "if name in gradients:\n"
            "    gradients[name].value += part.value\n"
            "else:\n"
            "    gradients[name] = part",
            "Who else sees it when you change it?",
        ),
        (
            "values added",
            "gradients[name] + part",
            "Variable(gradients[name].value + part.value)",
            "Did you add Variables, or values?",
        ),
        (
            "the result is the last on the tape",
            "{result.name:",
            "{gradient_tape[-1].outputs[0]:",
            "How do you recognise",
        ),
        (
            "turned around",
            ORDER,
            "gradient_tape.reverse() or list(gradient_tape)",
            "changed the tape",
        ),
        (
            "a 1 of single precision",
            ONE,
            "Variable(1.0)",
            "Does the 1 that you begin with have the result's dtype?",
        ),
        (
            "begins with the result's value",
            ONE,
            "result",
            "which gradient do you start with?",
        ),
        ("no list", "[arriving]", "arriving", "propagate takes a list"),
        ("all gradients", ALL, "gradients", "expected a list of 2"),
        (
            "the number 0 where there is no path",
            EACH,
            "gradients.get(each.name, 0)",
            "returned an int as a gradient, expected a Variable or None",
        ),
        ("tensors", EACH, "gradients[each.name].value", "that can be differentiated again"),
        (
            "ours",
            "from tape import grad as ours\n\n\ndef grad(result, wanted):\n"
            "    return ours(result, wanted)\n",
            "uses grad, which does what you are asked to write",
        ),
    ],
}

RIGHT = {
    "01.1": [
        ("a tuple", ALL, f"tuple({EACH} for each in wanted)"),
        ("a default for what is not there", "if (", "if not (", "is None:", ":"),
        (
            "a variable of the function's name",
            "(arriving := gradients",
            "(grad := gradients",
            "[arriving]",
            "[grad]",
        ),
        ("by index", ORDER, "gradient_tape[len(gradient_tape) - 1 :: -1]"),
    ],
}
