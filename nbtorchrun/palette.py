"""The colours of ranks, of activities and of kinds of memory, the same wherever they are shown."""

# Okabe and Ito's palette (2008), which the colour-blind can tell apart, with grey and Paul Tol's
# wine in place of black and yellow, which vanish on a dark and on a white page.
COLOURS = [
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#999999", "#882255"
]  # fmt: skip
TERMINAL = [75, 208, 43, 176, 117, 214, 247, 168]  # the nearest of a terminal's 256
NEUTRAL = "#666666"  # words and arrows

WRONG = "#A84A00"  # words: rank 1's colour, darkened until it can be read on white
GROUND = 0.4  # how much of a colour a patch has that words stand on

# What a rank does. Of Paul Tol's muted palette (2021), so that none is taken for a rank's colour.
ACTIVITY = {
    "forward": "#88CCEE",
    "backward": "#332288",
    "message": "#DDCC77",
    "copy": "#CC6677",
    "update": "#117733",
    "wait": "#DDDDDD",
}

# What fills a GPU's memory: Paul Tol's light palette (2021), of which no rank and no activity has a
# colour. Weights and parameters are the same thing.
MEMORY = {
    "parameters": "#77AADD",
    "gradients": "#EE8866",
    "optimizer": "#BBCC33",
    "activations": "#FFAABB",
    "gathered": "#44BB99",
    "other": "#EEDD88",
}


def colour(number: int) -> str:
    """The colour of rank `number`; ranks that are 8 apart share one."""
    return COLOURS[number % len(COLOURS)]


def ground(colour: str, share: float = GROUND) -> dict[str, str]:
    """How to draw a patch that black words stand on: a light tint, framed in the full colour.

    Dark pages invert our figures. On the tint, words have a contrast of at least 4.5 : 1 on light
    and on dark pages (AA of WCAG 2.2). On the full colour most have half of that.

    Args:
        colour: as `#RRGGBB`.
        share: how much of the colour is mixed into white; at most `GROUND` under words.

    Returns:
        `facecolor` and `edgecolor`, as matplotlib's patches take them.
    """
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    tint = "".join(f"{round(255 - share * (255 - part)):02X}" for part in parts)
    return {"facecolor": f"#{tint}", "edgecolor": colour}


def outline(colour: str) -> str:
    """A darker tone of a colour, for the edge of a patch: 3 : 1 on white for every activity."""
    return "#" + "".join(f"{round(0.55 * int(colour[at : at + 2], 16)):02X}" for at in (1, 3, 5))


def terminal(number: int) -> str:
    """The colour of rank `number` as rich names it, among a terminal's 256."""
    return f"color({TERMINAL[number % len(TERMINAL)]})"
