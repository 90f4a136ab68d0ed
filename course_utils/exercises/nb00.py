"""Notebook 00, processes and collectives: ranks, an all-gather of one's own, bus bandwidth."""

import math
from typing import Any

from course_utils.exercises.checking import Wrong, exercise, probe


@exercise("00.1", "which rank is it?", file="exercise_00_1.py")
def check_00_1() -> list[str]:
    """Every process of clusters with equal and unequal nodes, and some that do not exist."""
    for case in probe("probe_00_1.py", 1):
        _check_rank(case)
    return [
        "every rank of nodes with 2+2, 4+4, 1+3+2 and 4+2+8 ranks",
        "a ValueError where there is no such node or local rank",
    ]


def _check_rank(case: dict[str, Any]) -> None:
    cluster, node, local = case["cluster"], case["node"], case["local"]
    call = f"global_rank({node}, {local}, {cluster})"
    if "nobody" in case:
        if case.get("error") == "ValueError":
            return
        got = f"raised {case['error']}" if "error" in case else f"returned {case['value']}"
        why = f"there is no node {node}" if not 0 <= node < len(cluster) else _why_nobody(case)
        raise Wrong(f"{call} {got}, expected a ValueError: {why}", "Which calls name nobody?")
    if "error" in case:
        raise Wrong(f"{call} raised {case['error']}", "There is such a process. Who comes before?")
    expected = sum(cluster[:node]) + local
    if case["kind"] != "int":
        raise Wrong(f"{call} returned a {case['kind']}, expected the int {expected}", "")
    if case["value"] != expected:
        hint = _rank_hint(case["value"], cluster, node, local)
        raise Wrong(f"{call} returned {case['value']}, expected {expected}", hint)
    if case["changed"]:
        raise Wrong(f"{call} changed the list it was given", "Whose list is it?")


def _why_nobody(case: dict[str, Any]) -> str:
    count = case["cluster"][case["node"]]
    return f"node {case['node']} has local ranks 0 to {count - 1}"


def _rank_hint(value: int, cluster: list[int], node: int, local: int) -> str:
    """The question that fits a wrong rank; the mistakes are tried one after another."""
    mistakes = {
        "Every node begins at 0 in yours. Who comes before this node?": local,
        "Are all nodes as large as this one? Ask those that come before.": node * cluster[node]
        + local,
        "Are all nodes as large as the first?": node * cluster[0] + local,
        "Ranks count from 0: is this node's own size among those before it?": sum(
            cluster[: node + 1]
        )
        + local,
        "Which of the two numbers counts nodes, and which the processes on one?": local
        * len(cluster)
        + node,
        "Ranks count from 0. Does yours begin at 1?": sum(cluster[:node]) + local + 1,
    }
    for question, wrong in mistakes.items():
        if value == wrong:
            return question
    return "How many processes are on the nodes before this one?"


@exercise("00.2", "all-gather out of send and recv", file="exercise_00_2.py")
def check_00_2() -> list[str]:
    """The lists on each rank, what they were made with, and what was sent for them."""
    for ranks in (2, 3, 4, 5, 1):
        try:
            reports = probe("probe_00_2.py", ranks, timeout=8)
        except Wrong as wrong:
            raise Wrong(wrong.message, wrong.hint or _run_hint(ranks, wrong.message)) from None
        for report in reports:
            _check_gathered(ranks, report)
    return [
        "1, 2, 3, 4 and 5 ranks, 1 and 3 numbers each: every rank has all, in order",
        "with point-to-point messages only, at most N - 1 times its own bytes from each rank",
    ]


def _run_hint(ranks: int, message: str) -> str:
    if ranks == 1:
        return "A rank alone has all there is. To whom does yours send?"
    if "was stopped" in message or "hangs" in message:
        return "Who receives while everyone sends? Does every send have its recv?"
    return ""


def _check_gathered(ranks: int, found: dict[str, Any]) -> None:
    rank, length = found["rank"], found["length"]
    where = (
        f"{ranks} rank{'s' * (ranks > 1)}, {length} number{'s' * (length > 1)} each: rank {rank}"
    )
    expected = [[10.0 * r + i for i in range(length)] for r in range(ranks)]
    if found["values"] is None:
        hint = "Every rank needs the list, not only one of them." * (found["kind"] == "NoneType")
        raise Wrong(f"{where} returned a {found['kind']}, expected a list of tensors", hint)
    if found["values"] != expected:
        returned = f"{where} returned {_short(found['values'])}, expected {_short(expected)}"
        raise Wrong(returned, _gather_hint(ranks, found, expected))
    if found["collectives"]:
        names = ", ".join(found["collectives"])
        raise Wrong(f"{where} used {names}", "Can you do it with send and recv alone?")
    own = 4 * length
    if found["sent"] > (ranks - 1) * own:
        allowed = f"{ranks - 1} x {own} = {(ranks - 1) * own}"
        hint = "Is one rank doing everybody's work? What does each need to send, at least?"
        raise Wrong(f"{where} sent {found['sent']} bytes, allowed are {allowed}", hint)
    if found["changed"]:
        raise Wrong(f"{where} has lost its own tensor: it was written over", "Receive elsewhere.")


def _short(value: Any) -> str:
    """Nested lists of numbers, without needless digits."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_short, value)) + "]"
    return f"{value:g}"


def _gather_hint(ranks: int, found: dict[str, Any], expected: list[list[float]]) -> str:
    """The question that fits a wrong list."""
    rank, length, got = found["rank"], found["length"], found["values"]
    if len(got) != ranks:
        return f"{ranks} ranks, {len(got)} entries: whose is missing, or there twice?"
    if any(shape != [length] for shape in found["shapes"]):
        return f"Each rank gave a tensor of shape ({length},). Which shape have your entries?"
    if sorted(got) == sorted(expected):
        if ranks > 2 and got[rank] == expected[rank]:
            return "All are there, not in the order of the ranks. From whom came the first message?"
        return "All are there, but entry r should be rank r's, on every rank."
    others = [each for r, each in enumerate(got) if r != rank]
    if ranks > 2 and all(each == others[0] for each in others):
        if others[0] in expected:
            return (
                "All entries from others are one rank's. Do they share one tensor, or one sender?"
            )
        return "Nothing has come. Did every request get its wait()?"
    if ranks > 2:
        return (
            "With 2 ranks yours is right. What does a rank pass on in the second step, and whose?"
        )
    return "Did you wait for every request before you looked?"


@exercise("00.3", "bus bandwidth from a measurement", file="exercise_00_3.py")
def check_00_3() -> list[str]:
    """Every collective, several sizes and numbers of ranks, and a name with a slip in it."""
    for case in probe("probe_00_3.py", 1):
        _check_busbw(case)
    return ["six collectives, 2, 3 and 4 ranks", "a ValueError for a name that is none of them"]


def _factor(collective: str, world: int) -> float:
    share = (world - 1) / world
    return {"all_reduce": 2 * share, "broadcast": 1, "reduce": 1}.get(collective, share)


def _check_busbw(case: dict[str, Any]) -> None:
    name, size, seconds, world = (case[k] for k in ("collective", "size", "seconds", "world"))
    call = f'busbw("{name}", {size}, {seconds:g}, {world})'
    if name == "all_recude":
        if case.get("error") != "ValueError":
            got = f"raised {case['error']}" if "error" in case else f"returned {case['value']}"
            hint = "A number for a name nobody knows is worse than an error: which one fits?"
            raise Wrong(f"{call} {got}, expected a ValueError", hint)
        return
    if "error" in case:
        raise Wrong(f"{call} raised {case['error']}", "The name is in the table of section 9.")
    expected = size / seconds * _factor(name, world)
    if case["value"] is None:
        raise Wrong(f"{call} returned a {case['kind']}, expected the number {expected:g}", "")
    if not math.isclose(case["value"], expected, rel_tol=1e-9):
        hint = _busbw_hint(case["value"], size, seconds, world, expected)
        raise Wrong(f"{call} returned {case['value']:g}, expected {expected:g}", hint)


def _busbw_hint(value: float, size: int, seconds: float, world: int, expected: float) -> str:
    """The question that fits a wrong bandwidth; the mistakes are tried one after another."""
    algbw, share = size / seconds, (world - 1) / world
    factor = expected / algbw
    mistakes = {
        "Bits or bytes?": 8 * expected,
        "Per second of what? Divide by the time.": size * seconds * factor,
        "In bytes per second, not in GB/s.": expected / 1e9,
        "That is algbw, what the caller sees. Which factor makes it busbw?": algbw,
        "Is the factor there upside down?": algbw / factor,
        "That is the factor of all-reduce. This one is half of an all-reduce, or less.": algbw
        * 2
        * share,
        "An all-reduce is two collectives, one after the other. How often do the data move?": algbw
        * share,
        "Each rank's bandwidth, not that of all ranks together.": expected * world,
        "(N - 1) without the N: what share of the data has to move?": expected * world / 2,
    }
    for question, wrong in mistakes.items():
        if math.isclose(value, wrong, rel_tol=1e-9) and wrong != expected:
            return question
    return "Look at the table: S over t, times the factor of this collective."
