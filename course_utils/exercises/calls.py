"""What the checks of functions share: the call of the student's function."""

from collections.abc import Callable
from typing import Any

from course_utils.exercises.checking import Wrong


def called(call: str, function: Callable, *arguments: Any, hint: str = "") -> Any:
    """What the student's function returns.

    Args:
        call: how a message names the call.
        function: the student's.
        *arguments: what it is called with.
        hint: the question that fits an exception.

    Raises:
        NotImplementedError: the student has not begun.
        Wrong: the function raised something else.
    """
    try:
        return function(*arguments)
    except Exception as error:
        # Stubs raise it bare; PyTorch raises it too, with a message.
        if isinstance(error, NotImplementedError) and not str(error):
            raise
        raise Wrong(f"{call} raised {type(error).__name__}: {error}", hint) from None
