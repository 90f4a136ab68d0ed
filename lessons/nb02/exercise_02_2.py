"""02.2: replicas side by side."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong, count, kind
from course_utils.checking.findings import random_values
from course_utils.checking.values import is_tensor, listed

TITLE = "replicas side by side"
PROVEN = (
    "1 to 5 replicas ran at the same time, each in its own thread; outputs in order",
    "an exception reaches the caller, with its replica's number",
)
WITHOUT = ("parallel_apply", "DataParallel")
OURS = '''"""Run replicas side by side, each in a thread of its own."""

from collections.abc import Callable, Sequence
from threading import Thread
from typing import Any


def parallel_apply(replicas: Sequence[Callable], inputs: Sequence[tuple]) -> list[Any]:
    """Call replicas[k](*inputs[k]) for every k, each in a thread of its own.

    Returns:
        the outputs, in the order of the replicas.

    Raises:
        RuntimeError: a replica raised an exception; it says which replica, and what it said.
    """
    outputs: list[Any] = [None] * len(replicas)
    errors: dict[int, Exception] = {}

    def run(number: int) -> None:
        try:
            outputs[number] = replicas[number](*inputs[number])
        except Exception as error:  # raised below: here nobody would hear of it
            errors[number] = error

    threads = [Thread(target=run, args=(number,)) for number in range(len(replicas))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        number, error = min(errors.items(), key=lambda item: item[0])
        raise RuntimeError(f"replica {number}: {type(error).__name__}: {error}") from error
    return outputs
'''
PATIENCE = 3.0  # seconds that a replica waits for the others to be there


def cases(parallel_apply: Callable) -> None:
    """Order, threads and exceptions."""
    for number in (2, 3, 1, 5):
        look_at_outputs(parallel_apply, number)
        look_at_threads(parallel_apply, number)
    look_at_errors(parallel_apply, 4, {2: ValueError("no pixel 17")})
    look_at_errors(parallel_apply, 3, {0: KeyError("fc1.weight")})
    two = {1: ValueError("the first"), 3: ValueError("the second")}
    look_at_errors(parallel_apply, 4, two)
    look_at_errors(parallel_apply, 1, {0: RuntimeError("alone")})
    look_at_outputs(parallel_apply, 2, "parallel_apply of 2 replicas, after others have failed")


def answer_of(call: str, function: Callable, replicas: list[Callable], inputs: list[tuple]) -> Any:
    """What the student's function returns."""
    try:
        return called(call, function, replicas, inputs)
    except Wrong as wrong:
        if wrong.hint:
            raise
        hint = "No replica raises an exception here. What did that line expect?"
        if "TypeError" in wrong.message:
            hint = "inputs[k] is a tuple: all arguments of replica k."
        raise Wrong(wrong.message, hint) from None


class LastFirst:
    """Lets replicas end in the reverse order, however busy the machine is."""

    def __init__(self, number: int) -> None:
        self.ends = [threading.Event() for _ in range(number)]

    def wait(self, place: int) -> None:
        """Wait until the replica after this one ends; not for long, where it has not begun."""
        for after in self.ends[place + 1 : place + 2]:
            after.wait(PATIENCE / 6)
            time.sleep(0.02)  # what the other one returns or raises is noted meanwhile
        self.ends[place].set()


def each_of(replica: Callable, number: int) -> list[Callable]:
    """The replicas, each of which knows its place."""
    return [partial(replica, place) for place in range(number)]


def look_at_outputs(parallel_apply: Callable, number: int, call: str = "") -> None:
    """Outputs in the replicas' order, even though the first replica finishes last."""
    last_first = LastFirst(number)

    def replica(place: int, x: torch.Tensor, factor: float) -> torch.Tensor:
        last_first.wait(place)
        return x * factor + place

    inputs = [(random_values(place, 3).cpu(), 0.1 + place) for place in range(number)]
    call = call or f"parallel_apply of {count(number, 'replica')}"
    answer = answer_of(call, parallel_apply, each_of(replica, number), inputs)
    found = listed(answer)
    if found is None or len(found) != number:
        many = kind(answer) if found is None else f"{kind(answer)} of {len(found)}"
        said = f"{call} returned {many}, expected a list of {number}"
        raise Wrong(said, "Return one output per replica. Where does each thread put its own?")
    for place, (x, factor) in enumerate(inputs):
        if found[place] is None:
            said = f"{call}: output {place} is None, but its replica returned a tensor"
            raise Wrong(said, "Does your function wait until every thread has ended?")
        if not is_tensor(found[place]):
            said = f"{call}: output {place} is {kind(found[place])}, but its replica returned"
            raise Wrong(f"{said} a tensor", "Return what the replicas return, as it is.")
        if not torch.equal(found[place], x * factor + place):
            hint = "Replica 0 ends last here. Are yours in the order in which they ended?"
            raise Wrong(f"{call}: output {place} is not what replica {place} returned", hint)


def look_at_threads(parallel_apply: Callable, number: int) -> None:
    """All replicas run at the same time, in threads of their own that end with the call."""
    everyone, seen = threading.Barrier(number), {}

    def replica(place: int) -> None:
        seen[place] = threading.get_ident()
        try:
            everyone.wait(PATIENCE)
        except threading.BrokenBarrierError:
            seen["alone"] = place

    call = f"parallel_apply of {count(number, 'replica')}"
    before = threading.active_count()
    answer_of(call, parallel_apply, each_of(replica, number), [()] * number)
    if len(seen) < number:
        hint = "Start a thread for every replica, and wait for all of them before you return."
        raise Wrong(f"{call} returned, but only {count(len(seen), 'replica')} had begun", hint)
    if "alone" in seen:
        said = f"{call}: the replicas did not run at the same time"
        raise Wrong(said, "Start all threads first. When do you wait for the first one?")
    if threading.get_ident() in seen.values():
        hint = "Every replica gets a thread of its own, the first one too."
        raise Wrong(f"{call}: a replica ran in the calling thread", hint)
    if threading.active_count() > before:
        hint = "Wait for every thread, also for the last one."
        raise Wrong(f"{call} returned while some of its threads still ran", hint)


def look_at_errors(parallel_apply: Callable, number: int, failing: dict[int, Exception]) -> None:
    """The first replica that fails is named, with what it said."""
    ran, last_first = [], LastFirst(number)

    def replica(place: int) -> None:
        last_first.wait(place)
        ran.append(place)
        if place in failing:
            raise failing[place]

    first = min(failing)
    said = f"{type(failing[first]).__name__} in replica {first} of {number}"
    if len(failing) > 1:
        said += f" and another one in replica {max(failing)}"
    try:
        found = parallel_apply(each_of(replica, number), [()] * number)
    except NotImplementedError:
        raise
    except Exception as error:
        caught, text = error, str(error)
    else:
        hint = "What happens to an exception in a thread? How can the caller get it?"
        raise Wrong(f"{said}: it raised nothing and returned {found}", hint)
    if not isinstance(caught, RuntimeError):
        hint = "Which exception does the caller get, and what does its text say?"
        raise Wrong(f"{said}: it raised {type(caught).__name__}, expected a RuntimeError", hint)
    if f"replica {first}" not in text:
        hint = "Which replica should the caller look at first?"
        raise Wrong(f"{said}: the RuntimeError says {text!r}, not `replica {first}`", hint)
    if str(failing[first].args[0]) not in text:
        lost = f"not what the replica said: {failing[first].args[0]!r}"
        raise Wrong(f"{said}: the RuntimeError says {text!r}, {lost}", "Keep the message.")
    if len(ran) != number:
        hint = "The other replicas are still at work. Wait for them first."
        raise Wrong(f"{said}: the error came out before all replicas had ended", hint)


CALL = "outputs[number] = replicas[number](*inputs[number])"
RAISED = 'RuntimeError(f"replica {number}: {type(error).__name__}: {error}") from error'

WRONG = [
    (
        "one after the other",
        "thread.start()",
        "thread.start()\nthread.join()",
        "did not run at the same time",
    ),
    (
        "nobody waits",
        "thread.join()",
        "pass",
        "Does your function wait until every thread has ended?",
    ),
    (
        "in the order of arrival",
        "[None] * len(replicas)",
        "[]",
        CALL,
        "outputs.append(replicas[number](*inputs[number]))",
        "Are yours in the order in which they ended?",
    ),
    ("exceptions are dropped", "if errors:", "if False:", "it raised nothing"),
    (
        "the exception itself",
        RAISED,
        "error",
        "it raised ValueError, expected a RuntimeError",
    ),
    ("no number", "replica {number}: ", "a replica: ", "not `replica 2`"),
    (
        "no message",
        ": {type(error).__name__}: {error}",
        " failed",
        "not what the replica said",
    ),
    (
        "who failed first in time",
        "min(errors.items(), key=lambda item: item[0])",
        "next(iter(errors.items()))",
        "Which replica should the caller look at first?",
    ),
    ("one argument", "(*inputs[number])", "(inputs[number])", "all arguments of replica k"),
    (
        "a slip of its own",
        "thread.start()",
        "thread.begin()",
        "What did that line expect?",
    ),
    (
        "one list for all calls",
        "outputs: list[Any] = [None] * len(replicas)",
        "kept = parallel_apply.__dict__\n"
        "outputs = kept.setdefault(str(len(replicas)), [None] * len(replicas))",
        "changed what the call before had returned",
    ),
    (
        "nothing runs before somebody asks",
        """
def parallel_apply(replicas, inputs):
    return (replica(*arguments) for replica, arguments in zip(replicas, inputs))
""",
        "returned, but only 0 replicas had begun",
    ),
    ("words", "->", "lambda outputs: list(map(str, outputs))", "a str, but its replica"),
]
RIGHT = [
    ("a tuple", "->", "tuple"),
    ("a dict's values", "->", "lambda outputs: dict(enumerate(outputs)).values()"),
    (
        "with a pool",
        """
from concurrent.futures import ThreadPoolExecutor

def parallel_apply(replicas, inputs):
    with ThreadPoolExecutor(len(replicas)) as pool:
        futures = [pool.submit(replica, *each) for replica, each in zip(replicas, inputs)]
    for k, future in enumerate(futures):
        if future.exception():
            raise RuntimeError(f"replica {k} said {future.exception()}") from future.exception()
    return [future.result() for future in futures]
""",
    ),
]
