"""The data that come with the course."""

import gzip
import hashlib
import http.server
import io
import json
import pickle
import tarfile
import threading

import numpy as np
import pytest
import torch

from course_utils import data


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


def md5(content):
    return hashlib.md5(content).hexdigest()


def batch(start):
    """Four images as CIFAR-10 stores them; image i is all i, and its label is i."""
    labels = list(range(start, start + 4))
    rows = np.repeat(np.array(labels, dtype=np.uint8)[:, None], 3 * 32 * 32, axis=1)
    return pickle.dumps({"data": rows, "labels": labels})


@pytest.fixture
def cifar10(host, monkeypatch):
    """A CIFAR-10 of five training files and a test file with 4 images each, at `host`.

    torchvision's own code downloads, checks, unpacks and reads it: only its table of sums and its
    address are those of the small one.
    """
    from torchvision import datasets

    names = pickle.dumps({"label_names": [f"c{i}" for i in range(10)]})
    files = {f"data_batch_{i}": batch(4 * i) for i in range(1, 6)}
    files |= {"test_batch": batch(0), "batches.meta": names}
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    (host.folder / "cifar-10-python.tar.gz").write_bytes(archive.getvalue())
    table = {
        "url": host.address + "cifar-10-python.tar.gz",
        "tgz_md5": md5(archive.getvalue()),
        "train_list": [[name, md5(files[name])] for name in files if name.startswith("data")],
        "test_list": [["test_batch", md5(files["test_batch"])]],
        "meta": {"filename": "batches.meta", "key": "label_names", "md5": md5(names)},
    }
    for name, value in table.items():
        monkeypatch.setattr(datasets.CIFAR10, name, value)
    return table


def idx(array):
    """An array of bytes as MNIST stores it."""
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


@pytest.fixture
def mnist(host, monkeypatch):
    """An MNIST of 6 + 2 images of 28 x 28, at `host`."""
    resources = []
    for part, count in (("train", 6), ("t10k", 2)):
        labels = np.arange(count, dtype=np.uint8)
        pixels = np.repeat(labels, 28 * 28).reshape(count, 28, 28) * 40
        for name, array in (("images-idx3", pixels), ("labels-idx1", labels)):
            content = gzip.compress(idx(array))
            (host.folder / f"{part}-{name}-ubyte.gz").write_bytes(content)
            resources.append((f"{part}-{name}-ubyte.gz", md5(content)))
    from torchvision import datasets

    monkeypatch.setattr(datasets.MNIST, "resources", resources)
    monkeypatch.setattr(datasets.MNIST, "mirrors", [host.address])


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


def test_cifar10_is_downloaded_once_and_then_read_from_disk(host, cifar10, tmp_path):
    train, test = data.images("cifar10", root=tmp_path)
    assert (len(train), len(test)) == (20, 4)
    assert train.labels.tolist() == list(range(4, 24))
    assert train.classes == [f"c{i}" for i in range(10)]
    image, label = train[5]
    assert label == 9
    assert torch.equal(image, torch.full((3, 32, 32), 9 / 255))
    assert torch.allclose(data.images("cifar10", root=tmp_path, channels=1)[0][5][0], image[:1])
    served = len(host.served)
    data.images("cifar10", root=tmp_path)
    data.images("cifar10", root=tmp_path, download=False)
    assert len(host.served) == served


def test_mnist_is_downloaded_once_and_then_read_from_disk(host, mnist, tmp_path):
    train, test = data.images("mnist", root=tmp_path, size=28)
    assert (len(train), len(test)) == (6, 2)
    assert train.classes == [str(digit) for digit in range(10)]
    image, label = train[5]
    assert label == 5
    assert torch.equal(image, torch.full((3, 28, 28), 200 / 255))
    served = len(host.served)
    data.images("mnist", root=tmp_path)
    data.images("mnist", root=tmp_path, download=False)
    assert len(host.served) == served


@pytest.mark.timeout(60)
def test_of_several_ranks_one_downloads(host, cifar10, tmp_path, launch, worker):
    script = worker(
        "one_downloads.py",
        "import json, sys\n"
        "from torchvision.datasets import CIFAR10\n"
        "from course_utils import data\n"
        "from course_utils.worker import report\n"
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
