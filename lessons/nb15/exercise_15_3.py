"""15.3: three bugs to find with the audit."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist
from mesh import Mesh
from torch import Tensor

from course_utils.checking.compare import Wrong, expect_new, judge
from course_utils.checking.findings import described, judging, observe, random_values, where

TITLE = "three bugs to find with the audit"
PROVEN = (
    "every mesh dp x tp of 2, 4 and 6 ranks, and 10 rows that do not always divide:",
    "all four gradients are those of one process, and the weights stay as they were",
)
RANKS = (6, 4, 2)
OURS = '''"""The same step with its three messages mended."""

import torch.distributed as dist


def gradients(weights, x, targets, rows, dp, tp):
    """As in broken_step.py."""
    scale, bias, up, down = (weights[name] for name in ("scale", "bias", "up", "down"))
    scaled = x * scale
    hidden = (scaled @ up).relu()
    out = hidden @ down
    dist.all_reduce(out, group=tp)
    error = 2 * (out + bias - targets) / rows
    back = (error @ down.T) * (hidden > 0)
    below = back @ up.T
    dist.all_reduce(below, group=tp)  # 06's f: each tp rank went back through its own columns
    found = {"scale": (below * x).sum(0), "bias": error.sum(0)}
    found |= {"up": scaled.T @ back, "down": hidden.T @ error}
    for gradient in found.values():  # only dp ranks have other rows
        dist.all_reduce(gradient, group=dp)
    return found
'''
ROWS, WIDTH, HIDDEN = 10, 5, 12
SHAPES = {"scale": (WIDTH,), "bias": (WIDTH,), "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH)}
DIMENSION = {"up": 1, "down": 0}  # the one that tp cuts
Values = dict[str, Tensor]


def cases(gradients: Callable) -> None:
    """The four gradients on every mesh of dp x tp ranks, beside autograd in one process."""
    ranks = dist.get_world_size()
    for tp in range(1, ranks + 1):
        if ranks % tp == 0:
            look(gradients, ranks // tp, tp)


def look(gradients: Callable, dp: int, tp: int) -> None:
    """One step on one mesh. The student's function knows nothing of meshes: it gets two groups."""
    mesh, answers = Mesh(dp=dp, tp=tp), []
    at = mesh.coordinate()
    weights = {
        name: random_values(seed, *shape, dtype=torch.float64)
        for seed, (name, shape) in enumerate(SHAPES.items())
    }
    x, targets = (random_values(seed, ROWS, WIDTH, dtype=torch.float64) for seed in (8, 9))
    given = (
        cut(weights, tp, at.tp),
        *(rows.tensor_split(dp)[at.dp].clone() for rows in (x, targets)),
    )

    def step(*given: Any) -> Any:
        answers.append(gradients(*given, ROWS, mesh.group("dp"), mesh.group("tp")))
        return answers[-1]

    found = observe(step, *given, names=("`weights`", "`x`", "`targets`"))
    here = where(f"dp = {dp}, tp = {tp}")
    with judging():
        if not isinstance(answers[0], Mapping) or set(answers[0]) != set(SHAPES):
            names = ", ".join(SHAPES)
            raise Wrong(f"{here} returned {answers[0]!r:.60}", f"Return a dictionary with {names}.")
        right = cut(one_process(weights, x, targets), tp, at.tp)
        parts = Parts(weights, x, targets, dp, tp)
        for name, value in right.items():
            judge(
                f"{here}, as the gradient of `{name}`,",
                found | described(answers[0][name]),
                value,
                parts.mistakes(name, value, at.dp, at.tp),
                ONLY_DP if tp == 1 else OTHERWISE,
                dtype=torch.float64,
            )
        expect_new(here, found)


def one_process(weights: Values, x: Tensor, targets: Tensor) -> Values:
    """What autograd finds for the squared error per row, (B, D) in and out."""
    scale, bias, up, down = (weights[name].clone().requires_grad_() for name in SHAPES)
    out = ((x * scale) @ up).relu() @ down + bias
    loss = (out - targets).square().sum() / len(x)
    found = torch.autograd.grad(loss, (scale, bias, up, down))
    return dict(zip(SHAPES, found, strict=True))


def cut(values: Values, tp: int, place: int) -> Values:
    """What a tp rank has of each."""
    return {
        name: value.tensor_split(tp, DIMENSION[name])[place].clone()
        if name in DIMENSION
        else value.clone()
        for name, value in values.items()
    }


ONLY_DP = "With tp = 1 only dp is left: a sum over all rows, divided by `rows` once."
OTHERWISE = "Compare with one process, from the end: bias, then down, up, and scale."
ROWS_DIFFER = "That is from this rank's rows alone. Over which ranks do the rows differ?"
OWN_COLUMNS = "Each tp rank went back through its own columns of `up`. Where is the sum of them?"
TOO_OFTEN = "That is tp times too large: the tp ranks all have this gradient already."
COLUMNS_ADDED = "The tp ranks hold other columns. Why add their gradients up?"
MEAN = "That is a mean over dp, but the loss is divided by `rows` once already."
OWN_ROWS = "Each dp rank divides by its own rows. What is `rows`?"
OWN_OUT = "The forward pass is wrong already: `out` is a sum over all columns of `up`."


class Parts:
    """What each rank would find before any gradient is summed; `whole`: with the right `out`."""

    def __init__(self, weights: Values, x: Tensor, targets: Tensor, dp: int, tp: int) -> None:
        self.dp, self.tp = dp, tp
        self.rows = [len(each) for each in x.tensor_split(dp)]
        self.whole, self.own = {}, {}
        for d, (inputs, wanted) in enumerate(
            zip(x.tensor_split(dp), targets.tensor_split(dp), strict=True)
        ):
            mine = [cut(weights, tp, t) for t in range(tp)]
            scaled = inputs * weights["scale"]
            hidden = [(scaled @ each["up"]).relu() for each in mine]
            outs = [h @ each["down"] for h, each in zip(hidden, mine, strict=True)]
            for t in range(tp):
                for found, out in ((self.whole, sum(outs)), (self.own, outs[t])):
                    error = 2 * (out + weights["bias"] - wanted) / ROWS
                    back = (error @ mine[t]["down"].T) * (hidden[t] > 0)
                    below = back @ mine[t]["up"].T
                    found[d, t] = {
                        "scale": (below * inputs).sum(0),
                        "bias": error.sum(0),
                        "up": scaled.T @ back,
                        "down": hidden[t].T @ error,
                    }

    def total(self, name: str, found: dict, ds: Any, ts: Any, share: Any = None) -> Tensor:
        """The sum of what those ranks find; each dp rank's share, if given, as a factor."""
        return sum(found[d, t][name] * (share[d] if share else 1) for d in ds for t in ts)

    def mistakes(self, name: str, right: Tensor, d: int, t: int) -> list[tuple[str, Tensor]]:
        """Each known mistake's question, and what it gives on this rank."""
        rows, columns = range(self.dp), range(self.tp)
        summed = columns if name == "scale" else [t]
        own = [ROWS / each for each in self.rows]
        known = [
            (ROWS_DIFFER, self.total(name, self.whole, [d], summed)),
            (MEAN, right / self.dp),
            (OWN_ROWS, self.total(name, self.whole, rows, summed, own)),
            (TOO_OFTEN, self.tp * right),
            (OWN_OUT, self.total(name, self.own, rows, summed)),
        ]
        if name == "scale":
            known += [
                (OWN_COLUMNS, self.total(name, self.whole, each, [t])) for each in (rows, [d])
            ]
        if name in DIMENSION:
            known.append((COLUMNS_ADDED, self.total(name, self.whole, rows, columns)))
        return known


SUM = "dist.all_reduce(gradient, group=dp)"
EACH = f"for gradient in found.values():  # only dp ranks have other rows\n        {SUM}"

WRONG = [
    (
        "the sum over tp is still missing",
        "dist.all_reduce(below, group=tp)",
        "pass",
        "Each tp rank went back through its own columns",
    ),
    (
        "bias is still summed over all ranks",
        "return found",
        'dist.all_reduce(found["bias"], group=tp)\nreturn found',
        "have this gradient already",
    ),
    (
        "down is still not summed",
        "found.values()",
        '[each for name, each in found.items() if name != "down"]',
        "as the gradient of `down`",
    ),
    (
        "everything is summed over all ranks",
        SUM,
        "dist.all_reduce(gradient)",
        "have this gradient already",
    ),
    (
        "a mean over dp",
        SUM,
        f"{SUM}\ngradient /= dist.get_world_size(dp)",
        "divided by `rows` once",
    ),
    (
        "each rank divides by its own rows",
        "/ rows",
        "/ len(x)",
        "What is `rows`?",
    ),
    (
        "without the sum of the forward pass",
        "dist.all_reduce(out, group=tp)",
        "pass",
        "The forward pass is wrong already",
    ),
    (
        "one gradient is left out",
        '"bias": error.sum(0)',
        "",
        "Return a dictionary",
    ),
    ("x is scaled in place", "x * scale", "x.mul_(scale)", "expected"),
    (
        "weights are changed",
        "return found",
        'bias -= 0.1 * found["bias"]\nreturn found',
        "changed `weights` that it was given",
    ),
    (
        "not a number",
        "return found",
        "found['up'] *= float('nan')\nreturn found",
        "as the gradient of `up`",
    ),
    (
        "bias is not summed",
        "found.values()",
        '[each for n, each in found.items() if n != "bias"]',
        "this rank's rows alone",
    ),
    (
        "columns are added up",
        "return found",
        'dist.all_reduce(found["up"], group=tp)\nreturn found',
        "Why add their gradients up?",
    ),
    (
        "a rank does not sum",
        EACH,
        f"for gradient in list(found.values())[dist.get_rank() == 0 :]:\n    {SUM}",
        "Does every rank call every collective",
    ),
    (
        "one buffer for all calls",
        "return found",
        'kept = gradients.__dict__.setdefault("kept", found["bias"].clone())\n'
        'found["bias"] = kept.copy_(found["bias"])\nreturn found',
        "two calls gave answers in the same memory",
    ),
    (
        "one buffer, returned",
        "return found",
        "found['bias'] = bias.copy_(found['bias'])\nreturn found",
        "changed `weights`",
    ),
    (
        "a dimension too many",
        "->",
        "lambda found: {name: each[None] for name, each in found.items()}",
        "form that",
    ),
    (
        "float32",
        "->",
        "lambda found: {name: each.float() for name, each in found.items()}",
        "last dig",
    ),
    (
        "numbers",
        "->",
        "lambda found: {name: each.tolist() for name, each in found.items()}",
        "expected a Tensor",
    ),
]
RIGHT = [
    (
        "written out",
        EACH,
        'dist.all_reduce(found["scale"], group=dp)\n'
        'dist.all_reduce(found["bias"], group=dp)\n'
        'dist.all_reduce(found["up"], group=dp)\n'
        'dist.all_reduce(found["down"], group=dp)',
    ),
    (
        "the sum over tp at the end",
        "dist.all_reduce(below, group=tp)",
        "pass",
        "return found",
        'dist.all_reduce(found["scale"], group=tp)\nreturn found',
    ),
]
