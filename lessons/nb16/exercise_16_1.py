"""16.1: the memory of one rank."""

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

from course_utils.checking.calls import called
from course_utils.checking.compare import expect

TITLE = "the memory of one rank"
PROVEN = (
    "ZeRO 0, 1 and 3 over dp x cp, 1 to 4 pipeline stages, 1 to 8 micro-batches,",
    "with and without recomputation, also with gradients in float32: state and activations",
)
OURS = '''"""The memory that one rank needs at the worst moment of a 1F1B step."""


def rank_bytes(
    parameters, layers, layer_bytes, input_bytes, cut, stage, microbatches, sizes=(2, 2, 12)
):
    """Bytes of weights, gradients, optimizer state and activations.

    Args:
        parameters: how many this rank computes with.
        layers: of the model, on this rank's stage.
        layer_bytes: what one layer keeps of one micro-batch, from forward to backward.
        input_bytes: the part of that which is the layer's input.
        cut: has .dp, .cp, .pp, .zero (0, 1 or 3) and .recompute (True or False).
        stage: this rank's, from 0.
        microbatches: m.
        sizes: bytes per parameter of weight, gradient and optimizer.
    """
    n, (weight, gradient, optimizer) = cut.dp * cut.cp, sizes
    sharded = {0: 0, 1: optimizer, 3: weight + gradient + optimizer}[cut.zero]
    state = parameters * (weight + gradient + optimizer - sharded + sharded / n)
    alive = min(microbatches, cut.pp - stage)  # between F and B (notebook 09)
    if cut.recompute:  # the inputs, and all of the one layer that runs again
        return state + alive * layers * input_bytes + layer_bytes
    return state + alive * layers * layer_bytes
'''


class Cut(NamedTuple):
    """What the student's function gets to know of a cut."""

    dp: int
    pp: int
    cp: int
    tp: int
    zero: int
    recompute: bool


class Sizes(NamedTuple):
    """Of what this rank computes with."""

    parameters: int  # as many as all shards divide, so that none is padded
    layers: int
    layer: int
    input: int


MIXED, WIDE = (2, 2, 12), (2, 4, 16)  # bytes of weight, gradient, optimizer state
AXES = ((1, 1, 1, 1), (4, 1, 1, 1), (2, 1, 3, 1), (2, 4, 1, 1), (1, 3, 2, 1), (2, 2, 1, 4))
FIRST, OTHER = Sizes(1200, 5, 700, 30), Sizes(6000, 3, 900, 50)


def cases(rank_bytes: Callable) -> None:
    """Three stages of ZeRO, every pipeline stage, few and many micro-batches, recomputation."""
    for sizes in (FIRST, OTHER):
        for axes, zero in product(AXES, (0, 1, 3)):
            for recompute, m in product((False, True), (1, 2, 8)):
                cut = Cut(*axes, zero, recompute)
                for stage in range(cut.pp):
                    look(rank_bytes, sizes, cut, stage, m)
    for zero in (0, 1, 3):
        look(rank_bytes, FIRST, Cut(2, 1, 3, 1, zero, False), 0, 1, WIDE)


def look(
    rank_bytes: Callable,
    sizes: Sizes,
    cut: Cut,
    stage: int,
    m: int,
    per: tuple[int, int, int] = MIXED,
) -> None:
    """The memory of one stage."""
    more = f", sizes={per}" if per != MIXED else ""
    call = f"rank_bytes({', '.join(map(str, sizes))}, {cut}, stage={stage}, microbatches={m}{more})"
    answer = called(call, rank_bytes, *sizes, cut, stage, m, *([per] if more else []))
    hint = "The state: bytes per parameter times parameters. Then layers times micro-batches alive."
    wrong = mistakes(sizes, cut, stage, m)
    if sizes != FIRST:
        known = ", ".join(map(str, FIRST))
        hint = f"For {known}, ... you are right. Which of them is written into your answer?"
        wrong = {}
    if more:
        hint = f"With {MIXED} bytes per parameter you are right. Are they written into your answer?"
        wrong = {}
    right = memory(sizes, cut, stage, m, per=per)
    expect(f"{call} returned", answer, right, wrong, hint, tolerance=1e-6)


def mistakes(sizes: Sizes, cut: Cut, stage: int, m: int) -> dict[str, float]:
    """The question for each known mistake, with what the mistake gives."""
    behind, n = cut.pp - stage, cut.dp * cut.cp
    two = {0: 16, 1: 2 + 14 / n, 3: 4 + 12 / n}[cut.zero]
    wrong = {
        "How many micro-batches are between F and B here, at most? Not all of them.": {"alive": m},
        "There are fewer micro-batches than stages behind this one.": {"alive": behind},
        "The last stage keeps one micro-batch, the first keeps p.": {"alive": min(m, stage + 1)},
        "The micro-batch that the stage is working on counts, too.": {"alive": min(m, behind - 1)},
        "The state is shared out over dp and cp: both hold the same parameters.": {"n": cut.dp},
        "The tp ranks hold different parameters. Over which ranks is the state shared out?": {
            "n": n * cut.tp
        },
        "What does this stage of ZeRO share out, and what stays whole?": {"state": 16},
        "Stage 1 shares out the optimizer's 12 bytes, stage 3 all 16.": {"state": two},
        "While a layer runs again, it needs all that it keeps.": {"one": 0},
        "With recomputation, count all inputs, and `layer_bytes` once on top, in full.": {
            "one": 1 - sizes.input / sizes.layer
        },
        "With recomputation each layer keeps only its input.": {"input": sizes.layer, "one": 0},
    }
    return {hint: memory(sizes, cut, stage, m, **terms) for hint, terms in wrong.items()}


def memory(
    sizes: Sizes,
    cut: Cut,
    stage: int,
    m: int,
    per: tuple[int, int, int] = MIXED,
    **wrong: Any,
) -> float:
    """What a rank holds; `wrong` replaces some of the terms."""
    n, whole, optimizer = wrong.get("n", cut.dp * cut.cp), sum(per), per[2]
    right = {"alive": min(m, cut.pp - stage), "one": 1, "input": sizes.input}
    right["state"] = {0: whole, 1: whole - optimizer + optimizer / n, 3: whole / n}[cut.zero]
    use = right | wrong
    kept = use["alive"] * sizes.layers * (use["input"] if cut.recompute else sizes.layer)
    return sizes.parameters * use["state"] + kept + use["one"] * sizes.layer * cut.recompute


ALIVE = "min(microbatches, cut.pp - stage)"
RECOMPUTED = """if cut.recompute:  # the inputs, and all of the one layer that runs again
        return state + alive * layers * input_bytes + layer_bytes
    return state + alive * layers * layer_bytes"""

WRONG = [
    ("all micro-batches", ALIVE, "microbatches", "Not all of them"),
    (
        "as many as stages behind",
        ALIVE,
        "cut.pp - stage",
        "fewer micro-batches than stages",
    ),
    (
        "the stages counted from the wrong end",
        ALIVE,
        "min(microbatches, stage + 1)",
        "the first keeps p",
    ),
    (
        "without the one at work",
        ALIVE,
        "min(microbatches, cut.pp - 1 - stage)",
        "counts, too",
    ),
    ("only dp", "cut.dp * cut.cp", "cut.dp", "over dp and cp"),
    ("nothing is sharded", " - sharded + sharded / n", "", "what stays whole?"),
    (
        "the stages of ZeRO mixed up",
        "1: optimizer, 3: weight + gradient + optimizer",
        "1: gradient + optimizer, 3: optimizer",
        "stage 3 all 16",
    ),
    ("the layer that runs again", " + layer_bytes", "", "needs all that it keeps"),
    ("its input counted once", " + layer_bytes", " + layer_bytes - input_bytes", "in full"),
    ("recomputation saves nothing", "if cut.recompute:", "if False:", "only its input"),
    (
        "nothing returned",
        RECOMPUTED,
        "return None",
        "expected",
    ),
    ("not a number", "sharded / n", "float('nan')", "nan"),
    ("tp ranks too", "cut.dp * cut.cp", "cut.dp * cut.cp * cut.tp", "hold different parameters"),
    (
        "the number of layers is written in",
        "alive * layers * layer_bytes",
        "alive * 5 * layer_bytes",
        "written into your answer",
    ),
    ("the parameters are written in", "state = parameters", "state = 1200", "written into"),
    ("the size of a layer is written in", " + layer_bytes", " + 700", "written into your answer"),
    ("the size of an input is written in", "* input_bytes", "* 30", "written into your answer"),
    (
        "changes the cut",
        "n, (weight",
        "cut.dp *= cut.cp\nn, (weight",
        "can't set attribute",
    ),
    (
        "the bytes per parameter are written in",
        "n, (weight, gradient, optimizer) = cut.dp * cut.cp, sizes",
        "n, (weight, gradient, optimizer) = cut.dp * cut.cp, (2, 2, 12)",
        "With (2, 2, 12) bytes per parameter you are right",
    ),
    ("a word", "->", "str", "Return a number"),
    ("beyond every float", "->", "lambda held: 10**400", "beyond 1e308"),
    ("ends with an exit", "->", "exit", "ended with an exit"),
]
RIGHT = [
    (
        "in one line",
        RECOMPUTED,
        "kept, again = (input_bytes, layer_bytes) if cut.recompute else (layer_bytes, 0)\n"
        "return state + alive * layers * kept + again",
    ),
    ("numpy's numbers", "->", "numpys"),
    ("single precision", "->", "lambda held: torch.tensor(float(held), dtype=torch.float32)"),
    ("a fraction", "->", "__import__('fractions').Fraction"),
    (
        "shards of whole parameters",
        "state = parameters * (weight + gradient + optimizer - sharded + sharded / n)",
        "whole = weight + gradient + optimizer - sharded\n"
        "state = parameters * whole + -(-parameters // n) * sharded",
    ),
]
