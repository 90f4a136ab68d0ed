"""What somebody may have meant who typed a name that does not exist."""

import difflib
import re
from collections.abc import Iterable


def suggestion(word: str, names: Iterable[str]) -> str:
    """What to add to `there is no WORD`: the name that is most like it, or '' if none is."""
    close = difflib.get_close_matches(word, names, n=1)
    return f": did you mean {close[0]}?" if close else ""


def explained(message: str, usage: str) -> str:
    """What argparse says is wrong, with what may have been meant.

    Args:
        usage: the usage line, which names the options.
    """
    if unknown := re.search(r"unrecognized arguments: (--[\w-]+)", message):
        return message + suggestion(unknown[1], options(usage))
    if unknown := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
        return message + suggestion(unknown[1], re.findall(r"[\w-]+", unknown[2]))
    return message


def options(usage: str) -> list[str]:
    """The options that a usage line names."""
    return re.findall(r"--[\w-]+", usage)
