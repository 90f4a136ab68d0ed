"""07.4: three bugs and no crash."""

from collections.abc import Callable

import torch
import torch.distributed as dist
from text_data import batch, encode
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformer import Transformer

from course_utils.checking.compare import NAN, Wrong, count, expect, has_nan, plain
from course_utils.checking.findings import described, judging, where
from course_utils.checking.values import close, is_number
from nbtorchrun.meter import meter
from nbtorchrun.worker import device

TITLE = "three bugs and no crash"
PROVEN = (
    "1, 2 and 3 ranks: together they train on each batch once, in micro-batches",
    "the parameters of one process on every rank, one message per step, the right losses",
)
RANKS = (3, 2, 1)
SECONDS = 60
AS_GIVEN = "824e8257f3c1"
OURS = '''"""Train on real text, over all ranks, in micro-batches; the three bugs are mended."""

from contextlib import nullcontext

import torch
import torch.distributed as dist
from text_data import batch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel as DDP

from course_utils.worker import device


def train(
    model: nn.Module, optimizer: torch.optim.Optimizer, ids: Tensor, steps: int, size: int, m: int
) -> list[float]:
    """Train on batches of `size` windows over all ranks, on each rank in `m` micro-batches."""
    replica = DDP(model)
    losses = []
    for step in range(steps):
        everyone = batch(ids, 32, size, seed=0, step=step)
        mine = everyone.chunk(dist.get_world_size())[dist.get_rank()]  # each rank its own part
        mean = 0.0
        optimizer.zero_grad()  # once a step: the micro-batches' gradients add up
        parts = mine.to(device()).chunk(m)  # of 5 windows, chunk(4) makes 3 parts: 2, 2, 1
        for number, part in enumerate(parts):
            with nullcontext() if number == len(parts) - 1 else replica.no_sync():
                logits = replica(part[:, :-1])  # not `model`: DDP has to see the forward pass
                loss = cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten())
                loss = loss * (len(part) / len(mine))  # a mean over windows, not over parts
                loss.backward()
            mean += loss.item()
        optimizer.step()
        losses.append(mean)
    return losses
'''
IDS = encode("the quick brown fox jumps over the lazy dog\n" * 9 + "pack my box " * 40)
CASES = [(2, 4, 2, 1e-3), (3, 5, 4, 2e-3), (1, 3, 1, 1e-3)]  # steps, windows a rank, m, rate


def cases(train: Callable) -> None:
    """Windows, replicas, steps, messages and losses beside those of one process."""
    for steps, each, m, rate in CASES:
        look(train, steps, each, m, rate)


def look(train: Callable, steps: int, each: int, m: int, rate: float) -> None:
    """One training on `each` windows a rank and step, in m micro-batches."""
    world = dist.get_world_size()
    size = each * world
    (model, optimizer), given = build(rate), []
    before = values(model)
    model.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0].tolist()))
    with meter() as moved:
        losses = train(model, optimizer, IDS, steps, size, m)
    after, (right, right_losses) = values(model), one_process(rate, steps, size, m)
    seen = [[tuple(row) for rows in every for row in rows] for every in everyone(given)]
    asked = [batch(IDS, 32, size, seed=0, step=step)[:, :-1].tolist() for step in range(steps)]
    wanted = sorted(tuple(row) for rows in asked for row in rows)
    alike = [one == after.tolist() for one in everyone(after.tolist())]
    sent = [call.bytes for call in moved.calls if call.name == "all_reduce"]
    sizes = [len(rows) for rows in given]
    here = where(f"{each} windows a rank, m = {m}, {steps} steps")
    with judging():
        most = -(-each // m)
        if sum(sizes) != steps * each or max(sizes) > most or len(sizes) > steps * m:
            said = f"{here} passed {sizes} windows through the model, expected {each} a step"
            hint = f"Each rank takes its share of the batch, in m parts of at most {most}."
            raise Wrong(said, hint)
        if world > 1 and all(rows == seen[0] for rows in seen):
            hint = "On what does `batch` depend? Where does the rank come in?"
            raise Wrong(f"{here} trained on the same windows as all others", hint)
        if sorted(row for rows in seen for row in rows) != wanted:
            hint = (
                "One process would draw batch(ids, 32, size, ...). Each rank takes a part of that."
            )
            raise Wrong(f"{here}: together the ranks did not train on the batch of each step", hint)
        if after.isnan().any():
            raise Wrong(f"{here}: a parameter is nan", NAN)
        if not all(alike):
            other = alike.index(False)
            hint = "DDP averages gradients only for a forward pass that it has seen. Who runs it?"
            if each % m:
                hint = f"chunk({m}) of {each} windows makes fewer parts. When does DDP send?"
            raise Wrong(f"{here} and rank {other} end with different parameters", hint)
        if not close(plain(after), plain(right)):
            hint = hint_for_steps(after - before, right - before, each % m > 0)
            for name, part in {"first": slice(1), "last": slice(-1, None)}.items():
                if close(plain(after), plain(one_process(rate, steps, size, m, part)[0])):
                    hint = f"Only the {name} micro-batch of each step counts. Who forgets the rest?"
            raise Wrong(f"{here}: the parameters are not those of one process", hint)
        if sum(sent) != (once := steps * 8 * len(after)):
            hint = "Gradients should travel once per step. What keeps DDP silent until then?"
            raise Wrong(f"{here} sent {sum(sent):,} bytes by all_reduce, expected {once:,}", hint)
        if len(sent) != steps:
            hint = "DDP packs all these gradients into one message: who sends them one by one?"
            said = f"{here} called all_reduce {count(len(sent), 'time')}, expected {steps}"
            raise Wrong(said, hint)
        expect(
            f"{here} returned",
            described(losses)["kind"],
            "list",
            otherwise="A list: one loss a step.",
        )
        if not are_losses(plain(losses), steps):
            said = f"{here} returned {plain(losses)}, expected the losses of {count(steps, 'step')}"
            hint = "One loss for each step: a number."
            raise Wrong(said, NAN if has_nan(plain(losses)) else hint)
    every = everyone(plain(losses))
    if all(are_losses(each, steps) for each in every):
        with judging():
            mean = [sum(each) / world for each in zip(*every, strict=True)]
            hint = "This rank's mean loss of each step, over all its micro-batches."
            said = f"{here} returned {losses}; the mean of all ranks' losses is"
            expect(said, mean, right_losses, otherwise=hint, tolerance=1e-6)


def build(rate: float) -> tuple[Transformer, torch.optim.Optimizer]:
    """A small model, the same on every rank; its steps are so short that two add up."""
    torch.manual_seed(1)
    model = Transformer(97, 8, 2, 16, 1, 32, dropout=0.0).to(device(), torch.float64)
    return model, torch.optim.SGD(model.parameters(), lr=rate)


def values(model: Transformer) -> Tensor:
    """All parameters: (n,)."""
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def one_process(
    rate: float, steps: int, size: int, m: int, kept: slice = slice(None)
) -> tuple[Tensor, list[float]]:
    """The parameters and losses of one process; `kept`: which micro-batches count."""
    (model, optimizer), losses, world = build(rate), [], dist.get_world_size()
    for step in range(steps):
        rows = batch(IDS, 32, size, seed=0, step=step).to(device())
        optimizer.zero_grad()
        each = []
        for mine in rows.chunk(world):
            logits = [(model(p[:, :-1]), p[:, 1:], len(p) / len(mine)) for p in mine.chunk(m)[kept]]
            each.append(
                sum(share * cross_entropy(x.flatten(0, 1), y.flatten()) for x, y, share in logits)
            )
        (sum(each) / world).backward()
        optimizer.step()
        losses.append(sum(each).item() / world)
    return values(model), losses


def everyone(mine: object) -> list:
    """What each rank has, by rank."""
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, mine)
    return found


def are_losses(found: object, steps: int) -> bool:
    """Whether it is a list of that many numbers."""
    numbers = isinstance(found, list) and all(map(is_number, found)) and not has_nan(found)
    return numbers and len(found) == steps


def hint_for_steps(moved: Tensor, right: Tensor, uneven: bool) -> str:
    """The question for parameters that moved by `moved` in place of `right`."""
    factor = (moved @ right / (right @ right)).item()
    straight = (moved - factor * right).norm() < 0.01 * moved.norm()
    if uneven and not straight:
        return "The parts differ in size. How much weight does each of them get?"
    return f"The steps are {factor:.2f} times as long as they should. What decides their length?"


SHARE = ".chunk(dist.get_world_size())[dist.get_rank()]"
WEIGHT = "(len(part) / len(mine))"
ZERO = "optimizer.zero_grad()"
SYNC = "with nullcontext() if number == len(parts) - 1"

WRONG = [
    (
        "a rate of its own",
        "replica = DDP(model)",
        "replica = DDP(model)\noptimizer = torch.optim.SGD(model.parameters(), lr=1e-3)",
        "The steps are 0.50 times as long",
    ),
    (
        "a message for each parameter",
        SYNC,
        "with nullcontext() if number > m",
        "optimizer.step()",
        "for each in model.parameters():\n"
        "    dist.all_reduce(each.grad)\n"
        "    each.grad /= dist.get_world_size()\n"
        "optimizer.step()",
        "who sends them one by one",
    ),
    (
        "share left",
        "size, seed=0",
        "size // dist.get_world_size(), seed=0",
        SHARE,
        "",
        "the same windows as all others",
    ),
    ("replica left", "= replica(", "= model(", "end with different parameters"),
    (
        "zero left",
        ZERO,
        "pass",
        SYNC,
        f"{ZERO}\n{SYNC}",
        "Only the last micro-batch of each step counts",
    ),
    (
        "a seed for each rank",
        "size, seed=0",
        "size // dist.get_world_size(), seed=dist.get_rank()",
        SHARE,
        "",
        "did not train on the batch of each step",
    ),
    ("the whole batch on every rank", SHARE, "", "windows through the model"),
    ("not divided", WEIGHT, "1", "2.00 times as long"),
    ("a message for each micro-batch", SYNC, "with nullcontext() if True", "once per step"),
    ("losses forgotten", "append(mean)", "append(0.0)", "over all its micro-batches"),
    ("two steps only", "range(steps)", "range(2)", "windows through the model"),
    (
        "divided by m, where chunk makes fewer parts",
        WEIGHT,
        "(1 / m)",
        "How much weight",
    ),
    (
        "never the last part, where chunk makes fewer",
        "len(parts) - 1",
        "m - 1",
        "When does DDP send?",
    ),
    ("a tuple", "return losses", "return tuple(losses)", "expected list"),
    (
        "nan on rank 1",
        "append(mean)",
        "append(mean * (float('nan') if dist.get_rank() else 1))",
        "returned",
    ),
]
RIGHT = [
    (
        "strided, and zeroed after the step",
        SHARE,
        "[dist.get_rank() :: dist.get_world_size()]",
        ZERO,
        "pass",
        "optimizer.step()",
        f"optimizer.step()\n{ZERO}",
    ),
]
