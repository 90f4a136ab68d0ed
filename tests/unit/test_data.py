"""The data that come with the course."""

import http.server
import json
import threading

import pytest
import torch
from torchvision import datasets

from course_utils import data
from tests.unit import archives


def test_the_digits_are_all_there_and_split_once_and_for_all():
    digits = data.digits()
    assert digits.train_images.shape == (1437, 8, 8)
    assert digits.test_images.shape == (360, 8, 8)
    assert digits.train_images.dtype == torch.float32
    assert digits.train_labels.dtype == torch.int64
    assert (digits.train_images.min(), digits.train_images.max()) == (0, 1)
    assert sorted(set(digits.test_labels.tolist())) == list(range(10))
    assert digits.test_labels[:8].tolist() == [7, 9, 4, 7, 0, 2, 6, 1]  # never another order


def test_no_test_image_is_among_the_training_images():
    digits = data.digits()
    train = {tuple(image) for image in digits.train_images.flatten(1).tolist()}
    assert not any(tuple(image) in train for image in digits.test_images.flatten(1).tolist())


def test_the_digits_can_be_told_apart():
    # Labels that had lost their images would leave the nearest neighbour at one in ten.
    digits = data.digits()
    test, train = digits.test_images.flatten(1), digits.train_images.flatten(1)
    nearest = torch.cdist(test, train).argmin(1)
    assert (digits.train_labels[nearest] == digits.test_labels).float().mean() > 0.95


class Host:
    """A web server of this machine that plays the host of a data set and counts what it serves."""

    def __init__(self, folder):
        self.folder, self.served = folder, []
        host = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments):
                super().__init__(*arguments, directory=folder)

            def do_GET(self):
                host.served.append(self.path.strip("/"))
                super().do_GET()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def host(tmp_path):
    (tmp_path / "host").mkdir()
    host = Host(tmp_path / "host")
    yield host
    host.server.shutdown()
    host.server.server_close()


def served(host, monkeypatch, kind, packed):
    """Put a data set at `host`, and lead torchvision there, with its sums."""
    files, table = packed
    for name, content in files.items():
        (host.folder / name).write_bytes(content)
    address = (
        {"mirrors": [host.address]} if kind is datasets.MNIST else {"url": host.address + name}
    )
    for name, value in (table | address).items():
        monkeypatch.setattr(kind, name, value)
    return table | address


@pytest.fixture
def cifar10(host, monkeypatch):
    """A CIFAR-10 of five training files and a test file with 4 images each, at `host`."""
    return served(host, monkeypatch, datasets.CIFAR10, archives.cifar10())


@pytest.fixture
def mnist(host, monkeypatch):
    """An MNIST of 6 + 2 images of 28 x 28, at `host`."""
    return served(host, monkeypatch, datasets.MNIST, archives.mnist())


def test_digits_as_images_are_the_digits_resized():
    train, test = data.images("digits")
    image, label = train[3]
    assert (len(train), len(test)) == (1437, 360)
    assert (image.shape, image.dtype, type(label)) == ((3, 32, 32), torch.float32, int)
    assert torch.equal(image[0], image[2])
    digits = data.digits()
    assert label == digits.train_labels[3]
    small, _ = data.images("digits", size=8, channels=1)[0][3]
    assert torch.equal(small[0], digits.train_images[3])
    # Four pixels for one: their mean is the pixel, but for what bilinear takes from neighbours.
    assert abs(image.mean() - small.mean()) < 0.02


@pytest.mark.parametrize("name", ["digits", "mnist"])
@pytest.mark.parametrize(("size", "channels"), [(32, 3), (28, 1), (8, 1), (5, 3)])
def test_images_have_the_shape_that_is_asked_for(name, size, channels, mnist, tmp_path):
    for part in data.images(name, size=size, channels=channels, root=tmp_path):
        image, _ = part[len(part) - 1]
        assert image.shape == (channels, size, size)
        assert (image.min() >= 0, image.max() <= 1) == (True, True)


def test_what_was_downloaded_is_decoded_and_then_read_from_disk(host, cifar10, mnist, tmp_path):
    train, test = data.images("cifar10", root=tmp_path)
    assert (len(train), len(test)) == (20, 4)
    assert train.labels.tolist() == [*range(10)] * 2
    assert (train.classes[0], train.classes[9]) == ("airplane", "truck")
    image, label = train[15]
    assert label == 5
    assert torch.equal(image[0], torch.full((32, 32), 15 / 255))
    assert torch.equal(image[2], (torch.arange(32) / 255).expand(32, 32))
    grey = data.images("cifar10", root=tmp_path, channels=1)[0][15][0]
    assert torch.allclose(grey[0], 0.299 * image[0] + 0.587 * image[1] + 0.114 * image[2])

    train, test = data.images("mnist", root=tmp_path, size=28)
    assert (len(train), len(test)) == (6, 2)
    assert train.classes == [str(digit) for digit in range(10)]
    image, label = train[5]
    assert label == 5
    assert torch.equal(image[:, :, :14], torch.full((3, 28, 14), 5 / 255))

    served = len(host.served)
    for name in ("cifar10", "mnist"):
        data.images(name, root=tmp_path)
        data.images(name, root=tmp_path, download=False)
    assert len(host.served) == served


@pytest.mark.timeout(60)
def test_of_several_ranks_one_downloads(host, cifar10, tmp_path, launch, worker):
    script = worker(
        "one_downloads.py",
        "import json, sys\n"
        "from torchvision.datasets import CIFAR10\n"
        "from course_utils import data\n"
        "from nbtorchrun.worker import report\n"
        "for name, value in json.loads(sys.argv[2]).items():\n"
        "    setattr(CIFAR10, name, value)\n"
        "train, test = data.images('cifar10', root=sys.argv[1])\n"
        "report(found=[len(train), len(test)])\n",
    )
    run = launch(script, tmp_path, json.dumps(cifar10), nproc=4)
    assert [report["found"] for report in run.reports] == [[20, 4]] * 4
    assert len(host.served) <= 2  # torchvision asks where an address leads, then for the file


def left_in(folder):
    return {path.name for path in folder.iterdir() if not path.name.endswith(".lock")}


@pytest.mark.parametrize("name", ["cifar10", "mnist"])
def test_data_that_cannot_be_downloaded(name, host, cifar10, mnist, tmp_path):
    for path in host.folder.iterdir():
        path.unlink()
    root = tmp_path / "data"
    with pytest.raises(data.DataError, match=r"\(HTTP Error 404.*connection.*images\(\"digits"):
        data.images(name, root=root)
    assert not left_in(root)
    with pytest.raises(data.DataError, match=f"missing or damaged: call images..{name}"):
        data.images(name, root=root, download=False)


@pytest.mark.parametrize(
    ("name", "file"),
    [("cifar10", "cifar-10-python.tar.gz"), ("mnist", "t10k-images-idx3-ubyte.gz")],
)
@pytest.mark.parametrize("harm", [lambda whole: whole[:-20], lambda whole: whole[:-1] + b"!"])
def test_a_broken_archive_is_one_sentence_and_leaves_nothing(
    name, file, harm, host, cifar10, mnist, tmp_path
):
    whole = (host.folder / file).read_bytes()
    (host.folder / file).write_bytes(harm(whole))
    root = tmp_path / "data"
    with pytest.raises(data.DataError, match=r"was not downloaded .*corrupted.*again") as caught:
        data.images(name, root=root)
    assert "\n" not in str(caught.value)
    assert not left_in(root)
    (host.folder / file).write_bytes(whole)
    assert len(data.images(name, root=root)[0]) in (20, 6)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("cifar10", "cifar-10-batches-py/data_batch_3"),
        ("cifar10", "cifar-10-batches-py/batches.meta"),
        ("mnist", "MNIST/raw/train-labels-idx1-ubyte"),
        ("mnist", "MNIST/raw/t10k-images-idx3-ubyte"),
    ],
)
@pytest.mark.parametrize("left", [0, 3, -1])
def test_a_file_cut_short_is_never_read_and_is_fetched_again(
    name, file, left, host, cifar10, mnist, tmp_path
):
    data.images(name, root=tmp_path)
    path = tmp_path / file
    whole = path.read_bytes()
    path.write_bytes(whole[:left])
    with pytest.raises(data.DataError, match=f"in {tmp_path} is missing or damaged"):
        data.images(name, root=tmp_path, download=False)
    data.images(name, root=tmp_path)
    assert path.read_bytes() == whole


def test_what_a_killed_process_left_is_no_obstacle(cifar10, tmp_path):
    partial = tmp_path / ".cifar-10-batches-py.partial"
    partial.mkdir()
    (partial / "cifar-10-python.tar.gz").write_bytes(b"the beginning")
    assert len(data.images("cifar10", root=tmp_path)[0]) == 20
    assert not partial.exists()


def test_an_unknown_name_size_or_number_of_channels():
    with pytest.raises(ValueError, match="choose one of digits, mnist, cifar10"):
        data.images("cifar")
    with pytest.raises(ValueError, match="choose a size of 1 or more"):
        data.images("digits", size=0)
    with pytest.raises(ValueError, match="1 or 3 channels"):
        data.images("digits", channels=2)
