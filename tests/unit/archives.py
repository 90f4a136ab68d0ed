"""CIFAR-10 and MNIST as their makers packed them, of any size, with pictures of our own."""

import gzip
import hashlib
import io
import pickle
import tarfile

import numpy as np

FILES = ["data_batch_4", "readme.html", "test_batch", "data_batch_3", "batches.meta"]
FILES += ["data_batch_2", "data_batch_5", "data_batch_1"]  # in the archive's order
RAMP = np.arange(1024) % 32  # each row of pixels counts from 0 to 31


class Python2Pickler(pickle._Pickler):
    """Pickles as Python 2 did, with which CIFAR-10 was written: text and bytes are the same."""

    dispatch = pickle._Pickler.dispatch.copy()

    def save_string(self, value):
        raw = value.encode() if isinstance(value, str) else value
        short = len(raw) < 256
        size = len(raw).to_bytes(1 if short else 4, "little")
        self.write((pickle.SHORT_BINSTRING if short else pickle.BINSTRING) + size + raw)
        self.memoize(value)

    def save_number(self, value):
        self.write(pickle.BININT1 + bytes([value]))

    dispatch[str] = dispatch[bytes] = save_string
    dispatch[bool] = save_number


def pickled(value):
    stream = io.BytesIO()
    Python2Pickler(stream, 2).dump(value)
    return stream.getvalue().replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")


def cifar10(count):
    """The archive, and torchvision's table for it; a file has `count` images.

    Image k of all files is k % 256 in red, k // 256 in green and a ramp in blue; its label is
    k % 10.
    """
    names = {f"data_batch_{i + 1}": (f"training batch {i + 1} of 5", i) for i in range(5)}
    names["test_batch"] = ("testing batch 1 of 1", 5)
    label_names = "airplane automobile bird cat deer dog frog horse ship truck".split()
    meta = {"num_cases_per_batch": count, "label_names": label_names, "num_vis": 3072}
    files = {"batches.meta": pickled(meta), "readme.html": b"<html></html>"}
    for name, (title, number) in names.items():
        numbers = np.arange(count * number, count * (number + 1))
        rows = np.empty((count, 3, 1024), np.uint8)
        rows[:, 0], rows[:, 1], rows[:, 2] = numbers[:, None] % 256, numbers[:, None] // 256, RAMP
        batch = {"batch_label": title, "labels": (numbers % 10).tolist()}
        batch |= {"data": rows.reshape(count, 3072)}
        files[name] = pickled(batch | {"filenames": [f"image_{k:06}.png" for k in numbers]})
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz", compresslevel=1) as tar:
        folder = tarfile.TarInfo("cifar-10-batches-py")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(folder)
        for name in FILES:
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(files[name])
            tar.addfile(member, io.BytesIO(files[name]))
    table = {
        "tgz_md5": md5(archive.getvalue()),
        "train_list": [[name, md5(files[name])] for name in sorted(names) if name[0] == "d"],
        "test_list": [["test_batch", md5(files["test_batch"])]],
        "meta": {
            "filename": "batches.meta",
            "key": "label_names",
            "md5": md5(files["batches.meta"]),
        },
    }
    return {"cifar-10-python.tar.gz": archive.getvalue()}, table


def mnist(train, test):
    """The four files, and torchvision's table for them.

    Image k is k % 256 in its left half and k // 256 in its right half; its label is k % 10.
    """
    files = {}
    for part, count in (("train", train), ("t10k", test)):
        numbers = np.arange(count)
        pixels = np.empty((count, 28, 28), np.uint8)
        pixels[:, :, :14] = numbers[:, None, None] % 256
        pixels[:, :, 14:] = numbers[:, None, None] // 256
        for name, array in (("images-idx3", pixels), ("labels-idx1", numbers % 10)):
            header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            content = header + array.astype(np.uint8).tobytes()
            files[f"{part}-{name}-ubyte.gz"] = gzip.compress(content, 1)
    return files, {"resources": [(name, md5(content)) for name, content in files.items()]}


def md5(content):
    return hashlib.md5(content).hexdigest()
