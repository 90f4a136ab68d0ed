"""The data that the course trains on; the digits and the text need no download."""

import hashlib
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate
from torch.utils.data import Dataset

from course_utils import paths
from course_utils.data import downloads
from course_utils.data.downloads import DataError

__all__ = ["Corpus", "DataError", "Digits", "Images", "digits", "images", "stdlib_text"]

DIGITS = paths.ROOT / "data" / "digits.npz"
TEST_SHARE = 10  # one file in ten is for testing
# Generated tables and test suites: large, and not written by people.
LEFT_OUT = ("test", "tests", "idlelib", "lib2to3", "site-packages", "encodings", "pydoc_data")
IMAGES = ("digits", "mnist", "cifar10")
GREY = (0.299, 0.587, 0.114)  # how bright red, green and blue look: ITU-R BT.601, 2.5.1


@dataclass(frozen=True)
class Corpus:
    """Text for a language model, split by file, so that no test text was seen in training.

    Attributes:
        train, test: the text of the files of each part, one after another.
        train_files, test_files: how many files each part has.
    """

    train: str
    test: str
    train_files: int
    test_files: int

    def summary(self) -> str:
        """The sizes of both parts, in millions of characters."""
        return (
            f"train {self.train_files} files, {len(self.train) / 1e6:.1f} million characters; "
            f"test {self.test_files} files, {len(self.test) / 1e6:.1f} million characters"
        )


@cache
def stdlib_text() -> Corpus:
    """The sources of Python's own standard library: real text that every machine has.

    A hash of its name puts each file into the training or the test part, always the same one. The
    text depends on the version of Python.
    """
    folder = Path(sysconfig.get_path("stdlib"))
    parts: dict[bool, list[str]] = {True: [], False: []}
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        if not set(path.relative_to(folder).parts).intersection(LEFT_OUT):
            digest = hashlib.sha256(name.encode()).digest()
            parts[digest[0] % TEST_SHARE == 0].append(path.read_text("utf-8", errors="replace"))
    train, test = parts[False], parts[True]
    return Corpus("".join(train), "".join(test), len(train), len(test))


@dataclass(frozen=True)
class Digits:
    """Images of handwritten digits.

    Attributes:
        train_images, test_images: (N, 8, 8) float32, 0 (paper) to 1 (ink); N is 1437 and 360.
        train_labels, test_labels: (N,) int64, the digits 0 to 9.
    """

    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor


@cache
def digits() -> Digits:
    """1797 handwritten digits of 8 x 8 pixels, embedded: no download, the same split everywhere.

    Source: the test set of E. Alpaydin and C. Kaynak, *Optical Recognition of Handwritten Digits*,
    UCI Machine Learning Repository, 1998, doi:10.24432/C50P49, licence CC BY 4.0; as it comes with
    scikit-learn. They were shuffled once, and the last 360 are the test part.
    """
    with np.load(DIGITS) as arrays:
        found = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return Digits(
        train_images=found["train_images"].float() / 16,  # a pixel counts 0 to 16 dots
        train_labels=found["train_labels"].long(),
        test_images=found["test_images"].float() / 16,
        test_labels=found["test_labels"].long(),
    )


@dataclass(eq=False, repr=False)
class Images(Dataset):
    """Labelled images: item i is (float32 image (C, S, S) from 0 to 1, int label).

    Attributes:
        pixels: (N, c, H, W), uint8 or float32; c is 1 or 3.
        labels: (N,) int64.
        white: the value of `pixels` that becomes 1.
        classes: the name of each label.
        size: S; the images are resized bilinearly (smoothed before they are made smaller).
        channels: C; grey is repeated to get three, and three are averaged by weight to get grey.
    """

    pixels: Tensor
    labels: Tensor
    white: float
    classes: list[str]
    size: int
    channels: int

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.pixels[index].float() / self.white  # (c, H, W)
        if image.shape[0] > self.channels:
            image = (image * torch.tensor(GREY).view(3, 1, 1)).sum(0, keepdim=True)
        square = (self.size, self.size)
        if image.shape[1:] != square:
            image = interpolate(image[None], square, mode="bilinear", antialias=True)[0]
        return image.expand(self.channels, -1, -1).contiguous(), int(self.labels[index])


def images(
    name: str,
    *,
    size: int = 32,
    channels: int = 3,
    root: str | Path | None = None,
    download: bool = True,
) -> tuple[Images, Images]:
    """The training part and the test part of a data set of small images.

    Args:
        name: `digits` (embedded, 1437 + 360), `mnist` (60,000 + 10,000) or `cifar10` (50,000 +
            10,000), the latter two as torchvision loads them.
        size: height and width of an image.
        channels: 1 or 3.
        root: the folder of what is downloaded; `paths.data()` if it is None.
        download: fetch the set if it is missing or damaged. Of several ranks that ask at once, one
            downloads and the others wait.

    Raises:
        ValueError: there is no such data set, size or number of channels.
        DataError: the set is missing or damaged, and was not downloaded.
    """
    if name not in IMAGES:
        raise ValueError(f"there is no data set {name!r}: choose one of {', '.join(IMAGES)}")
    if size < 1 or channels not in (1, 3):
        raise ValueError(
            f"images cannot have size {size} with {channels} channels: choose a size of 1 or "
            "more, and 1 or 3 channels"
        )
    if name == "digits":
        own = digits()
        train = own.train_images[:, None], own.train_labels
        test = own.test_images[:, None], own.test_labels
        classes = [str(digit) for digit in range(10)]
        white = 1.0
    else:
        loaded = downloads.load(name, Path(root or paths.data()), download)
        train, test = map(_pixels_and_labels, loaded)
        classes = [label.partition(" - ")[0] for label in loaded[0].classes]  # MNIST: "0 - zero"
        white = 255.0
    shared = white, classes, size, channels
    return Images(*train, *shared), Images(*test, *shared)


def _pixels_and_labels(loaded: Any) -> tuple[Tensor, Tensor]:
    """(N, c, H, W) uint8 and (N,), of a data set as torchvision loaded it."""
    pixels = torch.as_tensor(loaded.data)
    # MNIST: (N, H, W); CIFAR-10: (N, H, W, 3)
    pixels = pixels[:, None] if pixels.dim() == 3 else pixels.permute(0, 3, 1, 2)
    return pixels, torch.as_tensor(loaded.targets)
