"""The bytes of a handed-in file as text, and a student's text as a screen can show it."""

import codecs
import io
import re
import tokenize

from nbtorchrun.errors import InputError

# UTF-32 comes first: its mark begins with the one of UTF-16.
MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
COOKIE = re.compile(r"^([ \t\f]*#.*?coding[:=][ \t]*)([-\w.]+)", re.MULTILINE | re.ASCII)
MOST_ZEROS = 0.2  # of a file in UTF-8; of one in UTF-16, about half of the bytes are 0


def decoded(data: bytes, name: str) -> str:
    """The text of a file in UTF-8, with or without a byte-order mark.

    Raises:
        InputError: it is in another encoding, which the sentence names if it can be told.
    """
    for mark, encoding in MARKS.items():
        if data.startswith(mark):
            raise _elsewise(name, f"is encoded in {encoding}")
    if data.count(0) > MOST_ZEROS * len(data):
        raise _elsewise(name, "is encoded in UTF-16 or UTF-32, without a byte-order mark")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        where = f"byte 0x{data[error.start]:02x} in line {line}"
        raise _elsewise(name, f"is not encoded in UTF-8 ({where})") from None


def python_source(data: bytes, name: str) -> str:
    """The text of a Python file, which may name its encoding in one of its first two lines.

    Raises:
        InputError: it cannot be read in its encoding.
    """
    try:
        encoding, first_lines = tokenize.detect_encoding(io.BytesIO(data).readline)
        if encoding in ("utf-8", "utf-8-sig"):
            return decoded(data, name)
        text = data.decode(encoding)
    except SyntaxError:  # there is no such encoding, or it is not the file's
        return decoded(data, name)
    except (LookupError, UnicodeError):
        raise _elsewise(name, f"is not encoded in {encoding}, which its first lines name") from None
    # The text will be written in UTF-8, so it must not name another encoding.
    until = sum(map(len, first_lines))
    return COOKIE.sub(r"\1utf-8", text[:until]) + text[until:]


def _elsewise(name: str, what: str) -> InputError:
    return InputError(f"{name} {what}: save it in UTF-8 and hand it in again")


def is_writable(text: str) -> bool:
    """Whether a file in UTF-8 can hold a text; half of a surrogate pair it cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def visible(text: str) -> str:
    r"""A line with what no screen should obey written out: `\x1b` for an escape, `\ud800`."""
    return "".join(
        each if each.isprintable() or each == "\t" else each.encode("unicode_escape").decode()
        for each in text
    )
