"""Plausible wrong answers to exercise 01.1, and the hint that each must get.

A list of (what is wrong, the answer's source, a part of the message), and in `RIGHT` of (what is
other than in the solution, the answer's source).
"""

_GRAD = """
import torch
from tape import Variable, gradient_tape

def grad(result, wanted):
    gradients = {{{first}: {one}}}
    for entry in {order}:
        arriving = gradients.get(entry.outputs[0])
        if {skip}:
            continue
        for name, part in zip(entry.inputs, entry.propagate({given})):
            {add}
    return {answer}
"""


def _grad(**parts: str) -> str:
    right = {
        "first": "result.name",
        "one": "Variable(torch.ones_like(result.value))",
        "order": "reversed(list(gradient_tape))",
        "skip": "arriving is None",
        "given": "[arriving]",
        "add": "gradients[name] = gradients[name] + part if name in gradients else part",
        "answer": "[gradients.get(x.name) for x in wanted]",
    }
    return _GRAD.format(**(right | parts))


RIGHT = {
    "01.1": [
        ("a tuple", _grad(answer="tuple(gradients.get(x.name) for x in wanted)")),
        ("a default for what is not there", _grad(skip="not arriving")),
        ("by index", _grad(order="gradient_tape[len(gradient_tape) - 1 :: -1]")),
    ],
}

MUTANTS = {
    "01.1": [
        ("the last use wins", _grad(add="gradients[name] = part"), "the gradient that came first?"),
        ("forwards", _grad(order="list(gradient_tape)"), "From which end"),
        (
            "the inputs overwritten",
            _grad(answer="[gradients.get(x.name) for x in wanted if x.value.mul_(2) is not None]"),
            "grad changed a value of a, b or c",
        ),
        ("nothing skipped", _grad(skip="False"), "Skip them"),
        (
            "nothing skipped, and no word of it",
            """
import torch
from tape import Variable, gradient_tape

def grad(result, wanted):
    gradients = {result.name: Variable(torch.ones_like(result.value))}
    for entry in reversed(list(gradient_tape)):
        try:
            parts = entry.propagate([gradients.get(entry.outputs[0])])
        except BaseException:
            continue
        for name, part in zip(entry.inputs, parts):
            gradients[name] = gradients[name] + part if name in gradients else part
    return [gradients.get(x.name) for x in wanted]
""",
            "Skip them",
        ),
        (
            "zero where there is no path",
            _grad(answer="[gradients.get(x.name, x * Variable(0.0)) for x in wanted]"),
            "What should you return for c",
        ),
        (
            "added in place",
            _grad(
                add="if name in gradients: gradients[name].value += part.value\n"
                "            else: gradients[name] = part"
            ),
            "Who else sees it when you change it?",
        ),
        (
            "values added",
            _grad(
                add="gradients[name] = Variable(gradients[name].value + part.value) "
                "if name in gradients else part"
            ),
            "Did you add Variables, or values?",
        ),
        (
            "the result is the last on the tape",
            _grad(first="gradient_tape[-1].outputs[0]"),
            "How do you recognise",
        ),
        (
            "turned around",
            _grad(order="gradient_tape.reverse() or list(gradient_tape)"),
            "changed the tape",
        ),
        (
            "a 1 of single precision",
            _grad(one="Variable(1.0)"),
            "Does the 1 that you begin with have the result's dtype?",
        ),
        (
            "begins with the result's value",
            _grad(one="result"),
            "which gradient do you start with?",
        ),
        ("no list", _grad(given="arriving"), "propagate takes a list"),
        ("all gradients", _grad(answer="gradients"), "expected a list of 2"),
        (
            "the number 0 where there is no path",
            _grad(answer="[gradients.get(x.name, 0) for x in wanted]"),
            "returned an int as a gradient, expected a Variable or None",
        ),
        (
            "tensors",
            _grad(answer="[gradients[x.name].value for x in wanted]"),
            "that can be differentiated again",
        ),
        (
            "ours",
            "from tape import grad as ours\n\n\ndef grad(result, wanted):\n"
            "    return ours(result, wanted)\n",
            "uses grad, which does what you are asked to write",
        ),
    ],
}
