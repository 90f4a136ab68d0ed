"""What Sphinx must know to read the notebooks: links as in JupyterLab, and worker cells."""

import re
from collections.abc import Iterator
from typing import Any

from IPython.lib.lexers import IPython3Lexer
from pygments.lexer import bygroups, inherit, using
from pygments.lexers.python import Python3Lexer
from pygments.token import Keyword, Name, Operator, Punctuation, Text, Whitespace

PLAIN = (Name, Operator, Punctuation, Whitespace)  # half of a page, if each had a colour


class CourseLexer(IPython3Lexer):
    """Colours what follows a magic of the course as Python: it is a script."""

    name = "course"
    aliases = ("course",)
    tokens = {  # noqa: RUF012 - this is how lexers are written
        "root": [
            (
                r"(?s)(%%(?:worker|torchrun|ours))([^\n]*\n)(.*)",
                bygroups(Keyword, Text, using(Python3Lexer)),
            ),
            inherit,
        ]
    }

    def get_tokens(self, *arguments: Any, **options: Any) -> Iterator[tuple[Any, str]]:
        """The parts of a text; plain names and signs have no colour, neighbours are one part."""
        kind, text = Text, ""
        for other, part in super().get_tokens(*arguments, **options):
            colour = Text if other in PLAIN else other
            if colour is not kind:
                if text:
                    yield kind, text
                kind, text = colour, ""
            text += part
        yield kind, text


def slug(heading: str) -> str:
    """The anchor of a heading: `#2-Around-a-ring` as in JupyterLab, where links are written."""
    return re.sub(r"\s", "-", heading.strip())


def setup(app: Any) -> dict[str, bool]:
    """Register the lexer."""
    app.add_lexer("course", CourseLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
