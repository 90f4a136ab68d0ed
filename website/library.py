"""The pages of `nbtorchrun`, the library: its README, and what it offers, from its docstrings."""

import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import nbtorchrun
from course_utils import paths
from nbtorchrun import runs, worker

FOLDER = paths.ROOT / "nbtorchrun"
PAGES = ("nbtorchrun/index", "nbtorchrun/api")
LINK = re.compile(r"(?<!!)\[(?P<words>[^\]]+)\]\((?P<to>[^)\s]+)\)")


def pages() -> dict[str, str]:
    """The library's pages, by file."""
    return {f"{PAGES[0]}.md": readme(), f"{PAGES[1]}.md": _written("API.md") or api()}


def readme() -> str:
    """The library's README; what the package says of itself as long as it has none."""
    text = _written("README.md") or f"# nbtorchrun\n\n{inspect.getdoc(nbtorchrun)}\n"
    return f"{text}\n[What it offers](api.md), function by function.\n"


def api() -> str:
    """What a notebook and a rank may call, from the docstrings."""
    parts = ["# nbtorchrun: the API", "## In a notebook"]
    parts += _members(nbtorchrun)
    parts += ["## A run that has ended", *_described("Run", runs.Run)]
    parts += [*_described("Rank", runs.Rank), "## In a script", *_members(worker)]
    return "\n\n".join(parts) + "\n"


def _members(module: ModuleType) -> Iterator[str]:
    for name in module.__all__:
        yield from _described(name, getattr(module, name))


def _described(name: str, thing: Any) -> Iterator[str]:
    """A heading with the arguments, and the docstring; of a class also its attributes."""
    plain = inspect.isclass(thing)
    arguments = "" if plain else re.sub(r": [^,()]*?(\[.*?\])?(?=[,)=]| =)", "", _signature(thing))
    yield f"### `{name}`"
    if arguments:
        yield f"```python\n{name}{arguments}\n```"
    yield _listed(inspect.getdoc(thing) or "")
    if plain:
        for member, value in vars(thing).items():
            about = inspect.getdoc(value.fget if isinstance(value, property) else value) or ""
            if not member.startswith("_") and (inspect.isfunction(value) or hasattr(value, "fget")):
                yield f"- `.{member}{'()' * inspect.isfunction(value)}`: {about.partition('.')[0]}."


def _signature(thing: Any) -> str:
    """The arguments with their defaults, without types: the text says what they are."""
    signature = inspect.signature(thing)
    bare = [
        each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()
    ]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def _listed(docstring: str) -> str:
    """A docstring as Markdown: its Args, Attributes and Raises are lists."""
    lines, inside = [], False
    for line in docstring.splitlines():
        if re.fullmatch(r"(Args|Attributes|Raises|Returns):", line):
            inside = True
            lines += [f"**{line.removesuffix(':')}**", ""]
        elif inside and (found := re.match(r" {4}(\w+): (.*)", line)):
            lines.append(f"- `{found[1]}`: {found[2]}")
        else:
            lines.append(f"  {line.strip()}" if inside and line.startswith(" ") else line)
    return "\n".join(lines)


def _written(name: str) -> str:
    """A text beside the library's code, '' if there is none; its links lead to pages of the site.

    What the site has no page for is named without a link.
    """
    path = FOLDER / name
    return LINK.sub(_link, path.read_text(encoding="utf-8")) if path.exists() else ""


def _link(found: re.Match[str]) -> str:
    to, _, anchor = found["to"].partition("#")
    if not to or re.match(r"\w+:", to):
        return found[0]
    target = (FOLDER / to).resolve()
    known = {
        FOLDER / "API.md": "api.md",
        FOLDER / "README.md": "index.md",
        paths.ROOT: "../index.md",
    }
    known[paths.ROOT / "README.md"] = "../index.md"
    known |= {path: f"../notebooks/{path.name}" for path in paths.NOTEBOOKS.glob("*.ipynb")}
    return (
        f"[{found['words']}]({known[target]}{'#' * bool(anchor)}{anchor})"
        if target in known
        else found["words"]
    )
