"""Plausible wrong answers to the exercises of notebook 13, and the hint that each must get."""

_AGREED = """
import torch
import torch.distributed as dist

def agreed(wish, group=None):
    {body}
"""


def _agreed(*lines: str) -> str:
    return _AGREED.format(body="\n    ".join(lines))


_OVERLAPS = """
def overlaps(pieces, start, stop):
    found = []
    for number, (begin, end) in enumerate(pieces):
        first, last = max(begin, start), min(end, stop)
        if {when}:
            found.append({what})
    return {back}
"""


def _overlaps(
    when: str = "first < last",
    what: str = "(number, first - begin, last - begin)",
    back: str = "found",
) -> str:
    return _OVERLAPS.format(when=when, what=what, back=back)


def _lost(formula: str) -> str:
    return f"def lost(interval, save, restart, between):\n    return {formula}\n"


_WISHES = "wishes = torch.tensor(int(wish))"
RIGHT = {
    "13.1": [
        (
            "a sum",
            _agreed(
                "wishes = torch.tensor([float(wish)])",
                "dist.all_reduce(wishes, group=group)",
                "return wishes.item() > 0",
            ),
        ),
        (
            "an all-gather, and a tensor as the answer",
            _agreed(
                _WISHES,
                "every = [torch.zeros_like(wishes) for _ in range(dist.get_world_size(group))]",
                "dist.all_gather(every, wishes, group)",
                "return torch.stack(every).any()",
            ),
        ),
    ],
    "13.2": [
        ("lists in place of tuples", _overlaps(what="[number, first - begin, last - begin]")),
        (
            "with sets",
            "def overlaps(pieces, start, stop):\n"
            "    wanted = set(range(start, stop))\n"
            "    hits = [[v - b for v in range(b, e) if v in wanted] for b, e in pieces]\n"
            "    return [(n, h[0], h[-1] + 1) for n, h in enumerate(hits) if h]\n",
        ),
    ],
    "13.3": [
        (
            "over a common denominator",
            _lost("(save * between + interval * (interval / 2 + restart)) / (interval * between)"),
        ),
    ],
}
MUTANTS = {
    "13.1": [
        ("its own wish", _agreed("return wish"), "learn about the others?"),
        (
            "all must wish",
            _agreed(
                _WISHES,
                "dist.all_reduce(wishes, dist.ReduceOp.MIN, group=group)",
                "return bool(wishes)",
            ),
            "must all of them wish it?",
        ),
        (
            "only who wishes calls",
            _agreed(
                "if not wish:",
                "    return False",
                _WISHES,
                "dist.all_reduce(wishes, group=group)",
                "return True",
            ),
            "learn about the others?",
        ),
        (
            "rank 0 decides",
            _agreed(
                _WISHES, "dist.broadcast(wishes, group=group, group_src=0)", "return bool(wishes)"
            ),
            "expected",
        ),
        (
            "the whole world",
            _agreed(_WISHES, "dist.all_reduce(wishes)", "return bool(wishes)"),
            "the group that was passed in",
        ),
        (
            "does not wait",
            _agreed(
                _WISHES,
                "dist.all_reduce(wishes, group=group, async_op=True)",
                "return bool(wishes)",
            ),
            "",
        ),
        (
            "a megabyte",
            _agreed(
                "wishes = torch.full((250_000,), float(wish))",
                "dist.all_reduce(wishes, group=group)",
                "return bool(wishes[0] > 0)",
            ),
            "One number per rank is enough",
        ),
        (
            "an average that is rounded",
            _agreed(
                "wishes = torch.tensor(float(wish))",
                "dist.all_reduce(wishes, group=group)",
                "return round(wishes.item() / dist.get_world_size(group)) == 1",
            ),
            "expected True",
        ),
    ],
    "13.2": [
        (
            "counts from the tensor's beginning",
            _overlaps(what="(number, first, last)"),
            "Count from the beginning of the piece",
        ),
        ("empty reads too", _overlaps(when="first <= last"), "a read of no values"),
        (
            "the last included",
            _overlaps(what="(number, first - begin, last - begin - 1)"),
            "`last`",
        ),
        ("one piece only", _overlaps(back="found[:1]"), "end in another?"),
        (
            "whole pieces",
            _overlaps(what="(number, 0, end - begin)"),
            "may begin or end inside a piece",
        ),
        (
            "only pieces that lie inside",
            _overlaps(when="start <= begin < end <= stop"),
            "end in another?",
        ),
        (
            "two numbers",
            _overlaps(what="(first - begin, last - begin)"),
            "three numbers for each read",
        ),
        (
            "pieces of equal size",
            """
def overlaps(pieces, start, stop):
    size = pieces[0][1] - pieces[0][0]
    found = []
    for number in range(len(pieces)):
        first, last = max(number * size, start), min((number + 1) * size, stop)
        if first < last:
            found.append((number, first - number * size, last - number * size))
    return found
""",
            "expected",
        ),
    ],
    "13.3": [
        (
            "a whole interval",
            _lost("save / interval + (interval + restart) / between"),
            "in the middle of an interval",
        ),
        ("no restart", _lost("save / interval + interval / 2 / between"), "have to restart"),
        ("no saves", _lost("(interval / 2 + restart) / between"), "You left out the saves"),
        ("no failures", _lost("save / interval"), "You left out the failures"),
        (
            "what is left",
            _lost("1 - save / interval - (interval / 2 + restart) / between"),
            "is left",
        ),
        (
            "percent",
            _lost("100 * (save / interval + (interval / 2 + restart) / between)"),
            "percent",
        ),
        (
            "a restart per interval",
            _lost("(save + restart) / interval + interval / 2 / between"),
            "once per failure",
        ),
        (
            "seconds per interval",
            _lost("save + interval * (interval / 2 + restart) / between"),
            "Those are seconds",
        ),
        ("not a number", _lost("float('nan')"), "nan"),
    ],
}
