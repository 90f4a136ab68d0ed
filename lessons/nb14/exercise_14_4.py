"""14.4: files that a manifest refuses."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong
from course_utils.checking.values import listed

TITLE = "files that a manifest refuses"
PROVEN = (
    "a sound checkpoint, and files that are cut short, missing, changed by one bit, too long,",
    "swapped, empty, or folders: each is named, in order, and a file of an older save is not",
)
OURS = '''"""The files of a checkpoint that are not what its manifest says."""

import hashlib


def damaged(folder, entries):
    """Their names, in the order of the manifest."""

    def sound(path, sha256):
        return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256

    return [each["file"] for each in entries if not sound(folder / each["file"], each["sha256"])]
'''
FILES = {  # in the order of the manifest, which is not that of the names
    "b.bin": b"step 20\n" + b"b" * 99,
    "a.bin": b"step 20\n" + bytes(99),
    "c.bin": b"",
}
FOLDER = object()  # in place of a file
# Its hash begins as that of b.bin does, and the other one's ends so.
BEGINS_ALIKE, ENDS_ALIKE = (b"step 20\n%099d" % number for number in (59_937, 2490))
DIGITS = "Its size is right. Do you compare every digit of the hash?"
DAMAGES = {  # what is written over a file, or None where it is removed; and the hint
    "nothing is damaged": ({}, "All three are as the manifest says; an empty one may be right."),
    "b.bin is cut short": ({"b.bin": FILES["b.bin"][:-1]}, "Compare each file with its entry."),
    "b.bin is missing": ({"b.bin": None}, "A file that is not there is damaged, too."),
    "one bit of a.bin is flipped": (
        {"a.bin": b"step 20\n" + bytes(50) + b"\x01" + bytes(48)},
        "Its size is right. What tells you that its bytes are not?",
    ),
    "c.bin has a byte too many": ({"c.bin": b"c"}, "A file may also be too long."),
    "a.bin holds what belongs in b.bin": (
        {"a.bin": FILES["b.bin"]},
        "Those bytes are sound, but not here. Whose hash do you compare with?",
    ),
    "a.bin is missing and b.bin is empty": (
        {"b.bin": b"", "a.bin": None},
        "Name every damaged file, in the order of the manifest.",
    ),
    "one bit of b.bin is flipped and c.bin is too long": (
        {"b.bin": b"step 20\n" + b"b" * 98 + b"c", "c.bin": b"c"},
        "Name every damaged file, in the order of the manifest.",
    ),
    "a file of an older save lies beside them": (
        {"old.bin": b"step 15\n"},
        "A file that the manifest does not name cannot be damaged.",
    ),
    "b.bin has other bytes of the same size": ({"b.bin": BEGINS_ALIKE}, DIGITS),
    "b.bin has other bytes, as many": ({"b.bin": ENDS_ALIKE}, DIGITS),
    "a.bin is a folder": ({"a.bin": FOLDER}, "A folder is no file: `is_file` tells them apart."),
}


def cases(damaged: Callable) -> None:
    """Sound, torn, changed, swapped, too long, empty and missing files; and one too many."""
    for case, (changes, hint) in DAMAGES.items():
        with TemporaryDirectory() as place:
            look(damaged, Path(place), case, changes, hint)


def look(damaged: Callable, folder: Path, case: str, changes: dict[str, Any], hint: str) -> None:
    """One checkpoint."""
    entries = [written(folder / name, data) for name, data in FILES.items()]
    for name, data in changes.items():
        (folder / name).unlink(missing_ok=True)
        if data is FOLDER:
            (folder / name).mkdir()
        elif data is not None:
            (folder / name).write_bytes(data)
    before = content(folder)
    call = f"damaged(folder, entries), where {case},"
    answer = called(call, damaged, folder, entries, hint=hint)
    got, right = listed(answer), [name for name in FILES if name in changes]
    if got is None:
        raise Wrong(f"{call} returned {answer!r}", "Return a list with the names of the files.")
    if any(not isinstance(name, str) for name in got):
        said = f"{call} returned {got}"
        raise Wrong(said, "The names of the files, as the manifest has them: strings.")
    if got != right:
        if sorted(got) == sorted(right):
            hint = "Those are the right files. Name them in the order of the manifest."
        raise Wrong(f"{call} returned {got}, expected {right}", hint)
    if content(folder) != before:
        said = f"{call} changed the files in the folder"
        raise Wrong(said, "Only name them: somebody may want to look at what is left.")


def written(path: Path, data: bytes) -> dict[str, Any]:
    """Write a file; its entry in a manifest."""
    path.write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    return {"file": path.name, "bytes": len(data), "sha256": sha256}


def content(folder: Path) -> dict[str, bytes]:
    """What lies in a folder."""
    return {path.name: path.read_bytes() if path.is_file() else b"" for path in folder.iterdir()}


SOUND = "path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256"
END = 'each["sha256"])]'

WRONG = [
    ("only missing files", SOUND, "path.exists()", "Compare each file with its entry"),
    (
        "only sizes",
        END,
        'each["bytes"])]',
        SOUND,
        "path.is_file() and path.stat().st_size == sha256",
        "Its size is right",
    ),
    (
        "a missing file raises an error",
        "path.is_file() and ",
        "",
        "A file that is not there is damaged, too",
    ),
    ("only the first", END, f"{END}[:1]", "Name every damaged file"),
    ("in another order", END, f"{END}[::-1]", "in the order of the manifest"),
    (
        "whether there is one",
        "return [",
        "return [] != [",
        "list with the names",
    ),
    (
        "every empty file",
        SOUND,
        "path.exists() and path.stat().st_size",
        "an empty one may be right",
    ),
    (
        "any hash of the manifest will do",
        "== sha256",
        'in [each["sha256"] for each in entries]',
        "Whose hash do you compare with?",
    ),
    ("nothing is ever damaged", SOUND, "True", "Compare each file with its entry"),
    (
        "what is not in the manifest, too",
        "return [",
        'known = [each["file"] for each in entries]\n'
        "return [path.name for path in sorted(folder.iterdir()) if path.name not in known] + [",
        "cannot be damaged",
    ),
    (
        "sorted by name",
        "return [",
        "return sorted(",
        END,
        'each["sha256"]))',
        "right files",
    ),
    (
        "files of another size first",
        "return [each",
        "wrong = [each",
        END,
        f"{END}\n"
        'sizes = {each["file"]: each["bytes"] for each in entries}\n'
        "same = lambda n: (folder / n).is_file() and (folder / n).stat().st_size == sizes[n]\n"
        "return sorted(wrong, key=same)",
        "right files",
    ),
    ("the first digits", "== sha256", "[:4] == sha256[:4]", "every digit"),
    ("the last digits", "== sha256", "[-4:] == sha256[-4:]", "every digit"),
    ("a folder is sound", SOUND, f"path.is_dir() or {SOUND}", "A folder is no file"),
    ("opens a folder", "path.is_file()", "path.exists()", "A folder is no file"),
    (
        "deletes what is damaged",
        "return [each",
        "wrong = [each",
        END,
        f"{END}\nfor name in wrong:\n"
        "    (folder / name).is_dir() or (folder / name).unlink(missing_ok=True)\n"
        "return wrong",
        "changed the files in the folder",
    ),
    ("a set", "return [each", "return {each", END, 'each["sha256"])}', "Return a list"),
]
RIGHT = [
    ("a generator", "return [each", "return (each", END, 'each["sha256"]))'),
    (
        "a dict's keys",
        "return [each",
        "return dict.fromkeys([each",
        END,
        f"{END}).keys()",
    ),
    (
        "by the hash",
        """
import hashlib

def damaged(folder, entries):
    found = []
    for entry in entries:
        path = folder / entry["file"]
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != entry["sha256"]:
            found.append(entry["file"])
    return found
""",
    ),
    (
        "the size first",
        "(path, sha256)",
        "(path, size, sha256)",
        "path.is_file() and ",
        "path.is_file() and path.stat().st_size == size and ",
        END,
        f'each["bytes"], {END}',
    ),
]
