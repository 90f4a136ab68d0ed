"""08.3: three mistakes that run."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset, DistributedSampler

from course_utils.checking.compare import Wrong, expect, plain
from course_utils.checking.findings import judging, random_values, where
from course_utils.checking.values import close, listed
from nbtorchrun.worker import device

TITLE = "three mistakes that run"
PROVEN = (
    "1, 2 and 3 ranks: a new order in each epoch, all replicas equal",
    "the parameters and accuracies of one process with the whole batch, in training mode",
)
RANKS = (2, 3, 1)
SECONDS = 60
OURS = '''"""The training function, repaired: sampler's epoch, model's mode, DDP's forward."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


def train(
    model: nn.Module, training_set: Dataset, test_set: Dataset, epochs: int, batch: int, rate: float
) -> list[float]:
    """Train `model` over all ranks with SGD; return the accuracy after each epoch."""
    replica = DistributedDataParallel(model)
    sampler = DistributedSampler(training_set)
    loader = DataLoader(training_set, batch, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    accuracies = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)  # each epoch an order of its own
        replica.train()  # the evaluation before has left it in evaluation mode
        for inputs, classes in loader:
            loss = cross_entropy(replica(inputs), classes)  # through DDP: backward averages
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        replica.eval()
        with torch.no_grad():  # every rank evaluates all of the test set: slow, but right
            batches = [(model(inputs), classes) for inputs, classes in DataLoader(test_set, 256)]
        right = sum((logits.argmax(dim=1) == classes).sum() for logits, classes in batches)
        accuracies.append(int(right) / len(test_set))
    return accuracies
'''


class Case(NamedTuple):
    """One training: the seed of its data and model, how many samples, and the settings."""

    seed: int
    size: int
    epochs: int
    batch: int
    rate: float


CASES = (Case(11, 23, 3, 4, 0.3), Case(37, 24, 4, 5, 0.2))


def cases(train: Callable) -> None:
    """Orders, replicas, parameters and accuracies of small trainings."""
    for case in CASES:
        with judging():
            look(train, case)


def look(train: Callable, case: Case) -> None:
    """One training."""
    rank, world = dist.get_rank(), dist.get_world_size()
    data, test = Noted(case.seed, case.size), Noted(case.seed + 5, 300)
    model, epochs = Moody(case.seed).to(device()), case.epochs
    accuracies = train(model, data, test, epochs, case.batch, case.rate)
    everyone = [None] * world
    dist.all_gather_object(everyone, flat(model))
    here = where(f"{case.size} samples")
    length, wanted = len(order(data, rank, 0)), [order(data, rank, e) for e in range(epochs)]
    asked = [data.asked[start : start + length] for start in range(0, epochs * length, length)]
    if len(data.asked) != epochs * length:
        hint = "Each rank trains on its own share, once in each epoch."
        if len(data.asked) == epochs * (length + case.size):
            hint = "Those are the share and the whole training set. On which set do you evaluate?"
        raise Wrong(f"{here} asked for {len(data.asked)} samples, expected {epochs * length}", hint)
    if asked[1] == asked[0]:
        hint = "What tells the sampler which epoch it is?"
        if asked[0] == list(DistributedSampler(range(case.size), shuffle=False)):
            hint = "Yours is not shuffled. What does the sampler do if nobody forbids it?"
        raise Wrong(f"{here}: epoch 2 has the order of epoch 1", hint)
    if asked != wanted:
        hint = "Epochs count from 0, and set_epoch is all the sampler needs."
        raise Wrong(f"{here} asked for {asked[1]} in epoch 2, expected {wanted[1]}", hint)
    apart = [r for r, other in enumerate(everyone) if not close(other, everyone[0])]
    if apart:
        hint = "Who calls DDP's forward? Without it, backward averages nothing."
        raise Wrong(f"{here}: the replicas of rank 0 and rank {apart[0]} differ", hint)
    right, exact = one_process(case, data, test)
    if not close(flat(model), right):
        mistakes = [
            (
                "After an evaluation, what is the model's mode? Which epochs train in it?",
                one_process(case, data, test, moody=True)[0],
            ),
            (
                "DDP has divided by the number of ranks already.",
                one_process(case, data, test, scale=1 / world)[0],
            ),
            (
                "Yours adds up over the ranks, and DDP averages. Who multiplies?",
                one_process(case, data, test, scale=world)[0],
            ),
        ]
        hint = "Train one process on the whole batch by hand: at which step do they part?"
        expect(f"{here} trained", flat(model), right, mistakes, hint)
    hint = "One accuracy for each epoch, of the whole test set, in evaluation mode."
    got = listed(accuracies)
    got = accuracies if got is None else got
    whole = isinstance(got, list) and len(got) == epochs
    if whole and close(plain(got[-1]), batch_mean(model, test)):
        hint = "Test batches differ in size. Whose samples weigh too much in your mean?"
    mistakes = [
        ("Those are percentages. An accuracy is between 0 and 1.", [100 * a for a in exact]),
        ("Those are the shares of wrong answers.", [1 - a for a in exact]),
    ]
    expect(f"{here} returned", got, exact, mistakes, hint, tolerance=1e-6)  # float32: fine


class Noted(Dataset):
    """Samples that note in which order they were asked for."""

    def __init__(self, seed: int, size: int) -> None:
        self.inputs = random_values(seed, size, 5, dtype=torch.float64)
        self.classes = (self.inputs[:, :3] + random_values(seed + 1, size, 3)).argmax(1)
        self.asked: list[int] = []

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        self.asked.append(int(index))
        return self.inputs[index], self.classes[index]


class Moody(nn.Module):
    """A linear layer that answers otherwise in evaluation, as batch normalization does."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layer = nn.Linear(5, 3).double()

    def forward(self, x: Tensor) -> Tensor:
        """(B, 5) to (B, 3)."""
        y = self.layer(x)
        return y if self.training else 2 * y + y.new_tensor([0.7, -0.4, 0.0])


def one_process(
    case: Case, data: Noted, test: Noted, moody: bool = False, scale: float = 1.0
) -> tuple[list[float], list[float]]:
    """All parameters and the accuracies, after one process has trained on all ranks' shares.

    `moody`: the model stays in evaluation mode after the first epoch; `scale`: of the gradient.
    """
    model, accuracies = Moody(case.seed).to(device()), []
    for epoch in range(case.epochs):
        model.train(not (moody and epoch))
        orders = [order(data, rank, epoch) for rank in range(dist.get_world_size())]
        for start in range(0, len(orders[0]), case.batch):
            rows = [index for each in orders for index in each[start : start + case.batch]]
            loss = cross_entropy(model(data.inputs[rows]), data.classes[rows])
            gradients = torch.autograd.grad(loss, list(model.parameters()))
            for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                parameter.data -= case.rate * scale * gradient
        model.eval()
        answers = model(test.inputs).argmax(1)
        accuracies.append((answers == test.classes).double().mean().item())
    return flat(model), accuracies


def order(data: Noted, rank: int, epoch: int) -> list[int]:
    """What the sampler gives a rank in an epoch."""
    sampler = DistributedSampler(range(len(data)), dist.get_world_size(), rank)
    sampler.set_epoch(epoch)
    return list(sampler)


def flat(model: nn.Module) -> list[float]:
    """All parameters, in a row."""
    return torch.cat([p.detach().flatten() for p in model.parameters()]).tolist()


def batch_mean(model: nn.Module, test: Noted) -> float:
    """The mean of the accuracies of batches of 256."""
    right = (model.eval()(test.inputs).argmax(1) == test.classes).double()
    return torch.stack([each.mean() for each in right.split(256)]).mean().item()


WRONG = [
    ("always three epochs", "range(epochs)", "range(3)", "once in each epoch"),
    ("always the same rate", "lr=rate", "lr=0.3", "by hand"),
    (
        "always the same batch",
        "DataLoader(training_set, batch,",
        "DataLoader(training_set, 4,",
        "by hand",
    ),
    ("percentages", "->", "lambda each: [100 * one for one in each]", "Those are percentages"),
    ("past DDP", "replica(inputs)", "model(inputs)", "Who calls DDP's forward"),
    ("no epoch", "sampler.set_epoch(epoch)", "pass", "which epoch"),
    (
        "evaluation mode",
        "replica.train()",
        "epoch or replica.train()",
        "what is the model's mode",
    ),
    (
        "divided again",
        "cross_entropy(replica(inputs), classes)",
        "cross_entropy(replica(inputs), classes) / torch.distributed.get_world_size()",
        "DDP has divided",
    ),
    (
        "the rate scaled",
        "lr=rate",
        "lr=rate * torch.distributed.get_world_size()",
        "Who multiplies",
    ),
    ("epochs from 1", "set_epoch(epoch)", "set_epoch(epoch + 1)", "Epochs count from 0"),
    (
        "everybody takes all samples",
        "DistributedSampler(training_set)",
        "DistributedSampler(training_set, 1, 0)",
        "own share",
    ),
    ("evaluated in training mode", "replica.eval()", "pass", "in evaluation mode"),
    ("gradients pile up", "optimizer.zero_grad()", "pass", "by hand"),
]
RIGHT = [
    ("a generator", "->", "iter"),
    ("an array", "->", "lambda each: numpy.array(each)"),
    (
        "the mode after the evaluation",
        "replica.train()",
        "pass",
        "accuracies = []",
        "accuracies = []\nmodel.train()",
        "right = sum",
        "model.train()\nright = sum",
    ),
    (
        "a mean in float32",
        "right = sum((logits.argmax(dim=1) == classes).sum() for logits, classes in batches)",
        "hits = torch.cat([(y.argmax(1) == c).float() for y, c in batches])",
        "int(right) / len(test_set)",
        "hits.mean().item()",
    ),
]
