"""Whose answer runs: the student's once it has passed its check, otherwise ours.

A cell whose magic says `--ours 04.2` holds our answer to exercise 04.2. Once the student's answer
has passed its check, that cell writes the student's text in place of ours.
"""

import contextlib
import hashlib

from course_utils import notes, paths

PASSED = ".passed.json"  # the digest of each answer that has passed, by the exercise's number


def file_of(number: str) -> str:
    """The worker file that holds the answer to an exercise."""
    return f"exercise_{number.replace('.', '_')}.py"


def note(number: str, passed: bool) -> None:
    """Note what the check of an exercise found, and for which text."""
    with notes.changing(PASSED) as noted:
        noted[number] = _digest(_answer(number)) if passed else None


def passed() -> set[str]:
    """The exercises whose last check passed; a file that has changed since does not count."""
    return {
        number for number, digest in notes.read(PASSED).items() if digest and passed_text(number)
    }


def passed_text(number: str) -> str | None:
    """The student's file, if it has passed its check and has not changed since; else None."""
    text = _answer(number)
    return text if text and notes.read(PASSED).get(number) == _digest(text) else None


def _answer(number: str) -> str:
    path = paths.workers() / file_of(number)
    with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):  # then it has not passed
        return path.read_text(encoding="utf-8")
    return ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
