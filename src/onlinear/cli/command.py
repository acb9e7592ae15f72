"""What every command shares: the application, exit codes, and errors in words.

Exit codes: 0, 1 failure, 2 usage, 130 interrupted.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer

FAILURE, USAGE, INTERRUPTED = 1, 2, 130

app = typer.Typer(
    help="Sparse linear models from streams: train on files larger than memory, one row at a time, exactly.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


class UsageError(Exception):
    """Options that cannot be: exit code 2."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Errors as one clear line on standard error, with the exit code that belongs to them."""

    @wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except KeyboardInterrupt:
            fail("interrupted.", INTERRUPTED)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has gone: nothing to say
            raise typer.Exit(FAILURE) from None
        except UsageError as error:
            fail(str(error), USAGE)
        except (ValueError, TypeError, OSError, ArithmeticError, MemoryError) as error:
            fail(words(error), FAILURE)

    return run


def words(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return str(error) or type(error).__name__


def fail(message: str, code: int) -> None:
    typer.echo(f"onlinear: {message}", err=True)
    raise typer.Exit(code)


@contextmanager
def usage() -> Iterator[None]:
    """What is wrong inside is wrong with the options."""
    from onlinear.streams import StreamError

    try:
        yield
    except StreamError:
        raise
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from None


def _version(asked: bool) -> None:
    if asked:
        from onlinear import __version__

        typer.echo(f"onlinear {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Sparse linear models from streams: train on files larger than memory, one row at a time, exactly."""


class Reading(NamedTuple):
    """The options that say how files are read, the same for every command."""

    base: Annotated[int, typer.Option("--base", help="svmlight: the first index in the files, 1 or 0.", min=0, max=1)] = 1
    sort: Annotated[bool, typer.Option("--sort", help="svmlight: indices in any order; repeated ones are summed.")] = False
    max_errors: Annotated[int, typer.Option("--max-errors", help="Skip and count this many wrong lines.", min=0)] = 0


def reads(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command``, whose last parameter is ``reading: Reading``, an option for each field of it."""
    signature, hints = inspect.signature(command), get_type_hints(Reading, include_extras=True)
    fields = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
        for name, default in Reading._field_defaults.items()
    ]

    @wraps(command)
    def run(*args: Any, **options: Any) -> None:
        reading = Reading(**{name: options.pop(name) for name in Reading._fields})
        command(*args, **options, reading=reading)

    known = get_type_hints(command, include_extras=True)
    own = [parameter.replace(annotation=known[name]) for name, parameter in signature.parameters.items() if name != "reading"]
    run.__signature__ = signature.replace(parameters=[*own, *fields])  # type: ignore[attr-defined]
    del run.__annotations__["reading"], run.__wrapped__
    run.__annotations__.update(known | hints)
    return run
