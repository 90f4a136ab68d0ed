"""09.2: the order of 1F1B."""

from collections.abc import Callable
from typing import Any

from pipeline_actions import Action

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong, kind, plain

TITLE = "the order of 1F1B"
PROVEN = ("every list is right: 1 to 5 stages, 1 to 9 micro-batches, also fewer than the warm-up",)
OURS = '''"""The order of one stage in 1F1B: fill the pipeline, then one forward, one backward."""

from pipeline_actions import Action


def one_f_one_b(stage: int, stages: int, microbatches: int) -> list[Action]:
    """1F1B, flushed at the end of each step (Narayanan et al. 2021, section 2.2)."""
    warm_up = min(stages - 1 - stage, microbatches)
    order = [Action("F", i) for i in range(warm_up)]
    for i in range(microbatches):
        if warm_up + i < microbatches:
            order.append(Action("F", warm_up + i))
        order.append(Action("B", i))
    return order
'''


def cases(one_f_one_b: Callable) -> None:
    """The list of every stage for 1 to 5 stages and 1 to 9 micro-batches."""
    for p in range(1, 6):
        for m in (1, 2, 3, 4, 5, 9):
            for stage in range(p):
                call = f"one_f_one_b(stage={stage}, stages={p}, microbatches={m})"
                got = listing(call, called(call, one_f_one_b, stage, p, m))
                right = expected(stage, p, m)
                if got != right:
                    said = f"{call} returned\n{' '.join(got)}, expected\n{' '.join(right)}"
                    raise Wrong(said, hint(got, right, stage, p, m))


def listing(call: str, order: Any) -> list[str]:
    """The actions as `F0`, `B0`; raises `Wrong` if they are no actions."""
    said = f"{call} returned {kind(order)}"
    if not isinstance(order, list):
        raise Wrong(f"{said}, expected a list of Action(kind, microbatch)", "Return a list.")
    for each in order:
        if not isinstance(each, Action):
            raise Wrong(
                f"{said} that holds {kind(each)}, expected a list of Action", "Make Actions."
            )
        microbatch, chunk = plain(each.microbatch), plain(each.chunk)
        if not type(microbatch) is type(chunk) is int or chunk != 0:
            hint = "An Action has a kind and a micro-batch, an int. The chunk stays 0."
            raise Wrong(f"{said} that holds {tuple(each)}", hint)
        if not isinstance(each.kind, str) or each.kind not in ("F", "B"):
            hint = 'The kind is "F" for a forward, and "B" for a backward.'
            raise Wrong(f"{said} that holds {tuple(each)}", hint)
    return [f"{action.kind}{action.microbatch}" for action in order]


def expected(stage: int, p: int, m: int) -> list[str]:
    """The order of one of `p` stages, for `m` micro-batches."""
    warm_up = min(p - 1 - stage, m)
    order = [f"F{i}" for i in range(warm_up)]
    for i in range(m):
        order += [f"F{warm_up + i}", f"B{i}"] if warm_up + i < m else [f"B{i}"]
    return order


def hint(got: list[str], right: list[str], stage: int, p: int, m: int) -> str:
    """The question that fits a wrong order."""
    forwards, backwards = ([x for x in got if x[0] == kind] for kind in "FB")
    if set(got) - set(right):
        return f"The last micro-batch has number {m - 1}. Is your warm-up longer than that?"
    if set(right) - set(got):
        return "Every micro-batch needs a forward and a backward. Which one is missing?"
    if len(got) > len(right):
        return "Every micro-batch has one forward and one backward. Which one comes twice?"
    if backwards != [x for x in right if x[0] == "B"]:
        return "Backwards go in the order of the micro-batches. Which one has waited longest?"
    if forwards != [x for x in right if x[0] == "F"]:
        return "Forwards go in the order of the micro-batches. Which one comes first?"
    if got.index("B0") == right.index("B0"):
        return "The warm-up is right. After it, alternate: one forward, one backward."
    return (
        f"Behind this stage there are {p - 1 - stage} of {p} stages. How many micro-batches fit "
        "there?"
    )


WARM_UP = "min(stages - 1 - stage, microbatches)"
FORWARD = "if warm_up + i < microbatches:"
SWAPPED = (
    'turned = iter([a for a in order if a.kind == "F"][::-1])\n'
    'order = [next(turned) if a.kind == "F" else a for a in order]'
)
BACKWARD = 'order.append(Action("B", i))'

WRONG = [
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
    (
        "one list for all calls",
        "return order",
        "kept = one_f_one_b.__dict__.setdefault('kept', [])\nkept[:] = order\nreturn kept",
        "changed what the call before had returned",
    ),
    ("forwards backwards", "return order", f"{SWAPPED}\nreturn order", "Which one comes first?"),
    ("the last one twice", "return order", "return order + order[-1:]", "Which one comes twice?"),
    ("small letters", "->", "lambda acts: [a._replace(kind='f') for a in acts]", 'The kind is "F"'),
    (
        "equal to everything",
        "->",
        "lambda acts: [a._replace(chunk=__import__('unittest').mock.ANY) for a in acts]",
        "The chunk stays 0",
    ),
]
RIGHT = [
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
    (
        "numpy's numbers",
        "->",
        "lambda acts: [a._replace(microbatch=numpy.int64(a.microbatch)) for a in acts]",
    ),
]
