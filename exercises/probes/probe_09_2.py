"""Calls the student's one_f_one_b for every stage of several pipelines."""

from pipeline_actions import Action

from course_utils.checking.compare import Wrong, kind, plain
from course_utils.checking.findings import judging

from exercise_09_2 import one_f_one_b


def look(stage: int, p: int, m: int) -> None:
    """Judge the list of one of `p` stages, for `m` micro-batches."""
    behind = p - 1 - stage
    warm_up = min(behind, m)
    expected = [f"F{i}" for i in range(warm_up)]
    for i in range(m):
        expected += [f"F{warm_up + i}", f"B{i}"] if warm_up + i < m else [f"B{i}"]
    call = f"one_f_one_b(stage={stage}, stages={p}, microbatches={m})"
    order = one_f_one_b(stage, p, m)
    said = f"{call} returned {kind(order)}"
    if not isinstance(order, list):
        raise Wrong(f"{said}, expected a list of Action(kind, microbatch)", "`play` counts it.")
    for each in order:
        if not isinstance(each, Action):
            raise Wrong(
                f"{said} that holds {kind(each)}, expected a list of Action", "Make Actions."
            )
        if type(plain(each.microbatch)) is not int or each.chunk != 0:
            hint = "An Action has a kind and a micro-batch, an int. The chunk stays 0."
            raise Wrong(f"{said} that holds {tuple(each)}", hint)
        if each.kind not in ("F", "B"):
            hint = 'The kind is "F" for a forward, and "B" for a backward.'
            raise Wrong(f"{said} that holds {tuple(each)}", hint)
    got = [f"{action.kind}{action.microbatch}" for action in order]
    hint = f"Behind this stage there are {behind} of {p} stages. How many micro-batches fit there?"
    first = next((n for n, action in enumerate(got) if action.startswith("B")), len(got))
    if set(got) - set(expected):
        hint = f"The last micro-batch has number {m - 1}. Is your warm-up longer than that?"
    elif set(expected) - set(got):
        hint = "Every micro-batch needs a forward and a backward. Which one is missing?"
    elif [x for x in got if x[0] == "B"] != [x for x in expected if x[0] == "B"]:
        hint = "Backwards go in the order of the micro-batches. Which one has waited longest?"
    elif first == expected.index("B0"):
        hint = "The warm-up is right. After it, alternate: one forward, one backward."
    if got != expected:
        raise Wrong(f"{call} returned\n{' '.join(got)}, expected\n{' '.join(expected)}", hint)


for p in range(1, 6):
    for m in (1, 2, 3, 4, 5, 9):
        for stage in range(p):
            with judging():
                look(stage, p, m)
