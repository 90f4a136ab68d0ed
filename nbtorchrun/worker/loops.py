"""The exception that leaves a loop over a generator, while the generator's `finally` runs.

There Python tells only of the GeneratorExit that closes the generator, and keeps the exception
aside. Its traceback can be found among all objects: the frame that holds the loop stands at the
very instruction that the traceback names.
"""

import gc
from opcode import opmap
from types import FrameType, TracebackType

UNTOLD = "Python tells what it is only after the generator's `finally`"  # up to Python 3.11


def left_by(closing: GeneratorExit) -> BaseException | None:
    """The exception on whose way out a generator handles `closing`; None if there is none."""
    if closing.__traceback__ is None:
        return None
    objects = gc.get_objects()
    tracebacks = [each for each in objects if type(each) is TracebackType]
    frame = closing.__traceback__.tb_frame
    while frame := frame.f_back:
        for traceback in tracebacks:
            if traceback.tb_frame is frame and traceback.tb_lasti == frame.f_lasti:
                return _raised_with(traceback, objects)
    return None


def _raised_with(traceback: TracebackType, objects: list) -> BaseException:
    errors = [each for each in objects if issubclass(type(each), BaseException)]
    for error in errors:
        if error.__traceback__ is traceback:
            return error
    # Up to Python 3.11, an exception gets its traceback where it is caught. One that C raised is
    # not even made before.
    free = [
        error
        for error in errors
        if error.__traceback__ is None
        and all(
            each is objects or each is errors or type(each) is FrameType
            for each in gc.get_referrers(error)
        )
    ]
    if _is_raise(traceback) and len(free) == 1:
        return free[0].with_traceback(traceback)
    return Exception(UNTOLD).with_traceback(traceback)


def _is_raise(traceback: TracebackType) -> bool:
    """Whether a `raise` began it."""
    while traceback.tb_next:
        traceback = traceback.tb_next
    return traceback.tb_frame.f_code.co_code[traceback.tb_lasti] == opmap["RAISE_VARARGS"]
