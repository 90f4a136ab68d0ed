"""Calls the student's parallel_apply with replicas that watch their threads."""

import threading
import time
from collections.abc import Callable
from functools import partial

import torch

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong, count
from course_utils.checking.findings import judging, random_values

from exercise_02_2 import parallel_apply

PATIENCE = 3.0  # seconds that a replica waits for the others to be there


def each_of(replica: Callable, number: int) -> list[Callable]:
    """The replicas, each of which knows its place."""
    return [partial(replica, place) for place in range(number)]


def check_outputs(number: int) -> None:
    """Outputs in the replicas' order, even though the first replica finishes last."""

    def replica(place: int, x: torch.Tensor, factor: float) -> torch.Tensor:
        time.sleep(0.02 * (number - place))
        return x * factor + place

    inputs = [(random_values(place, 3).cpu(), 0.1 + place) for place in range(number)]
    call = f"parallel_apply of {count(number, 'replica')}"
    with judging():
        hint = "inputs[k] is a tuple: all arguments of replica k."
        found = called(call, parallel_apply, each_of(replica, number), inputs, hint=hint)
        if not isinstance(found, (list, tuple)) or len(found) != number:
            many = count(len(found), "entry") if isinstance(found, (list, tuple)) else found
            said = f"{call} returned {type(found).__name__} ({many}), expected a list of {number}"
            raise Wrong(said, "Return one output per replica. Where does each thread put its own?")
        for place, (x, factor) in enumerate(inputs):
            if found[place] is None:
                said = f"{call}: output {place} is None, but its replica returned a tensor"
                raise Wrong(said, "Does your function wait until every thread has ended?")
            if not torch.equal(found[place], x * factor + place):
                hint = "Replica 0 ends last here. Are yours in the order in which they ended?"
                raise Wrong(f"{call}: output {place} is not what replica {place} returned", hint)


def check_threads(number: int) -> None:
    """All replicas run at the same time, in threads of their own that end with the call."""
    everyone, seen = threading.Barrier(number), {}

    def replica(place: int) -> None:
        seen[place] = threading.get_ident()
        try:
            everyone.wait(PATIENCE)
        except threading.BrokenBarrierError:
            seen["alone"] = place

    call = f"parallel_apply of {count(number, 'replica')}"
    with judging():
        before = threading.active_count()
        called(call, parallel_apply, each_of(replica, number), [()] * number)
        if "alone" in seen:
            said = f"{call}: the replicas did not run at the same time"
            raise Wrong(said, "Start all threads first. When do you wait for the first one?")
        if threading.get_ident() in seen.values():
            hint = "Every replica gets a thread of its own, the first one too."
            raise Wrong(f"{call}: a replica ran in the calling thread", hint)
        if threading.active_count() > before:
            hint = "Wait for every thread, also for the last one."
            raise Wrong(f"{call} returned while some of its threads still ran", hint)


def check_errors(number: int, failing: dict[int, Exception]) -> None:
    """The first replica that fails is named, with what it said."""
    ran = []

    def replica(place: int) -> None:
        time.sleep(0.02 * (number - place))  # the last one fails first
        ran.append(place)
        if place in failing:
            raise failing[place]

    first = min(failing)
    said = f"{type(failing[first]).__name__} in replica {first} of {number}"
    if len(failing) > 1:
        said += f" and another one in replica {max(failing)}"
    with judging():
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


def check_grad_mode(records: bool) -> None:
    """Replicas record gradients as their caller does, and the caller's setting stays."""
    weight = torch.ones(2, requires_grad=True)
    inside: list[bool] = []

    def forward(x: torch.Tensor) -> torch.Tensor:
        inside.append(torch.is_grad_enabled())
        return x * weight

    call = "parallel_apply " + ("that records" if records else "inside torch.no_grad()")
    with judging(), torch.set_grad_enabled(records):
        found = called(call, parallel_apply, [forward, forward], [(torch.ones(2),)] * 2)
        after = torch.is_grad_enabled()
        if inside != [records] * 2 or any(out.requires_grad != records for out in found):
            did = "recorded gradients" if not records else "recorded no gradients"
            hint = "Call torch.is_grad_enabled() in the right thread. Which one is that?"
            raise Wrong(f"{call}: the replicas {did}", hint)
        if after != records:
            hint = "Restore it before you return."
            raise Wrong(f"{call}: the caller's own setting has changed", hint)


for number in (2, 3, 1, 5):
    check_outputs(number)
    check_threads(number)
check_grad_mode(True)
check_grad_mode(False)
check_errors(4, {2: ValueError("no pixel 17")})
check_errors(3, {0: KeyError("fc1.weight")})
check_errors(4, {1: ValueError("the first"), 3: ValueError("the second")})
check_errors(1, {0: RuntimeError("alone")})
