"""The form of the wrong answers beside this file, and of right answers of another kind.

`MUTANTS` has rows for each exercise. A row names the mistake, gives parts of our solution, each
followed by what takes its place, and ends with a part of the message that the answer must get. An
answer that shares little with our solution gives its whole source instead. The rows of `RIGHT` have
no message.
"""

from course_utils.checking.registry import find


def changed(number: str, *parts: str) -> str:
    """The source of an answer: our solution, changed.

    Args:
        number: of the exercise.
        parts: `old, new, old, new, ...`: each old part is replaced by the new part after it, whose
            lines are indented like the line that the old part stands in. A single part is a whole
            source.

    Raises:
        ValueError: an old part does not stand there exactly once.
    """
    if len(parts) == 1:
        return parts[0]
    source = find(number).solution
    for old, new in zip(parts[::2], parts[1::2], strict=True):
        if (times := source.count(old)) != 1:
            raise ValueError(
                f"{old!r} stands {times} times in the answer to {number}: "
                "quote a part that stands there once"
            )
        line = source[: source.index(old)].rpartition("\n")[2]
        indent = line[: len(line) - len(line.lstrip())]
        source = source.replace(old, new.replace("\n", f"\n{indent}"))
    return source
