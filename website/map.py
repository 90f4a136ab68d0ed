"""The map of the course: a picture, ways through it and a table, for the README and the site.

`python -m website.map` draws `docs/map.svg` and writes the rest into the README. What a notebook is
called and how long it takes comes from the notebook; what it needs, and where it stands, from here.
"""

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

from course_utils import cells, paths
from nbtorchrun import palette
from tools import demos

PICTURE = paths.ROOT / "docs" / "map.svg"
README = paths.ROOT / "README.md"
BEGIN, END = "<!-- the map: python -m website.map -->", "<!-- the end of the map -->"
SHORT_WAY = "00", "07"  # from here to there


@dataclass(frozen=True)
class Stop:
    """A notebook on the map.

    Attributes:
        at: its column and its row in the picture.
        name: short enough for a box.
        able: what a student will be able to do, in one line.
        needs: the notebooks that come before it.
        parts: those of which it needs only a part.
    """

    at: tuple[float, int]
    name: str
    able: str
    needs: str = ""
    parts: str = ""


STOPS = {
    "00": Stop(
        (3, 0),
        "Collectives",
        "let several processes agree on one result, and time how long that takes",
    ),
    "01": Stop(
        (1.5, 0),
        "Tape autograd",
        "write automatic differentiation by hand, and say when each gradient is ready",
    ),
    "02": Stop(
        (0.5, 1),
        "Data parallel",
        "split a batch over several devices with threads, and say why DDP is usually better",
        needs="01",
        parts="00",
    ),
    "03": Stop(
        (1.5, 1),
        "DDP",
        "write DDP by hand, and test that it trains what one process would",
        needs="00",
        parts="01",
    ),
    "04": Stop(
        (2.5, 1),
        "Ring all-reduce",
        "say what an all-reduce costs before you run it, and write one that cannot deadlock",
        needs="00",
    ),
    "05": Stop(
        (3, 2),
        "FSDP and ZeRO",
        "shard a model that is too large for one GPU, and count its bytes beforehand",
        needs="03 04",
    ),
    "06": Stop(
        (3.5, 1),
        "Tensor parallel",
        "split one layer over several GPUs, with gradients that are right",
        needs="00 01",
        parts="03 05",
    ),
    "07": Stop(
        (3.5, 3),
        "A Transformer",
        "train a Transformer with DDP on parts you wrote, and prove that it is the right model",
        needs="00",
        parts="03 04 05 06",
    ),
    "08": Stop(
        (1, 2),
        "A real run",
        "train a language model for real: data that resumes, spikes, a log, exact evaluation",
        needs="03",
    ),
    "09": Stop(
        (4.5, 1),
        "Pipeline parallel",
        "cut a model between its layers, and know the idle time of a schedule beforehand",
        needs="00",
    ),
    "10": Stop(
        (2, 2),
        "Talking less",
        "train over a slow network: compress gradients, or send them less often",
        needs="03 04",
    ),
    "11": Stop(
        (4, 2),
        "Long sequences",
        "cut a long sequence over ranks, with gradients that are right and work that is shared",
        needs="00 06",
        parts="07",
    ),
    "12": Stop(
        (5, 2),
        "Many experts",
        "send tokens to experts on other ranks, and know what travels beforehand",
        needs="00",
        parts="03 06",
    ),
    "13": Stop(
        (0, 2),
        "Slow or stuck",
        "find the rank and the line that stop a run, or slow it down",
        needs="00 03",
        parts="07",
    ),
    "14": Stop(
        (2, 3),
        "Many machines",
        "survive a dead rank, host or link, and resume with the same bits",
        needs="03 05",
    ),
    "15": Stop(
        (4.5, 3),
        "All dimensions",
        "combine all of it on a mesh, audit every gradient, and refuse a wrong layout beforehand",
        needs="03 05 06 09 11",
        parts="12",
    ),
    "16": Stop(
        (4.5, 4),
        "Planning a run",
        "say how to cut a model for 512 GPUs, and how far to trust that plan",
        needs="05 09 15",
    ),
    "17": Stop(
        (2.75, 4),
        "Two engines",
        "send a policy from engines that train to engines that generate, and prove it is the same",
        needs="05 07",
        parts="06",
    ),
}
# The arrows that are drawn: what a notebook needs of the notebook before it follows from these.
ARROWS = "01-02 00-03 00-04 00-06 01-06 00-09 03-05 04-05 03-08 03-10 04-10 03-13 06-11 05-14"
ARROWS += " 05-15 09-15 11-15 15-16 05-17 07-17"
DASHED = "01-03 05-07 06-07 06-12 12-15"
STARTS = {"00": "start here", "04": "you use DDP?"}  # where to begin

PITCH, WIDTH, HEIGHT, ROW = 166, 154, 62, 108  # of the boxes, in pixels
MARGIN, TOP = 12, 30
LINE = "#7d8590"  # 3 : 1 on white pages and on dark ones
INK = "#1b2733"  # of words, which stand on the boxes only


def minutes(number: str) -> int:
    """How long a notebook takes at most, as it says itself."""
    return int(re.search(r"\*\*Time\*\* (?:\d+ to )?(\d+) minutes", _first_cell(number))[1])


def title(number: str) -> str:
    """The title of a notebook, without its number."""
    return _first_cell(number).partition("\n")[0].partition(" · ")[2]


def hours(numbers: list[str]) -> str:
    """How long notebooks take together, such as "15 hours"."""
    return f"{sum(map(minutes, numbers)) / 60:.0f} hours"


def short_way() -> list[str]:
    """The notebooks that most come for, in order."""
    first, last = SHORT_WAY
    return [number for number in STOPS if first <= number <= last]


def needs(stop: Stop) -> str:
    """What comes before, such as "00, a part of 01"."""
    parts = f"parts of {_and(stop.parts)}" if " " in stop.parts else f"a part of {stop.parts}"
    return ", ".join(filter(None, [_and(stop.needs), parts if stop.parts else ""])) or "nothing"


def picture() -> str:
    """The map as SVG. Its words stand on boxes of their own: it reads on light and dark pages."""
    columns, rows = (max(stop.at[axis] for stop in STOPS.values()) for axis in (0, 1))
    width, height = columns * PITCH + WIDTH + 2 * MARGIN, TOP + rows * ROW + HEIGHT + 70
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" font-family="sans-serif" '
        f'font-size="13" fill="{INK}">',
        "<title>What each notebook needs: the short way, 00 to 07, and the rest</title>",
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{LINE}"/></marker></defs>',
    ]
    for dashed, pairs in ((False, ARROWS), (True, DASHED)):
        drawn += [_arrow(*pair.split("-"), dashed) for pair in pairs.split()]
    for number, stop in STOPS.items():
        drawn += _box(number, stop)
    drawn += _legend(height)
    return "\n".join([*drawn, "</svg>"]) + "\n"


def table() -> str:
    """A row for each notebook: what it makes a student able to do, its time, needs and demos."""
    lines = ["| | notebook | you will be able to | minutes | needs | demos |"]
    lines += ["| --- | --- | --- | --- | --- | --- |"]
    found = demos.find_all().values()
    for number, stop in STOPS.items():
        own = ", ".join(f"`{demo.name}`" for demo in found if demo.notebook.startswith(number))
        link = f"[{title(number)}](notebooks/{_path(number).name})"
        row = [number, link, stop.able, str(minutes(number)), needs(stop), own]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def ways() -> str:
    """The ways through the course, in words."""
    return f"""\
- **The short way**: 00, then the seven labs 01 to 07, in order. About {hours(short_way())}.
- **The whole way**: then 08 to {[*STOPS][-1]}, in order or as the arrows allow: {hours([*STOPS])}
  in all.
- **You know what `backward` does?** Skip 01, but read the end of its core, *When is a gradient
  ready?*.
- **You already train with DDP?** Run 00 quickly, for the tools. Skim 03, and begin with 04.
- **A run of yours hangs or is slow?** 00, then 13.

The minutes include the exercises of a notebook, but not its last part, *Going further*."""


def filled(text: str) -> str:
    """A document with the ways and the table between its two marks."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{ways()}\n\n{table()}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Draw the picture, and write the ways and the table."""
    PICTURE.write_text(picture(), encoding="utf-8")
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8")


def _path(number: str) -> Path:
    (path,) = paths.NOTEBOOKS.glob(f"{number}_*.ipynb")
    return path


def _first_cell(number: str) -> str:
    return "".join(cells.read(_path(number))["cells"][0]["source"])


def _and(numbers: str) -> str:
    *most, last = numbers.split() or [""]
    return f"{', '.join(most)} and {last}" if most else last


def _corner(number: str) -> tuple[float, float]:
    column, row = STOPS[number].at
    return MARGIN + column * PITCH, TOP + row * ROW


def _arrow(one: str, other: str, dashed: bool) -> str:
    (x, y), (to_x, to_y) = _corner(one), _corner(other)
    lean = max(-45, min(45, (to_x - x) / 6))  # arrows to a box end side by side
    x, y, to_x = x + WIDTH / 2 + lean, y + HEIGHT, to_x + WIDTH / 2 - lean
    style = ' stroke-dasharray="4 4"' if dashed else ""
    return (
        f'<path d="M{x:.0f} {y}L{to_x:.0f} {to_y - 2}" fill="none" stroke="{LINE}" '
        f'stroke-width="1.6"{style} marker-end="url(#tip)"/>'
    )


def _patch(x: float, y: float, width: float, height: float, colour: str) -> str:
    style = palette.ground(colour, 0.25)
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width}" height="{height}" rx="7" '
        f'fill="{style["facecolor"]}" stroke="{style["edgecolor"]}" stroke-width="1.5"/>'
    )


def _words(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}"{more}>{escape(text)}</text>'


def _colour(number: str) -> str:
    return palette.colour(0) if number in short_way() else palette.colour(5)


def _box(number: str, stop: Stop) -> list[str]:
    x, y = _corner(number)
    needed = f"needs {stop.needs or 'nothing'}"
    drawn = [
        _patch(x, y, WIDTH, HEIGHT, _colour(number)),
        _words(x + 9, y + 19, f"{number} {stop.name}", ' font-weight="bold" font-size="12.5"'),
        _words(x + 9, y + 36, f"{minutes(number)} minutes", ' font-size="12"'),
        _words(x + 9, y + 53, needed, ' font-size="12"'),
    ]
    if number in STARTS:
        words = STARTS[number]
        wide = 9 * len(words) // 1.25 + 14
        drawn += [
            _patch(x + 6, y - 13, wide, 20, palette.colour(2)),
            _words(x + 14, y + 1, words, ' font-size="12"'),
        ]
    return drawn


def _legend(height: float) -> list[str]:
    y = height - 40
    said = [
        ("00", f"the short way, 00 to 07: {hours(short_way())}"),
        ("08", f"the rest; all of it takes {hours(list(STOPS))}"),
    ]
    drawn, x = [], MARGIN
    for number, words in said:
        wide = round(7.4 * len(words)) + 20
        drawn += [_patch(x, y, wide, 26, _colour(number)), _words(x + 10, y + 17, words)]
        x += wide + 12
    words = "dashed: needs only a part"
    drawn += [_patch(x, y, 210, 26, "#999999"), _words(x + 10, y + 17, words)]
    return drawn


if __name__ == "__main__":
    main()
