"""What all checks share: comparing values, printing differences, and naming known mistakes.

A check raises `Wrong` at the first thing that is wrong: `expect` for a value, `judge` for all that
`findings.observe` saw of a call, `expect_calls` for what was sent.
"""

import math
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from course_utils.checking.values import close, flat, form_hint, is_number, plain, shape, type_name

Mistakes = Mapping[str, Any] | Iterable[tuple[str, Any]]
TOLERANCE = {"float64": 1e-9, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}
MOST_SHOWN = 12  # values of an answer that are written out
NAN = (
    "There is a nan in it. Which operation gives nan: 0 / 0, 0 times inf, inf - inf, or memory "
    "that nobody has written?"
)
NOTHING = "Every call needs a result, on every rank. Where does yours end without a `return`?"
SPECIAL = "Return an ordinary tensor: dense, of real numbers, with its values in memory."
NEARLY = (
    "Nearly right: the last digits are gone. In which dtype do you compute, and do you round or "
    "truncate a number on the way?"
)
HIDDEN = 20_000  # bytes besides the calls of torch.distributed that the store may have sent


class Wrong(Exception):
    """A wrong answer: the smallest failing case, and a question that leads to the mistake."""

    def __init__(self, message: str, hint: str = ""):
        super().__init__(message)
        self.message = message
        self.hint = hint


def name_of(dtype: Any) -> str:
    """`float32`, of torch.float32."""
    return str(dtype).removeprefix("torch.")


def text(value: Any, digits: int = 4) -> str:
    """A value, or nested lists, with that many digits; whole numbers as they are."""
    if isinstance(value, (list, tuple)):
        inner = ", ".join(text(item, digits) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value)
    before_point = len(str(int(abs(value)))) if abs(value) < 1e15 else 0
    return f"{value:.{max(digits, before_point)}g}"


def unlike(got: Any, expected: Any) -> str:
    """`0.33, expected 0.34`: with as many digits as it takes to see the difference.

    Of many values only the first that differs is shown, with its place.
    """
    if shape(got) == shape(expected) and len(flat(expected)) > MOST_SHOWN:
        got, expected, place = _first_that_differs(got, expected)
        return f"{unlike(got, expected)} at place {place}"
    if len(flat(got)) > MOST_SHOWN:
        return f"{count(len(flat(got)), 'value')}, expected {text(expected)}"
    for digits in (4, 6, 9, 12, 17):
        one, other = text(got, digits), text(expected, digits)
        if one != other:
            return f"{one}, expected {other}"
    return f"{one} ({kind(got)}), expected {other} ({kind(expected)})"


def _first_that_differs(got: Any, expected: Any) -> tuple[Any, Any, str]:
    """The two values, and their place as `[1][3]`."""
    if not isinstance(expected, (list, tuple)):
        return got, expected, ""
    pairs = list(zip(got, expected, strict=True))
    differ = (i for t in (1e-5, 0) for i, (a, b) in enumerate(pairs) if not close(a, b, t))
    index = next(differ, 0)
    one, other, inner = _first_that_differs(*pairs[index])
    return one, other, f"[{index}]{inner}"


def count(number: int, noun: str) -> str:
    """`1 rank`, `2 ranks`, `2 entries`."""
    plural = noun[:-1] + "ies" if noun.endswith("ry") else noun + "s"
    return f"{number:,} {noun if number == 1 else plural}"


def kind(value: Any) -> str:
    """What a value is, with its article: `an int`, `a Tensor`, `None`."""
    return "None" if value is None else article(type_name(value))


def article(name: str) -> str:
    """`a float32`, `an int64`."""
    if name in ("None", "NoneType"):
        return "None"
    return f"an {name}" if name[0] in "aeiouAEIO" else f"a {name}"


def hint_for(got: Any, mistakes: Mistakes, otherwise: str = "", tolerance: float = 1e-5) -> str:
    """The question for the known mistake that gives `got`; `otherwise` if there is none.

    A nan that no known mistake gives is asked about first.

    Args:
        got: the student's value.
        mistakes: each mistake's question and the value that the mistake gives; as pairs, if two
            values share a question.
        otherwise: the question where no known mistake fits.
        tolerance: as in `close`.
    """
    fits = (question for question, wrong in _pairs(mistakes) if close(got, wrong, tolerance))
    return next(fits, NAN if has_nan(got) else otherwise)


def _hint(
    got: Any, expected: Any, mistakes: Mistakes, otherwise: str, tolerance: float, terms: Any = None
) -> str:
    """The question that fits a wrong value; see `judge`."""
    known, loose = _known(mistakes, expected, tolerance), max(tolerance, 1e-6)
    hint = form_hint(got, expected, loose) or hint_for(got, known, "", loose)
    hint = hint or (whose(flat(got), plain(terms), loose) if terms else "")
    has_digits = any(isinstance(each, float) for each in flat(expected))
    return hint or (NEARLY if has_digits and close(got, expected, 1e-3) else otherwise)


def has_nan(values: Any) -> bool:
    """Whether there is a nan in nested lists."""
    return any(isinstance(value, float) and math.isnan(value) for value in flat(values))


def _known(mistakes: Mistakes, expected: Any, tolerance: float) -> list[tuple[str, Any]]:
    """The mistakes whose value is not the right one here."""
    pairs = [(question, plain(wrong)) for question, wrong in _pairs(mistakes)]
    return [(question, wrong) for question, wrong in pairs if not close(wrong, expected, tolerance)]


def _pairs(mistakes: Mistakes) -> Iterable[tuple[str, Any]]:
    return mistakes.items() if isinstance(mistakes, Mapping) else mistakes


def expect(
    where: str,
    got: Any,
    expected: Any,
    mistakes: Mistakes = (),
    otherwise: str = "",
    tolerance: float = 1e-9,
) -> None:
    """Raise `Wrong` if `got` is not close to `expected`; `where` is followed by both values."""
    got, expected = plain(got), plain(expected)
    if not close(got, expected, tolerance):
        hint = _hint(got, expected, mistakes, otherwise, tolerance)
        if is_number(expected) and (got is None or isinstance(got, str)):
            hint = "Return a number." if got else NOTHING
        raise Wrong(f"{where} {unlike(got, expected)}", hint)


def whose(got: list[float], terms: list[list[float]], tolerance: float = 1e-5) -> str:
    """Which ranks' values a sum misses or counts twice; '' if `got` is no such sum.

    Args:
        got: the student's sum.
        terms: what each rank has to add.
        tolerance: as in `close`.
    """
    if not got or any(len(term) != len(got) for term in terms):
        return ""
    for times in product(range(3), repeat=len(terms)):
        columns = zip(*terms, strict=True)
        total = [sum(t * v for t, v in zip(times, column, strict=True)) for column in columns]
        if close(got, total, tolerance):
            how = {0: "missing", 2: "counted twice"}
            faults = [f"rank {r}'s values are {how[n]}" for r, n in enumerate(times) if n in how]
            said = "; ".join(faults)
            return f"{said[:1].upper()}{said[1:]}." if faults else ""
    return ""


def judge(
    where: str,
    found: Mapping[str, Any],
    expected: Any,
    mistakes: Mistakes = (),
    otherwise: str = "",
    *,
    kinds: tuple[str, ...] = ("Tensor",),
    dtype: Any = "",
    verb: str = "returned",
    tolerance: float | None = None,
    terms: Any = None,
) -> None:
    """Judge one call of the student's function: its answer first, then what it did besides.

    Args:
        where: how a message begins.
        found: what `findings.observe` saw.
        expected: the right answer.
        mistakes: as in `hint_for`.
        otherwise: the question where nothing else fits.
        kinds: the types that an answer may have.
        dtype: of its tensors; '' if it has none.
        verb: how a message names what was found: "returned", or "holds".
        tolerance: as in `close`; None for the dtype's own.
        terms: as in `whose`, where the answer is a sum over the ranks.

    Raises:
        Wrong: the answer or a side effect is wrong.
    """
    got, expected, dtype = found["answer"], plain(expected), name_of(dtype)
    tolerance = TOLERANCE.get(dtype, 1e-9) if tolerance is None else tolerance
    if found["kind"] not in kinds:
        what, wanted = article(found["kind"]), article(kinds[0])
        hint = NOTHING if found["kind"] == "NoneType" else ""
        hint = hint or form_hint(got, expected, max(tolerance, 1e-6), wanted) or f"Return {wanted}."
        hint = SPECIAL if set(kinds) & set(found["kind"].split()) else hint
        raise Wrong(f"{where} returned {what}, expected {wanted}", hint)
    if not close(got, expected, tolerance):
        hint = _hint(got, expected, mistakes, otherwise, tolerance, terms)
        if "float" in dtype and found["dtype"].startswith(("int", "uint", "bool")):
            hint = f"That is {article(found['dtype'])}. Which of your lines changes the dtype?"
        raise Wrong(f"{where} {verb} {unlike(got, expected)}", hint)
    if dtype and not found["dtype"]:
        said = f"{where} {verb} a {found['kind']} of {', '.join(sorted(set(found['kinds'])))}"
        raise Wrong(f"{said}, expected tensors", "The values are right. What should hold them?")
    if dtype and found["dtype"] != dtype:
        hint = "The values are right. Which of your lines changes the dtype?"
        raise Wrong(f"{where} {verb} {found['dtype']}, expected {dtype}", hint)
    for name in found["changed"]:
        hint = "The caller may still need it. Work on a copy."
        raise Wrong(f"{where} changed {name} that it was given", hint)
    if found["random"]:
        hint = "Other code draws from it too. Make a torch.Generator of your own."
        raise Wrong(f"{where} changed the global random state", hint)
    expect_own_memory(where, found)
    if found["unwaited"]:
        hint = "The values are right only by luck. Do you keep every request and wait for it?"
        requests = count(found["unwaited"], "request")
        raise Wrong(f"{where} did not wait for {requests} that it started", hint)
    if found["hidden"] > HIDDEN:
        hint = "Do your ranks also talk through a store or a thread?"
        raise Wrong(f"{where} sent {found['hidden']:,} bytes outside its collectives", hint)


def expect_own_memory(where: str, found: Mapping[str, Any]) -> None:
    """Raise `Wrong` if two calls gave answers in the same memory."""
    if found["shared"]:
        hint = (
            "The caller may still hold the first answer. Does yours keep one buffer for all calls?"
        )
        raise Wrong(f"{where}: two calls gave answers in the same memory", hint)


def expect_new(where: str, found: Mapping[str, Any]) -> None:
    """Raise `Wrong` if an answer is a tensor that the student's function was given, or a view."""
    if found["given"]:
        said = f"{where} returned memory that it was given"
        raise Wrong(said, "Whoever changes the one later changes the other. Return a new tensor.")


def tensors(where: str, found: Mapping[str, Any], number: int, hint: str) -> list[dict[str, Any]]:
    """What was found of each tensor of an answer that has to be that many.

    Raises:
        Wrong: the answer is something else; with the hint.
    """
    if found["kind"] not in ("tuple", "list") or len(found["answer"]) != number:
        raise Wrong(f"{where} returned {article(found['kind'])}, expected {number} tensors", hint)
    parts = zip(found["kinds"], found["dtypes"], found["answer"], strict=True)
    return [{**found, "kind": k, "dtype": dtype, "answer": each} for k, dtype, each in parts]


def expect_calls(where: str, got: list, allowed: Iterable[list], hint: str = "") -> None:
    """Raise `Wrong` if a rank made other collectives and messages than those allowed.

    Args:
        where: how the message begins.
        got: `[name, bytes]` for each call.
        allowed: lists of the same kind; `got` has to equal one of them.
        hint: the question that leads to the mistake.
    """
    allowed = [list(map(list, calls)) for calls in allowed]
    if [list(call) for call in got] not in allowed:
        said = f"{where} called {named_calls(got)}, expected {named_calls(allowed[0])}"
        raise Wrong(said, hint or "The values are right. Which collective does exactly this?")


def expect_two_numbers(where: str, got: list, ranks: int) -> None:
    """Raise `Wrong` if a rank sent the others more than two numbers, or none, in its collectives.

    Two numbers may travel in one call or in two.
    """
    most_calls, most_bytes = 2, 32
    if ranks > 1 and not any(size for _, size in got):
        hint = "The value is right. What carried it to this rank: a store, a file, a thread?"
        raise Wrong(f"{where} called {named_calls(got)}: no collective carried a number", hint)
    if len(got) > most_calls or sum(size for _, size in got) > most_bytes:
        said = f"{where} called {named_calls(got)}, allowed are {most_calls} collectives"
        hint = "Which two numbers are all that the other ranks need from this one?"
        raise Wrong(f"{said} with {most_bytes} bytes in total", hint)


def named_calls(calls: Iterable) -> str:
    """`all_reduce of 8 bytes, barrier of 0 bytes`; `nothing`."""
    return ", ".join(f"{name} of {count(size, 'byte')}" for name, size in calls) or "nothing"
