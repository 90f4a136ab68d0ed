"""Asks a student's gate who may start, in trainings that are played through without a server."""

import random

from course_utils.exercises.findings import report

from exercise_02_3 import StalenessBound

WORKERS = (1, 2, 3)


def ask(gate: StalenessBound, pushes: dict[int, int], bound: int, gone: list[int]) -> None:
    """Report what the gate says of each worker that is there, asked twice."""
    for worker in pushes:
        answers = [gate.may_start(worker) for _ in range(2)]
        report(
            bound=bound,
            pushes=[[each, count] for each, count in pushes.items()],
            gone=gone,
            worker=worker,
            answer=answers[0],
            again=answers[1],
            kind=type(answers[0]).__name__,
        )


for bound in (0, 1, 3):
    for seed in range(4):
        chance = random.Random(seed)
        gate, pushes, gone = StalenessBound(WORKERS, bound), dict.fromkeys(WORKERS, 0), []
        ask(gate, pushes, bound, gone)
        for step in range(24):
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
