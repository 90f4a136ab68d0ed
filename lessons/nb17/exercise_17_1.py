"""17.1: from one layout to another."""

from collections.abc import Callable

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong, plain

TITLE = "from one layout to another"
PROVEN = (
    "0 to 1000 values, up to 7 sources and targets, with parts that are shorter or empty",
    "every target gets each of its values once, from a rank that has it",
    "no empty message, and at most one for each pair of ranks",
)
OURS = '''"""Weights that travel from the ranks that train to the ranks that generate."""


def transfers(size: int, sources: int, targets: int) -> list[tuple[int, int, int, int]]:
    """(source, target, begin, end) of each message that moves a flat tensor to a new layout.

    Before, it lies in parts of ceil(size / sources) values, after it of ceil(size / targets).
    """
    held, wanted = -(-size // sources), -(-size // targets)  # rounded up
    found, begin = [], 0
    while begin < size:
        source, target = begin // held, begin // wanted
        end = min((source + 1) * held, (target + 1) * wanted, size)
        found.append((source, target, begin, end))
        begin = end
    return found
'''
LAYOUTS = [  # size, sources, targets
    (6, 1, 2),
    (12, 2, 2),
    (12, 2, 3),
    (12, 3, 2),
    (10, 3, 2),
    (10, 2, 3),
    (7, 3, 4),
    (4, 6, 3),
    (5, 3, 4),
    (1, 3, 2),
    (0, 2, 3),
    (1000, 7, 3),
]


def cases(transfers: Callable) -> None:
    """The messages for several layouts."""
    for size, sources, targets in LAYOUTS:
        call = f"transfers({size}, {sources}, {targets})"
        look(call, plain(called(call, transfers, size, sources, targets)), size, sources, targets)


def look(call: str, got: object, size: int, sources: int, targets: int) -> None:
    """Whether the messages move every value to its place."""
    rows = [tuple(row) for row in got] if _is_rows(got) else None
    if rows is None:
        said = "Return a list of (source, target, begin, end), four whole numbers each."
        raise Wrong(f"{call} returned {str(got)[:80]}", said)
    held, wanted = -(-size // sources), -(-size // targets)
    arrived: set[int] = set()
    for row in rows:
        source, target, begin, end = row
        if begin >= end:
            raise Wrong(f"{call}: {row} is empty", "Is there something to send?")
        if not 0 <= begin < end <= size:
            hint = f"The whole has {size} values. Is the last part as long as the others?"
            raise Wrong(f"{call}: {row} reaches beyond the whole", hint)
        if not source * held <= begin < end <= (source + 1) * held:
            hint = (
                f"Rank {source} of the sources has values {source * held} to "
                f"{min((source + 1) * held, size) - 1}. Are `begin` and `end` places in the whole?"
            )
            raise Wrong(f"{call}: {row} sends what source {source} doesn't have", hint)
        if not target * wanted <= begin < end <= (target + 1) * wanted:
            hint = (
                f"Rank {target} of the targets wants values {target * wanted} to "
                f"{min((target + 1) * wanted, size) - 1}. How long is a part: rounded up or down?"
            )
            raise Wrong(f"{call}: {row} sends target {target} what it doesn't want", hint)
        if twice := arrived & set(range(begin, end)):
            hint = "Where does the next message begin?"
            raise Wrong(f"{call}: value {min(twice)} travels twice", hint)
        arrived |= set(range(begin, end))
    if missing := set(range(size)) - arrived:
        hint = "Which parts overlap? A part may need pieces of several ranks."
        raise Wrong(f"{call}: nobody sends value {min(missing)}", hint)
    if len({row[:2] for row in rows}) < len(rows):
        hint = "Two pieces for one target lie side by side. Does one message carry both?"
        raise Wrong(f"{call}: {len(rows)} messages, two of them between the same ranks", hint)


def _is_rows(got: object) -> bool:
    """Whether this is a list of four whole numbers each."""
    if not isinstance(got, (list, tuple)):
        return False
    return all(
        isinstance(row, (list, tuple)) and len(row) == 4 and all(type(n) is int for n in row)
        for row in got
    )


END = "end = min((source + 1) * held, (target + 1) * wanted, size)"
BOTH = "held, wanted = -(-size // sources), -(-size // targets)  # rounded up"
APPEND = "found.append((source, target, begin, end))"

WRONG = [
    ("nothing is sent", "return found", "return []", "may need pieces of several ranks"),
    (
        "only ranks with the same number",
        APPEND,
        "if source == target:\n            found.append((source, target, begin, end))",
        "nobody sends value",
    ),
    (
        "the target's end alone",
        END,
        "end = min((target + 1) * wanted, size)",
        "Are `begin` and `end` places in the whole?",
    ),
    (
        "the source's end alone",
        END,
        "end = min((source + 1) * held, size)",
        "what it doesn't want",
    ),
    (
        "places in the source's part",
        APPEND,
        "found.append((source, target, begin - source * held, end - source * held))",
        "places in the whole?",
    ),
    (
        "the end too early",
        APPEND,
        "found.append((source, target, begin, end - 1))",
        "nobody sends value",
    ),
    (
        "the last part as long as the others",
        END,
        "end = min((source + 1) * held, (target + 1) * wanted)",
        "reaches beyond the whole",
    ),
    (
        "value by value",
        END,
        "end = begin + 1",
        "Does one message carry both?",
    ),
    (
        "the last value twice",
        APPEND,
        "found.append((source, target, max(begin - (begin % held > 0), 0), end))",
        "",
    ),
    (
        "empty messages, too",
        "return found",
        "return found + [(0, targets - 1, size, size)]",
        "Is there something to send?",
    ),
    (
        "source and target exchanged",
        APPEND,
        "found.append((target, source, begin, end))",
        "",
    ),
]
RIGHT = [
    (
        "each pair of ranks",
        "return found",
        "return [\n"
        "        (s, t, max(s * held, t * wanted), min((s + 1) * held, (t + 1) * wanted, size))\n"
        "        for s in range(sources)\n"
        "        for t in range(targets)\n"
        "        if max(s * held, t * wanted) < min((s + 1) * held, (t + 1) * wanted, size)\n"
        "    ]",
    ),
    ("in another order", "return found", "return found[::-1]"),
    ("lists in place of tuples", APPEND, "found.append([source, target, begin, end])"),
]
