"""13.4: twice as fast."""

import contextlib
import copy
import io
import time
from collections.abc import Callable

import torch
from slow_training import train as slow
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.checking.compare import Wrong, expect, kind, plain
from course_utils.checking.values import close, is_number

TITLE = "twice as fast"
PROVEN = (
    "122 images, 10 epochs, 5 rounds with other images: losses and weights of slow_training",
    "in at most half its time: the fastest round of each, measured in turn",
)
SECONDS = 60
OURS = '''"""Training at twice the speed: each image is decoded once, without a loop in Python."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


def decode(images: list[bytes]) -> Tensor:
    """All images as numbers from 0 to 1: (images, pixels)."""
    pixels = torch.frombuffer(bytearray(b"".join(images)), dtype=torch.uint8)
    return pixels.view(len(images), -1) / 255


def train(model: nn.Module, images: list[bytes], labels: list[int], epochs: int) -> list[float]:
    """Train with batches of 32, and return the loss of every step."""
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1), []
    inputs, targets = decode(images), torch.tensor(labels)  # once, not in every epoch
    for _ in range(epochs):
        for x, y in zip(inputs.split(32), targets.split(32), strict=True):
            loss = cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
    return losses
'''
IMAGES, EPOCHS, ROUNDS = 122, 10, 5  # 122 is not a multiple of 32
MOST = 0.5  # of the slow training's time


def cases(train: Callable) -> None:
    """The losses of the slow training, in at most half its time, measured in turn."""
    torch.set_num_threads(1)
    seconds: dict[str, list[float]] = {"slow": [], "yours": []}
    for seed in range(ROUNDS):
        took, right, trained = timed(slow, seed)
        seconds["slow"].append(took)
        took, found, model = timed(train, seed)
        seconds["yours"].append(took)
        look_at_losses(found, right, seed)
        look_at_weights(model, trained, seed)
    share = min(seconds["yours"]) / min(seconds["slow"])
    if share > MOST:
        hint = "Which timer is the largest? Does that part do the same work again in every epoch?"
        said = f"train took {share:.0%} of the slow one's time, expected at most {MOST:.0%}"
        raise Wrong(said, hint)


def look_at_losses(found: object, right: list[float], seed: int) -> None:
    """One number for each step, and the right one."""
    if not isinstance(found, list):
        raise Wrong(
            f"train returned {kind(found)}, expected a list of losses",
            "Return a list, with one number for each step.",
        )
    number = "The loss of a step is one number: .item() gives it."
    if others := [each for each in found if not is_number(plain(each))]:
        said = f"train returned a list that holds {kind(others[0])}, expected numbers"
        raise Wrong(said, number)
    if any(torch.is_tensor(each) and each.requires_grad for each in found):
        said = "train returned losses that can still be differentiated"
        raise Wrong(said, f"Each keeps the graph of its step in memory. {number}")
    if len(found) != len(right):
        hint = "Batches of 32, also the small last one, in every epoch: one loss for each."
        raise Wrong(f"train returned {len(found)} losses, expected {len(right)}", hint)
    if not close(first := plain(found[0]), right[0], 1e-3):
        hint = "Before the first update: which images are in the batch, in which order and dtype?"
        expect("the first loss:", first, right[0], first_mistakes(seed, right[0]), hint, 1e-3)
    hint = "The first loss is right. Only the time may change: is the update the same?"
    expect("the losses:", found, right, (), hint, tolerance=1e-3)


def first_mistakes(seed: int, right: float) -> dict[str, float]:
    """What known mistakes give as the first loss."""
    model, images, labels = start(seed)
    x, y = torch.tensor([list(each) for each in images]) / 255, torch.tensor(labels)

    def loss(scale: float, places: slice) -> float:
        return cross_entropy(model(scale * x[places]), y[places]).item()

    return {
        "Are the numbers of an image from 0 to 1? These are from 0 to 255.": loss(255, slice(32)),
        "Are the numbers of an image from 0 to 1? These are divided by 255 twice.": loss(
            1 / 255, slice(32)
        ),
        "A sum over the batch? The slow one takes the mean.": 32 * right,
        "That is the loss of all images. A batch has 32 of them.": loss(1, slice(None)),
        "That is the loss of the last 32 images. Which ones come first?": loss(
            1, slice(IMAGES - 32, None)
        ),
    }


def look_at_weights(model: nn.Module, trained: nn.Module, seed: int) -> None:
    """Whether the model that was passed in is the one that was trained."""
    before, _, _ = start(seed)
    untouched = {"`model` is as it was before. Which model did you train?": weights(before)}
    hint = "The losses are right. Is the last step's update missing?"
    expect("the trained weights:", weights(model), weights(trained), untouched, hint, 1e-3)


def weights(model: nn.Module) -> list[list[float]]:
    """The weights and the biases."""
    return [each.detach().flatten().tolist() for each in model.parameters()]


def start(seed: int) -> tuple[nn.Module, list[bytes], list[int]]:
    """Model, images and labels, others for each seed: what a round remembers is no use later."""
    torch.manual_seed(seed)
    model, chance = nn.Linear(784, 10), torch.Generator().manual_seed(seed)
    pixels = torch.randint(256, (IMAGES, 784), generator=chance)
    labels = torch.randint(10, (IMAGES,), generator=chance)
    return model, [bytes(row) for row in pixels.tolist()], labels.tolist()


def timed(train: Callable, seed: int) -> tuple[float, list[float], nn.Module]:
    """Seconds, the answer, and the model that was trained."""
    model, images, labels = start(seed)
    given = copy.copy(images), copy.copy(labels)
    begun = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):  # the timers of both
        losses = train(model, images, labels, EPOCHS)
    took = time.perf_counter() - begun
    if (images, labels) != given:
        raise Wrong("train changed the images or labels that it was given", "Work on a copy.")
    return took, losses, model


BATCHES = "inputs.split(32), targets.split(32)"
UPDATE = "optimizer.step()"

WRONG = [
    ("imported", "from slow_training import train\n", "Write your own"),
    (
        "the slow one",
        f"for x, y in zip({BATCHES}, strict=True):",
        "for first in range(0, len(images), 32):\n"
        "    batch = images[first : first + 32]\n"
        "    x = torch.tensor([[byte / 255 for byte in image] for image in batch])\n"
        "    y = torch.tensor(labels[first : first + 32])",
        "Which timer is the largest?",
    ),
    ("fewer epochs", "range(epochs)", "range(epochs // 2)", "losses, expected"),
    (
        "larger batches",
        BATCHES,
        "inputs.split(64), targets.split(64)",
        "Batches of 32",
    ),
    ("not divided", " / 255", " / 1", "from 0 to 1"),
    (
        "not clipped",
        "nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        "pass",
        "is the update the same?",
    ),
    (
        "updated every second step",
        "for _ in",
        "for epoch in",
        UPDATE,
        f"epoch % 2 or {UPDATE}",
        "Only the time may change",
    ),
    (
        "the last update left out",
        UPDATE,
        f"len(losses) < 39 and {UPDATE}",
        "last step's update",
    ),
    ("a tensor", "return losses", "return torch.tensor(losses)", "a list of losses"),
    (
        "keeps the graph of every step",
        "loss.item()",
        "loss",
        "can still be differentiated",
    ),
    (
        "trains a copy",
        "optimizer, losses =",
        "model = __import__('copy').deepcopy(model)\noptimizer, losses =",
        "Which model did you train?",
    ),
    ("all images at once", BATCHES, "[inputs] * 4, [targets] * 4", "A batch has 32 of them"),
    (
        "from the end",
        BATCHES,
        "inputs.flip(0).split(32), targets.flip(0).split(32)",
        "Which ones come first?",
    ),
    (
        "the labels in another order",
        "torch.tensor(labels)",
        "torch.tensor(sorted(labels))",
        "Before the first update",
    ),
    ("sums", "cross_entropy(model(x), y)", "32 * cross_entropy(model(x), y)", "takes the mean"),
    (
        "gradients add up",
        "optimizer.zero_grad()",
        "pass",
        "The first loss is right",
    ),
    (
        "uses up the images",
        "return losses",
        "images.clear()\nreturn losses",
        "changed the images or labels",
    ),
    (
        "a generator",
        "->",
        "lambda losses: (each for each in losses)",
        "expected a list of losses",
    ),
]
RIGHT = [
    (
        "decoded once, as slowly as before",
        "pixels.view(len(images), -1) / 255",
        "torch.tensor([[p / 255 for p in image] for image in images])",
    ),
    ("decoded in every epoch, but fast", " / 255", "", "model(x)", "model(x / 255)"),
    ("losses without a graph", "loss.item()", "loss.detach()"),
]
