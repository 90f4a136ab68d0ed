"""02.4: find the six."""

import copy
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import TensorDataset

from course_utils.checking.compare import Wrong
from course_utils.checking.findings import judging, random_values, where
from course_utils.checking.values import close, plain
from nbtorchrun.worker import device

TITLE = "find the six"
PROVEN = (
    "2 and 3 ranks: the losses and the parameters of a training, the first batch",
    "the sum of the losses on every rank, and rank 0's values on rank 1",
)
RANKS = (2, 3)
AS_GIVEN = "fbb011144ff4"
HINTS = {
    "has no attribute 'backward'": "Which of these two objects has a graph to go back through?",
    "running_loss": "Read both lines with this name once more, letter by letter.",
    "'Dataloader'": "Python tells capital letters from small ones.",
    "has no attribute 'next'": "In Python 3, `next` is a function of its own.",
    "'all_reduces'": "How does notebook 00 call this collective?",
    "dsitributed": "Which rank runs this line? Read it letter by letter.",
}
LONELY = "Which rank never came to its message? Does it get that far?"
OURS = '''"""A loop that trains, a first batch, and two messages: the six slips are mended."""

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset


def train(net: nn.Module, trainset: Dataset, every: int) -> list[float]:
    """Train on all samples once, in batches of 4; the mean loss of each `every` batches."""
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.1)
    means = []
    running_loss = 0.0
    loader = torch.utils.data.DataLoader(trainset, batch_size=4)
    for step, (inputs, labels) in enumerate(loader, 1):
        optimizer.zero_grad()
        loss = criterion(net(inputs), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
        if step % every == 0:
            means.append(running_loss / every)
            running_loss = 0.0
    return means


def first_batch(testset: Dataset) -> list[Tensor]:
    """The first four samples: their images and their labels."""
    testloader = torch.utils.data.DataLoader(testset, batch_size=4, shuffle=False)
    dataiter = iter(testloader)
    return next(dataiter)


def total(loss: Tensor) -> Tensor:
    """The sum of all ranks' losses, on every rank; it takes the place of `loss`."""
    torch.distributed.all_reduce(loss)
    return loss


def hand_on(values: Tensor) -> Tensor:
    """Rank 0 sends its values to rank 1; returns what this rank has afterwards."""
    if torch.distributed.get_rank() == 0:
        torch.distributed.send(values, dst=1)
    if torch.distributed.get_rank() == 1:
        torch.distributed.recv(values, src=0)
    return values
'''


def cases(train: Callable, first_batch: Callable, total: Callable, hand_on: Callable) -> None:
    """The training, the batch and both messages, one after the other."""
    samples = TensorDataset(random_values(1, 20, 3).cpu(), torch.arange(20) % 4)
    for every in (2, 1):
        look_at_training(train, samples, every)
    with judging():
        found, expected = plain(first_batch(samples)), plain(list(samples[:4]))
        if not close(found, expected):
            hint = "Four samples, in the order of the data set."
            raise Wrong(f"{where()}: first_batch returned {found}, expected {expected}", hint)
    world = dist.get_world_size()
    look_at_message(total, "total", sum(10.0**rank for rank in range(world)))
    look_at_message(hand_on, "hand_on", 1.0 if dist.get_rank() == 1 else 10.0 ** dist.get_rank())


def look_at_training(train: Callable, samples: TensorDataset, every: int) -> None:
    """Beside the same training, written out here."""
    torch.manual_seed(0)
    net = nn.Linear(3, 4)
    beside = copy.deepcopy(net)
    optimizer = torch.optim.SGD(beside.parameters(), lr=0.01, momentum=0.1)
    losses = []
    for first in range(0, len(samples), 4):
        inputs, labels = samples[first : first + 4]
        loss = nn.functional.cross_entropy(beside(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    whole = len(losses) - len(losses) % every
    means = [sum(losses[at : at + every]) / every for at in range(0, whole, every)]
    found = plain(train(net, samples, every))
    here = f"{where()}: train on 20 samples, every = {every},"
    with judging():
        trained = [plain(p) for p in net.parameters()]
        if not close(trained, [plain(p) for p in beside.parameters()], 1e-5):
            hint = "Which gradients does each step use, and how often does it step?"
            raise Wrong(f"{here} left other parameters than this loop should", hint)
        if not close(found, means, 1e-5):
            hint = "The mean of `every` losses: what is added up, and since when?"
            raise Wrong(f"{here} returned {found}, expected {means}", hint)


def look_at_message(function: Callable, name: str, expected: float) -> None:
    """Each rank brings a power of ten, so that a sum shows who is in it."""
    mine = torch.tensor([10.0 ** dist.get_rank()], device=device())
    found = plain(function(mine))
    with judging():
        if not close(found, [expected]):
            hint = "Who sends what to whom? The docstring says who has what afterwards."
            raise Wrong(f"{where()}: {name} returned {found}, expected {[expected]}", hint)


WRONG = [
    ("backward by the optimizer", "loss.backward()", "optimizer.backward()", "graph to go back"),
    (
        "three n",
        "    running_loss = 0.0\n    loader",
        "    runnning_loss = 0.0\n    loader",
        "Read both lines with this name",
    ),
    (
        "a small l",
        "torch.utils.data.DataLoader(testset",
        "torch.utils.data.Dataloader(testset",
        "capital letters",
    ),
    ("as in Python 2", "next(dataiter)", "dataiter.next()", "a function of its own"),
    ("more than one", "all_reduce(loss)", "all_reduces(loss)", "call this collective"),
    ("letters swapped", "torch.distributed.recv", "torch.dsitributed.recv", "Which rank runs"),
    ("gradients add up", "        optimizer.zero_grad()\n", "", "Which gradients does each step"),
    ("a sum of losses", "running_loss / every", "running_loss", "what is added up"),
    ("never emptied", "            running_loss = 0.0\n", "", "since when?"),
    ("five samples", "batch_size=4, shuffle=False)", "batch_size=5)", "Four samples"),
    (
        "the largest loss",
        "all_reduce(loss)",
        "all_reduce(loss, torch.distributed.ReduceOp.MAX)",
        "Who sends",
    ),
]
RIGHT = [
    ("another name", "next(dataiter)", "dataiter.__next__()"),
    ("from its class", "loss.backward()", "torch.autograd.backward(loss)"),
]
