"""Trains with the student's repaired function, and compares with one process."""

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset, DistributedSampler

from course_utils.checking.compare import Wrong, expect, plain
from course_utils.checking.findings import judging, random_values, where
from course_utils.checking.values import close
from course_utils.worker import device, init

from exercise_08_3 import train

EPOCHS, BATCH, RATE = 3, 4, 0.3


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
    seed: int, data: Noted, test: Noted, moody: bool = False, scale: float = 1.0
) -> tuple[list[float], list[float]]:
    """All parameters and the accuracies, after one process has trained on all ranks' shares.

    `moody`: the model stays in evaluation mode after the first epoch; `scale`: of the gradient.
    """
    model, accuracies = Moody(seed).to(device()), []
    for epoch in range(EPOCHS):
        model.train(not (moody and epoch))
        orders = [order(data, rank, epoch) for rank in range(dist.get_world_size())]
        for start in range(0, len(orders[0]), BATCH):
            rows = [index for each in orders for index in each[start : start + BATCH]]
            loss = cross_entropy(model(data.inputs[rows]), data.classes[rows])
            gradients = torch.autograd.grad(loss, list(model.parameters()))
            for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                parameter.data -= RATE * scale * gradient
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


def judge(seed: int, size: int) -> None:
    """One training."""
    rank, world = dist.get_rank(), dist.get_world_size()
    data, test, model = Noted(seed, size), Noted(seed + 5, 300), Moody(seed).to(device())
    accuracies = train(model, data, test, EPOCHS, BATCH, RATE)
    everyone = [None] * world
    dist.all_gather_object(everyone, flat(model))
    here = where(f"{size} samples")
    length, wanted = len(order(data, rank, 0)), [order(data, rank, e) for e in range(EPOCHS)]
    asked = [data.asked[start : start + length] for start in range(0, EPOCHS * length, length)]
    if len(data.asked) != EPOCHS * length:
        hint = "Each rank trains on its own share, once in each epoch."
        if len(data.asked) == EPOCHS * (length + size):
            hint = "Those are the share and the whole training set. On which set do you evaluate?"
        raise Wrong(f"{here} asked for {len(data.asked)} samples, expected {EPOCHS * length}", hint)
    if asked[1] == asked[0]:
        hint = "What tells the sampler which epoch it is?"
        if asked[0] == list(DistributedSampler(range(size), shuffle=False)):
            hint = "Yours is not shuffled. What does the sampler do if nobody forbids it?"
        raise Wrong(f"{here}: epoch 2 has the order of epoch 1", hint)
    if asked != wanted:
        hint = "Epochs count from 0, and set_epoch is all the sampler needs."
        raise Wrong(f"{here} asked for {asked[1]} in epoch 2, expected {wanted[1]}", hint)
    apart = [r for r, other in enumerate(everyone) if not close(other, everyone[0])]
    if apart:
        hint = "Who calls DDP's forward? Without it, backward averages nothing."
        raise Wrong(f"{here}: the replicas of rank 0 and rank {apart[0]} differ", hint)
    right, exact = one_process(seed, data, test)
    mode = "After an evaluation, what is the model's mode? Which epochs train in it?"
    multiplied = "Yours adds up over the ranks, and DDP averages. Who multiplies?"
    if not close(flat(model), right):
        mistakes = [
            (mode, one_process(seed, data, test, moody=True)[0]),
            (
                "DDP has divided by the number of ranks already.",
                one_process(seed, data, test, scale=1 / world)[0],
            ),
            (multiplied, one_process(seed, data, test, scale=world)[0]),
        ]
        hint = "Train one process on the whole batch by hand: at which step do they part?"
        expect(f"{here} trained", flat(model), right, mistakes, hint)
    hint = "One accuracy for each epoch, of the whole test set, in evaluation mode."
    whole = isinstance(accuracies, (list, tuple)) and len(accuracies) == EPOCHS
    if whole and close(plain(accuracies[-1]), batch_mean(model, test)):
        hint = "Test batches differ in size. Whose samples weigh too much in your mean?"
    mistakes = [
        ("Those are percentages. An accuracy is between 0 and 1.", [100 * a for a in exact]),
        ("Those are the shares of wrong answers.", [1 - a for a in exact]),
    ]
    expect(f"{here} returned", accuracies, exact, mistakes, hint, tolerance=1e-6)  # float32: fine


init()
for seed, size in ((11, 23), (37, 24)):
    with judging():
        judge(seed, size)
