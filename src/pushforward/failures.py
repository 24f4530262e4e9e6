"""What an error means when a compiled program raises it: no memory left, or something in it that failed."""

import re

_STATUS = re.compile(r"(INTERNAL|UNKNOWN|RESOURCE_EXHAUSTED|UNAVAILABLE|ABORTED|CANCELLED|DATA_LOSS): ")


def is_exhausted(error: BaseException) -> bool:
    """Whether an error says that memory ran out, rather than that something is wrong."""
    return isinstance(error, MemoryError) or (came_from_running(error) and "RESOURCE_EXHAUSTED" in str(error))


def came_from_running(error: BaseException) -> bool:
    """Whether an error was raised by a program that ran, and not by a mistake in making it.

    JAX raises some failures as a `ValueError` that begins with a status of its runtime.
    """
    if isinstance(error, RuntimeError | MemoryError):
        return True
    return isinstance(error, ValueError) and _STATUS.match(str(error)) is not None


def in_one_line(error: BaseException) -> str:
    """Return the words of an error; of a traceback that came through JAX, those of what was raised first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[A-Za-z_.]*(Error|Exception|Interrupt)\b", line)]
    return (raised or lines or [type(error).__name__])[-1 if raised else 0][:500]
