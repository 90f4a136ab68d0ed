"""Times the student's training and the slow one in turn, on the same images."""

import contextlib
import io
import time
from collections.abc import Callable

import torch
from slow_training import train as slow
from torch import nn

from course_utils.checking.compare import Wrong, expect, kind, plain
from course_utils.checking.findings import judging
from course_utils.checking.values import close, is_number

from exercise_12_4 import train

IMAGES, EPOCHS, ROUNDS = 122, 10, 5  # 122 is not a multiple of 32
MOST = 0.5  # of the slow training's time

torch.set_num_threads(1)


def made(seed: int) -> tuple[list[bytes], list[int]]:
    """Images and labels, others for each seed: what one round remembers is no use in the next."""
    chance = torch.Generator().manual_seed(seed)
    pixels = torch.randint(256, (IMAGES, 784), generator=chance)
    labels = torch.randint(10, (IMAGES,), generator=chance)
    return [bytes(row) for row in pixels.tolist()], labels.tolist()


def timed(function: Callable, seed: int) -> tuple[float, list[float], nn.Module]:
    """Seconds, the answer, and the model that was trained."""
    torch.manual_seed(seed)
    model, (images, labels) = nn.Linear(784, 10), made(seed)
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):  # the timers of both
        losses = function(model, images, labels, EPOCHS)
    return time.perf_counter() - start, losses, model


seconds: dict[str, list[float]] = {"slow": [], "yours": []}
with judging():
    for seed in range(ROUNDS):
        took, right, trained = timed(slow, seed)
        seconds["slow"].append(took)
        took, found, model = timed(train, seed)
        seconds["yours"].append(took)
        if not isinstance(found, list):
            raise Wrong(f"train returned {kind(found)}, expected a list of losses")
        if others := [each for each in found if not is_number(plain(each))]:
            said = f"train returned a list that holds {kind(others[0])}, expected numbers"
            raise Wrong(said, "The loss of a step is one number: .item() gives it.")
        if len(found) != len(right):
            hint = "Batches of 32, also the small last one, in every epoch: one loss for each."
            raise Wrong(f"train returned {len(found)} losses, expected {len(right)}", hint)
        hint = "Only the time may change. Are the images, their order and the update the same?"
        first = "The first loss is wrong already: are the numbers of an image from 0 to 1?"
        hint = hint if close(plain(found[0]), right[0], 1e-3) else first
        expect("the losses:", found, right, (), hint, tolerance=1e-3)
        weights = [each.weight.detach().tolist() for each in (model, trained)]
        hint = "The losses are right. Is the last step's update missing?"
        expect("the trained weights:", *weights, (), hint, tolerance=1e-3)
    share = min(seconds["yours"]) / min(seconds["slow"])
    if share > MOST:
        hint = "Which timer is the largest? Does that part do the same work again in every epoch?"
        said = f"train took {share:.0%} of the slow one's time, expected at most {MOST:.0%}"
        raise Wrong(said, hint)
