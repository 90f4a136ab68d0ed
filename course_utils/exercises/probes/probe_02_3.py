"""Asks a student's gate who may start, in trainings that are played through without a server."""

import random
from collections.abc import Iterable

from course_utils.exercises.compare import Wrong, kind
from course_utils.exercises.findings import judging

from exercise_02_3 import StalenessBound


def hint(bound: int, pushes: dict[int, int], gone: list[int], lead: int, said: bool) -> str:
    """The question that fits a wrong answer."""
    if not any(pushes.values()) and not gone:
        return "Nobody has pushed yet. If nobody may start, who ever will?"
    if gone and not said:
        return "Who has left pushes no more. For whom do the others still wait?"
    if said and lead == bound + 1:
        return f"It is {lead} ahead of the slowest already. How far will it be after this step?"
    if said:
        return "Ahead of whom? Not of the fastest or of the mean: of the slowest."
    if lead == bound > 0:
        return f"{lead} ahead is still allowed: the bound is {bound}, and it may be reached."
    return "Compare this worker's pushes with those of the slowest, nothing else."


def ask(gate: StalenessBound, pushes: dict[int, int], bound: int, gone: list[int]) -> None:
    """Judge what the gate says of each worker that is there, asked twice."""
    for worker in pushes:
        answers = [gate.may_start(worker) for _ in range(2)]
        lead = pushes[worker] - min(pushes.values())
        state = ", ".join(f"worker {each}: {count}" for each, count in pushes.items())
        where = f"bound {bound}; pushes so far: {state}" + f"; gone: {gone}" * bool(gone)
        where += f". may_start({worker})"
        with judging():
            if not isinstance(answers[0], bool):
                raise Wrong(f"{where} returned {kind(answers[0])}, expected a bool")
            if answers[0] != answers[1]:
                raise Wrong(
                    f"{where} said {answers[0]}, and asked again {answers[1]}",
                    "The server asks as often as it likes. Does asking change anything?",
                )
            if answers[0] != (lead <= bound):
                said = f"{where} said {answers[0]}, expected {lead <= bound}"
                raise Wrong(said, hint(bound, pushes, gone, lead, answers[0]))


def play(workers: Iterable[int], bound: int, seed: int) -> None:
    """Play a training, with another gate alive beside this one."""
    chance = random.Random(seed)
    pushes, gone = dict.fromkeys(workers, 0), []
    gate = StalenessBound(iter(list(pushes)), bound)
    other = StalenessBound(pushes, 1)  # gates share nothing
    ask(gate, pushes, bound, gone)
    for step in range(24):
        other.pushed(next(iter(pushes)))
        if step in (14, 20):  # a worker leaves, then another one
            leaver = min(pushes, key=pushes.get) if seed % 2 else chance.choice(list(pushes))
            gate.left(leaver)
            del pushes[leaver]
            gone.append(leaver)
        else:
            free = [w for w in pushes if pushes[w] - min(pushes.values()) <= bound]
            fast = max(free)  # the last one is the fastest, until it has to wait
            worker = fast if chance.random() < 0.7 else chance.choice(free)
            gate.pushed(worker)
            pushes[worker] += 1
        ask(gate, pushes, bound, gone)


for bound in (0, 1, 3, 7):
    for seed in range(4):
        play((1, 2, 3), bound, seed)
        play((4, 0, 9, 7), bound, seed)
