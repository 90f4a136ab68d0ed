"""Plausible wrong answers to the exercises of notebook 12, and right ones of another kind."""

CULPRIT = """\
from collections import Counter
from pathlib import Path

def waits(stack):
    return any("/torch/distributed/" in frame.file for frame in stack)

def line_of(stack, script):
    return next((f.line for f in stack if Path(f.file).name == script), None)

def culprit(stacks, script):
    for rank, stack in enumerate(stacks):
        if stack is None:
            return rank, None
    waiting = [waits(stack) for stack in stacks]
    lines = [line_of(stack, script) for stack in stacks]
    if any(waiting) and not all(waiting):
        return waiting.index(False), lines[waiting.index(False)]
    counts = Counter(lines)
    odd = [rank for rank, line in enumerate(lines) if counts[line] == 1]
    if all(waiting) and len(counts) == 2 and len(odd) == 1:
        return odd[0], lines[odd[0]]
    return None
"""
LATENESS = """\
import numpy as np

def lateness(enter, leave):
    enter, leave = np.asarray(enter, float), np.asarray(leave, float)
    if enter.shape != leave.shape:
        raise ValueError("the shapes differ")
    if (leave < enter).any():
        raise ValueError("left before it entered")
    return enter - enter.min(axis=0)
"""
FLOPS = """\
def step_flops(config, batch, length, recompute=False):
    config = config if isinstance(config, dict) else vars(config)
    V, D = config["vocab_size"], config["d_model"]
    F, L = config["d_ff"], config["num_layers"]
    tokens = batch * length
    weights = 4 * D * D + 2 * D * F
    layers = L * tokens * (2 * weights + 4 * length * D)
    logits = tokens * 2 * D * V
    return (4 if recompute else 3) * layers + 3 * logits
"""


def _but(source: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    return source


BLAME = "\ndef answer(stacks, script):\n    return culprit(stacks, script)\n"
MUTANTS = {
    "12.1": [
        (
            "the one that waits",
            _but(CULPRIT, ("waiting.index(False)", "waiting.index(True)")),
            "Which rank is not in there?",
        ),
        (
            "how the path ends",
            _but(CULPRIT, ("Path(f.file).name == script", "f.file.endswith(script)")),
            "my_train.py is another file",
        ),
        (
            "the outermost line",
            _but(CULPRIT, ("for f in stack if", "for f in reversed(stack) if")),
            "Which rank is not in there?",
        ),
        (
            "the innermost frame of all",
            _but(
                CULPRIT,
                (
                    "return next((f.line for f in stack if Path(f.file).name == script), None)",
                    "return stack[0].line",
                ),
            ),
            "is the innermost one",
        ),
        (
            "ended last",
            _but(
                CULPRIT,
                ("        if stack is None:\n            return rank, None\n", "        pass\n"),
                ("[waits(stack) for stack in stacks]", "[bool(s) and waits(s) for s in stacks]"),
                (
                    "[line_of(stack, script) for stack in stacks]",
                    "[line_of(s or [], script) for s in reversed(stacks)][::-1]",
                ),
                (
                    "    if any(waiting) and not all(waiting):\n",
                    "    if any(waiting) and not all(waiting) and None not in stacks:\n",
                ),
            ),
            "A rank that has ended has no stack at all",
        ),
        ("no third rule", _but(CULPRIT, ("if all(waiting) and", "if False and")), "All wait."),
        (
            "somebody must be guilty",
            _but(CULPRIT, ("    return None\n", "    return 0, lines[0]\n")),
            "nobody to blame",
        ),
        (
            "one of two",
            _but(
                CULPRIT,
                (
                    "if all(waiting) and len(counts) == 2 and len(odd) == 1:",
                    "odd = odd or [3] * (len(counts) == 2)\n    if all(waiting) and odd:",
                ),
            ),
            "two ranks differ",
        ),
    ],
    "12.2": [
        (
            "the time inside",
            _but(LATENESS, ("enter - enter.min(axis=0)", "leave - enter")),
            "the early ranks wait in there",
        ),
        (
            "the waits",
            _but(LATENESS, ("enter - enter.min(axis=0)", "enter.max(axis=0) - enter")),
            "who waits is not late",
        ),
        (
            "the wrong axis",
            _but(LATENESS, ("enter.min(axis=0)", "enter.min(axis=1, keepdims=True)")),
            "along which axis?",
        ),
        ("one minimum for all", _but(LATENESS, ("enter.min(axis=0)", "enter.min()")), "whole run"),
        (
            "against the mean",
            _but(LATENESS, ("enter.min(axis=0)", "enter.mean(axis=0)")),
            "Late against the mean?",
        ),
        (
            "against rank 0",
            _but(LATENESS, ("enter.min(axis=0)", "enter[0]")),
            "Rank 0 may be the late one.",
        ),
        (
            "who leaves late",
            _but(LATENESS, ("enter - enter.min(axis=0)", "leave - leave.min(axis=0)")),
            "who *enters* late",
        ),
        (
            "one number a rank",
            _but(
                LATENESS, ("enter - enter.min(axis=0)", "(enter - enter.min(axis=0)).sum(axis=1)")
            ),
            "one row per rank",
        ),
        (
            "impossible times accepted",
            _but(LATENESS, ("if (leave < enter).any():", "if False:")),
            "expected a ValueError",
        ),
        (
            "only arrays",
            _but(LATENESS, ("np.asarray(enter, float), np.asarray(leave, float)", "enter, leave")),
            "(lists) raised AttributeError",
        ),
        (
            "nan",
            _but(LATENESS, ("enter - enter.min(axis=0)", "(enter - enter.min(axis=0)) * np.nan")),
            "Which of your operations gives nan",
        ),
        (
            "in place",
            _but(
                LATENESS,
                (
                    "    return enter - enter.min(axis=0)",
                    "    enter -= enter.min(axis=0)\n    return enter",
                ),
            ),
            "changed its arguments",
        ),
    ],
    "12.3": [
        ("one token", _but(FLOPS, ("tokens = batch * length", "tokens = 1")), "How many tokens"),
        ("one sequence", _but(FLOPS, ("batch * length", "length")), "How many are in the batch?"),
        (
            "forward only",
            _but(FLOPS, ("(4 if recompute else 3) * layers + 3 * logits", "layers + logits")),
            "Where is backward?",
        ),
        (
            "no attention",
            _but(FLOPS, ("(2 * weights + 4 * length * D)", "(2 * weights)")),
            "which hold no weights",
        ),
        ("half of attention", _but(FLOPS, ("4 * length * D", "2 * length * D")), "two products"),
        (
            "one FLOP a term",
            _but(FLOPS, ("    return (4", "    return ((4"), ("3 * logits", "3 * logits) // 2")),
            "A multiplication *and* an addition",
        ),
        ("no logits", _but(FLOPS, (" + 3 * logits", "")), "makes the logits"),
        (
            "the embedding too",
            _but(FLOPS, ("3 * logits", "6 * logits")),
            "Looking up an embedding is no product",
        ),
        (
            "recompute forgotten",
            _but(FLOPS, ("(4 if recompute else 3)", "3")),
            "run forward once more",
        ),
        (
            "logits recomputed",
            _but(FLOPS, ("3 * logits", "(4 if recompute else 3) * logits")),
            "The logits are not recomputed",
        ),
        ("three projections", _but(FLOPS, ("4 * D * D", "3 * D * D")), "Query, key, value, output"),
        ("nan", _but(FLOPS, ("3 * logits", "3 * logits * float('nan')")), "gives nan"),
    ],
}
RIGHT = {
    "12.1": [
        (
            "a list",
            CULPRIT
            + BLAME.replace("return culprit(", "a = culprit(")
            + "    return a and list(a)\n",
        )
    ],
    "12.2": [
        (
            "by loops, as lists",
            "def lateness(enter, leave):\n"
            "    rows = [list(map(float, row)) for row in enter]\n"
            "    others = [list(map(float, row)) for row in leave]\n"
            "    if [len(r) for r in rows] != [len(r) for r in others]:\n"
            "        raise ValueError\n"
            "    if any(b < a for x, y in zip(rows, others) for a, b in zip(x, y)):\n"
            "        raise ValueError\n"
            "    first = [min(column) for column in zip(*rows)]\n"
            "    return [[t - f for t, f in zip(row, first)] for row in rows]\n",
        )
    ],
    "12.3": [
        (
            "6P + 12LHQT, as a float",
            _but(
                FLOPS,
                (
                    "    return (4 if recompute else 3) * layers + 3 * logits",
                    "    P = L * weights + D * V\n"
                    "    once = tokens * (6.0 * P + 12 * L * D * length)\n"
                    "    return once + (layers if recompute else 0)",
                ),
            ),
        )
    ],
}
