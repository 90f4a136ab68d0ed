"""Small CIFAR-10 and MNIST, packed as their makers packed them, with pictures of our own."""

import gzip
import hashlib
import io
import pickle
import tarfile

import numpy as np

BATCHES = [f"data_batch_{number}" for number in range(1, 6)]
RAMP = np.arange(1024) % 32  # each row of pixels counts from 0 to 31
LABELS = "airplane automobile bird cat deer dog frog horse ship truck".split()


def cifar10(count=4):
    """The archive, and torchvision's table for it; a file has `count` images.

    Image k of all files is k in red, 0 in green and a ramp in blue; its label is k % 10.
    """
    files = {"batches.meta": pickle.dumps({"label_names": LABELS})}
    for place, name in enumerate([*BATCHES, "test_batch"]):
        numbers = np.arange(count * place, count * (place + 1))
        rows = np.zeros((count, 3, 1024), np.uint8)
        rows[:, 0], rows[:, 2] = numbers[:, None], RAMP
        batch = {"labels": (numbers % 10).tolist(), "data": rows.reshape(count, 3072)}
        files[name] = pickle.dumps(batch)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    meta = {"filename": "batches.meta", "key": "label_names", "md5": md5(files["batches.meta"])}
    table = {
        "tgz_md5": md5(archive.getvalue()),
        "train_list": [[name, md5(files[name])] for name in BATCHES],
        "test_list": [["test_batch", md5(files["test_batch"])]],
        "meta": meta,
    }
    return {"cifar-10-python.tar.gz": archive.getvalue()}, table


def mnist(train=6, test=2):
    """The four files, and torchvision's table for them.

    Image k is k in its left half and 0 in its right half; its label is k % 10.
    """
    files = {}
    for part, count in (("train", train), ("t10k", test)):
        numbers = np.arange(count)
        pixels = np.zeros((count, 28, 28), np.uint8)
        pixels[:, :, :14] = numbers[:, None, None]
        for name, array in (("images-idx3", pixels), ("labels-idx1", numbers % 10)):
            header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            content = header + array.astype(np.uint8).tobytes()
            files[f"{part}-{name}-ubyte.gz"] = gzip.compress(content)
    return files, {"resources": [(name, md5(content)) for name, content in files.items()]}


def md5(content):
    return hashlib.md5(content).hexdigest()
