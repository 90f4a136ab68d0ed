"""The colours of ranks and of activities, the same in pictures, notebooks and terminals."""

# Okabe and Ito's palette (2008), which the colour-blind can tell apart.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#999999"]
TERMINAL = [75, 208, 43, 176, 117, 214, 247]  # the nearest of a terminal's 256
NEUTRAL = "#777777"  # words and arrows: readable on white and on black

# What a rank does. Of Paul Tol's muted palette (2021), so that none is taken for a rank's colour.
ACTIVITY = {
    "forward": "#88CCEE",
    "backward": "#332288",
    "message": "#DDCC77",
    "copy": "#CC6677",
    "update": "#117733",
    "wait": "#DDDDDD",
}


def colour(number: int) -> str:
    """The colour of rank `number`; ranks that are 7 apart share one."""
    return COLOURS[number % len(COLOURS)]


def terminal(number: int) -> str:
    """The colour of rank `number` as rich names it, among a terminal's 256."""
    return f"color({TERMINAL[number % len(TERMINAL)]})"
