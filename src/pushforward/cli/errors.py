"""One clear message for what a user can mend, a traceback for what only we can; and the exit codes."""

import errno
import functools
import os
import re
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import walk_tb
from typing import Any

import typer
from rich.text import Text

from pushforward.cli.console import note, stderr
from pushforward.machine import check_addresses

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
"""The work went wrong; what was asked makes no sense; Ctrl-C (128 + SIGINT, as shells have it)."""

VARIABLE = "PUSHFORWARD_TRACEBACK"  # set to anything, it shows where a message comes from

_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What a disk says that takes no more, whoever wrote to it: the request was right."""


class CommandError(Exception):
    """Something to say to the user, and the exit code that goes with it."""

    def __init__(self, message: str, code: int = BAD_INPUT):
        super().__init__(message)
        self.code = code


def complain(message: str) -> None:
    """Print one error message on standard error."""
    stderr().print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)


def reported(command: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a command so that users see messages, not tracebacks, and shells see the right code."""
    # A help text runs lines together unless a blank one is between them; examples are one line each.
    command.__doc__ = re.sub(r"\n+(?= +pushforward )", "\n\n", command.__doc__ or "")

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        try:
            check_addresses()
            with _warnings_as_notes():
                return command(*args, **options)
        except KeyboardInterrupt:
            complain("interrupted; nothing was written.")
            raise typer.Exit(INTERRUPTED) from None
        except CommandError as error:
            complain(str(error))
            raise typer.Exit(error.code) from error
        except (ValueError, TypeError, ImportError) as error:
            if os.environ.get(VARIABLE) or not _ours(error):
                raise
            complain(str(error))
            raise typer.Exit(BAD_INPUT) from error
        except OSError as error:
            if os.environ.get(VARIABLE):
                raise
            complain(_without_number(error))
            raise typer.Exit(BAD_INPUT if _ours(error) and error.errno not in _DISK else FAILED) from error

    return run


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let a moment's work, such as saving, end before Ctrl-C can: a second press must not undo the first."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Say warnings in the same voice as everything else, each of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *args, **options: note(f"note: {message}")
        yield


def _ours(error: BaseException) -> bool:
    """Whether the error was raised by a line of ours: a message written for users.

    A `ValueError` out of JAX or NumPy is a mistake of ours, and hiding where it came from helps nobody.
    """
    modules = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    return bool(modules) and modules[-1].partition(".")[0] in ("pushforward", "reproduce")


def _without_number(error: OSError) -> str:
    """Return `draws.npy: No space left on device` and not `[Errno 28] ...`."""
    if error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
