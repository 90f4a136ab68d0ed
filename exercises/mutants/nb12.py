"""Wrong answers to 12.1 to 12.3, and right ones of another kind."""

from course_utils.checking.registry import find

SCRIPT = "Path(frame.file).name == script"
LINE = f"next((frame.line for frame in stack if {SCRIPT}), None)"
RULE_2 = "if any(waiting) and not all(waiting):"
RULE_3 = "if all(waiting) and len(counts) == 2 and len(odd) == 1:"
AS_LIST = """
def answer(stacks, script):
    found = culprit(stacks, script)
    return found and list(found)
"""
FIRST = "enter.min(axis=0)"
LATE = f"enter - {FIRST}"
STEP = "(4 if recompute else 3) * layers + 3 * logits"

MUTANTS = {
    "12.1": [
        (
            "the one that waits",
            "waiting.index(False)",
            "waiting.index(True)",
            "Which rank is not in there?",
        ),
        (
            "how the path ends",
            SCRIPT,
            "frame.file.endswith(script)",
            "my_train.py is another file",
        ),
        (
            "the outermost line",
            "for frame in stack if",
            "for frame in reversed(stack) if",
            "is the innermost one",
        ),
        ("the innermost frame of all", LINE, "stack[0].line", "is the innermost one"),
        (
            "ended last",
            "if stack is None:\n            return rank, None",
            "pass",
            "in stack if",
            "in stack or [] if",
            "waits(stack) for",
            "bool(stack) and waits(stack) for",
            RULE_2,
            "if any(waiting) and not all(waiting) and None not in stacks:",
            "A rank that has ended has no stack at all",
        ),
        ("no third rule", RULE_3, "if False:", "All wait."),
        (
            "somebody must be guilty",
            "return None",
            "return 0, lines[0]",
            "nobody to blame",
        ),
        (
            "one of two",
            RULE_3,
            "odd = odd or [3] * (len(counts) == 2)\nif all(waiting) and odd:",
            "two ranks differ",
        ),
    ],
    "12.2": [
        ("the time inside", LATE, "leave - enter", "the early ranks wait in there"),
        ("the waits", LATE, "enter.max(axis=0) - enter", "who waits is not late"),
        ("the wrong axis", FIRST, "enter.min(axis=1, keepdims=True)", "along which axis?"),
        ("one minimum for all", FIRST, "enter.min()", "whole run"),
        ("against the mean", FIRST, "enter.mean(axis=0)", "Late against the mean?"),
        ("against rank 0", FIRST, "enter[0]", "Rank 0 may be the late one."),
        ("who leaves late", LATE, "leave - leave.min(axis=0)", "who *enters* late"),
        ("one number a rank", LATE, f"({LATE}).sum(axis=1)", "one row per rank"),
        (
            "impossible times accepted",
            "not (leave >= enter).all()",
            "False",
            "expected a ValueError",
        ),
        (
            "only arrays",
            "np.asarray(enter, dtype=float), np.asarray(leave, dtype=float)",
            "enter, leave",
            "(lists) raised AttributeError",
        ),
        ("nan", LATE, f"({LATE}) * np.nan", "Which of your operations gives nan"),
        (
            "in place",
            f"return {LATE}",
            f"enter -= {FIRST}\nreturn enter",
            "changed its arguments",
        ),
    ],
    "12.3": [
        ("one token", "tokens = batch * length", "tokens = 1", "How many tokens"),
        ("one sequence", "batch * length", "length", "How many are in the batch?"),
        ("forward only", STEP, "layers + logits", "Where is backward?"),
        ("no attention", " + 4 * length * D", "", "which hold no weights"),
        ("half of attention", "4 * length * D", "2 * length * D", "two products"),
        ("one FLOP a term", STEP, f"({STEP}) // 2", "A multiplication *and* an addition"),
        ("no logits", " + 3 * logits", "", "makes the logits"),
        (
            "the embedding too",
            "3 * logits",
            "6 * logits",
            "Looking up an embedding is no product",
        ),
        (
            "recompute forgotten",
            "(4 if recompute else 3)",
            "3",
            "run forward once more",
        ),
        (
            "logits recomputed",
            "3 * logits",
            "(4 if recompute else 3) * logits",
            "The logits are not recomputed",
        ),
        ("three projections", "4 * D * D", "3 * D * D", "Query, key, value, output"),
        ("nan", "3 * logits", "3 * logits * float('nan')", "gives nan"),
    ],
}

RIGHT = {
    "12.1": [("a list", find("12.1").solution + AS_LIST)],
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
            f"return {STEP}",
            "P = L * weights + D * V\n"
            "once = tokens * (6.0 * P + 12 * L * D * length)\n"
            "return once + (layers if recompute else 0)",
        )
    ],
}
