"""Shared by all commands: the application, exit codes, and error messages.

Exit codes: 0, 1 failure, 2 usage, 130 interrupted.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial, wraps
from shutil import get_terminal_size
from typing import Annotated, Any, NamedTuple, NoReturn, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from onlinear.cli.interrupts import INTERRUPTED, Interrupts
from onlinear.text.names import printable

FAILURE, USAGE = 1, 2
SCREEN = 80  # characters of a line that help in panels needs

TEXTS: tuple[Any, ...] = (str, str | None)
LISTS_OF_TEXTS: tuple[Any, ...] = (list[str], list[str] | None)


class LazyConversion:
    """In front of a command of Typer's: it converts only those values that need it, numbers that were given and values with
    rules. Typer readies a library to convert values, which takes longer than to train on a small file."""

    callback: Any
    help: str | None
    rich_markup_mode: Any

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments, with --help."""
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in found:
            parameter.process_value = partial(self._process, parameter, type(parameter).process_value.__get__(parameter))
        return found

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the help; on a narrow screen without panels, whose columns would cut the names of options."""
        needs_output()
        before = self.rich_markup_mode, self.help
        if get_terminal_size().columns < SCREEN:
            self.rich_markup_mode, self.help = None, (self.help or "").replace(r"\[", "[")
        try:
            super().format_help(ctx, formatter)  # type: ignore[misc]
        finally:
            self.rich_markup_mode, self.help = before

    @cached_property
    def _kinds(self) -> dict[str, Any]:
        return {} if self.callback is None else get_type_hints(self.callback)

    def _process(self, parameter: Any, convert: Callable[..., Any], ctx: typer.Context, value: Any) -> Any:
        found = self._as_it_is(parameter, value)
        if found is None and (value is not None or parameter.required):
            return _converted(convert, ctx, value)
        return found if parameter.callback is None else parameter.callback(ctx, parameter, found)

    def _as_it_is(self, parameter: Any, value: Any) -> Any:
        """A value that needs no conversion; None for any other."""
        kind = self._kinds.get(parameter.name)
        if isinstance(value, bool) or value is parameter.default:
            return value
        if kind in LISTS_OF_TEXTS and isinstance(value, (list, tuple)) and all(isinstance(text, str) for text in value):
            return list(value)
        return value if kind in TEXTS and isinstance(value, str) else None


def _converted(convert: Callable[..., Any], ctx: typer.Context, value: Any) -> Any:
    """A converted value; the error of a wrong one names it."""
    try:
        return convert(ctx, value)
    except typer.BadParameter as error:
        if value and repr(value) not in error.message:  # none is missing, which the message says
            error.message = f"{error.message}, got {value!r}"
        raise


class QuickCommand(LazyConversion, TyperCommand):
    """A command. Options that other programs have are answered with those that ``train`` has for it."""

    def make_parser(self, ctx: Any) -> Any:
        """The reader of the command line, which refuses a second value of an option that has one."""
        parser: Any = super().make_parser(ctx)
        read = parser.parse_args

        def read_once(args: list[str]) -> Any:
            found = read(args)
            _refuse_repeated(found[2])
            return found

        parser.parse_args = read_once
        return parser

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if self.name == "train" and hasattr(error, "possibilities"):  # the option is not there; typer exports no class
                _advise(error)
            raise


def _refuse_repeated(given: Sequence[Any]) -> None:
    """End the command where an option of one value stands twice; ``given``: the parameters, each as often as it stands."""
    for parameter, count in Counter(given).items():
        switches = getattr(parameter, "is_flag", False) and not parameter.secondary_opts  # which says the same again
        if count > 1 and not (parameter.multiple or switches):
            names = "/".join([max(options, key=len) for options in (parameter.opts, parameter.secondary_opts) if options])
            fail(f"{names} is given {count} times; expected it once.", USAGE)


def _advise(error: Any) -> None:
    """Put the advice on an option that is not there, where there is some, in place of options of similar names."""
    from onlinear.text.hints import advise_on_option

    advice = advise_on_option(error.option_name)
    if advice is not None:
        error.message, error.possibilities = f"{error.message}. {advice}", None


class QuickGroup(LazyConversion, TyperGroup):
    """The command that has all others. What other programs call one is answered with its name here."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that ``args`` begin with."""
        from onlinear.text.hints import advise_on_command

        advice = None if self.get_command(ctx, args[0]) is not None else advise_on_command(args[0])
        if advice is not None and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}. {advice}")
        return super().resolve_command(ctx, args)


class Application(typer.Typer):
    """An application of such commands."""

    def command(self, *args: Any, **settings: Any) -> Callable[..., Any]:
        """Register a command."""
        return super().command(*args, cls=QuickCommand, **settings)


app = Application(
    cls=QuickGroup,
    help="Train sparse linear models on files larger than memory, one row at a time.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


class UsageError(Exception):
    """Options that are wrong or contradict each other: exit code 2."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Errors and signals as one clear line on standard error, with the exit code that belongs to them."""

    @wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            with Interrupts():
                command(*args, **options)
        except KeyboardInterrupt:
            fail("interrupted.", INTERRUPTED)
        except BrokenPipeError:
            raise typer.Exit(FAILURE) from None  # nothing to say
        except UsageError as error:
            fail(str(error), USAGE)
        except (ValueError, TypeError, OSError, ArithmeticError, MemoryError) as error:
            fail(words(error), FAILURE)

    return run


def words(error: BaseException) -> str:
    """An error in words."""
    if isinstance(error, OSError) and error.strerror:
        return f"{printable(str(error.filename))}: {reason(error)}" if error.filename else reason(error)
    if isinstance(error, MemoryError):
        return f"{str(error).removesuffix('.')}." if str(error) else reason(error)
    return str(error) or type(error).__name__


def reason(error: OSError | MemoryError) -> str:
    """The system's message, without the file's name."""
    if isinstance(error, MemoryError):
        return f"no memory{f' ({error})' if str(error) else ''}."
    return f"{error.strerror or error}."


def fail(message: str, code: int) -> NoReturn:
    """End the command with a message on standard error, where that takes one."""
    with suppress(OSError):
        typer.echo(f"onlinear: {message}", err=True)
    raise typer.Exit(code)


@contextmanager
def usage() -> Iterator[None]:
    """Errors of the block are errors of the options: they become UsageError."""
    from onlinear.streams import StreamError

    try:
        yield
    except StreamError:
        raise
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from None


def inputs(source: Sequence[str], role: str = "a source") -> list[tuple[str, str]]:
    """The files behind a source's names, as (role, file)."""
    from onlinear.streams import local_files

    return [(role, name) for name in local_files(source)]


def writable(option: str, path: str, read: Iterable[tuple[str, str]], *, stream: bool = True) -> None:
    """Refuse an output that cannot be written, or that is one of the inputs ``read``, before the work begins.

    ``stream``: whether the output may be a pipe or device, which cannot be read again.
    """
    from onlinear.files import paths

    if not path:
        raise UsageError(f"{option} is empty; expected the name of a file.")
    if path.startswith("-"):  # what other programs take for standard output, or an option whose value was left out
        raise UsageError(f"{option} {printable(path)}: expected the name of a file; one that begins so is ./{printable(path)}.")
    try:
        paths.check_writable(path)
    except OSError as error:
        raise UsageError(f"{option} {printable(path)}: {reason(error)}") from None
    if not stream and paths.is_stream(path):
        raise UsageError(f"{option} {printable(path)}: is a pipe or device; expected a file, which can be read again.")
    for role, name in read:
        if paths.same(path, name):
            also = "" if name == path else f" ({printable(name)})"
            raise UsageError(
                f"{option} {printable(path)}: is also {role}{also}; an output must be another file than every input."
            )


def needs_output() -> None:
    """Raise OSError where standard output is closed: what a command only shows would be lost without a word."""
    from onlinear.files.standard_streams import standard_output

    standard_output()


def given_in(ctx: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line."""
    return getattr(ctx.get_parameter_source(name), "name", "") == "COMMANDLINE"


def _version(asked: bool) -> None:
    if asked:
        from onlinear import __version__

        needs_output()
        typer.echo(f"onlinear {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Train sparse linear models on files larger than memory, one row at a time."""


READING, MODEL, RUN, OUTPUT = "Reading", "Model", "Run", "Output"  # the panels of --help


SHARDS = "Several cores or machines"
Workers = Annotated[
    int | None,
    typer.Option(
        help="Read the files in so many processes of this machine, each file in one of them.",
        metavar="N",
        min=1,
        show_default=False,
        rich_help_panel=SHARDS,
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        help="Read the files on the workers of a Dask cluster: the address of its scheduler, such as tcp://host:8786.",
        metavar="ADDRESS",
        show_default=False,
        rich_help_panel=SHARDS,
    ),
]


def over_shards(workers: int | None, dask: str | None) -> bool:
    """Whether the files are read by several workers. Raises UsageError for both kinds of them."""
    if workers is not None and dask is not None:
        raise UsageError("--workers and --dask exclude each other.")
    return workers is not None or dask is not None


def _reading(*names: str, help: str, **options: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=READING, show_default=options.pop("show_default", False), **options)


class Reading(NamedTuple):
    """The options that say how files are read, the same for every command, by the names of ``streams.open``."""

    format: Annotated[
        str,
        _reading(
            "--format",
            metavar="FORMAT",
            help="svmlight, vw, parquet, arrow, csv, columns, or auto (by suffix, else svmlight).",
            show_default=True,
        ),
    ] = "auto"
    base: Annotated[
        int | None,
        _reading("--base", help="svmlight: first index in the files, 1 or 0. Default: as in the model, else 1.", min=0, max=1),
    ] = None
    sort: Annotated[bool, _reading("--sort", help="svmlight: accept indices in any order; sum repeated ones.")] = False
    target: Annotated[str | None, _reading("--target", metavar="COLUMN", help="Tables: the column to predict.")] = None
    weight: Annotated[str | None, _reading("--weight", metavar="COLUMN", help="Tables: the column of row weights.")] = None
    features: Annotated[
        list[str] | None,
        _reading(
            "--features", metavar="A,B*,...", help="Tables: the columns to use as features, e.g. 'age,I*'. Default: all others."
        ),
    ] = None
    exclude: Annotated[
        list[str] | None, _reading("--exclude", metavar="A,B*,...", help="Tables: columns to leave out, e.g. 'id,*_date'.")
    ] = ()  # type: ignore[assignment]
    text: Annotated[
        list[str] | None,
        _reading("--text", metavar="A,B,...", help="Tables: columns to read as categories, whatever their type."),
    ] = ()  # type: ignore[assignment]
    numbers: Annotated[
        list[str] | None, _reading("--numbers", metavar="A,B,...", help="Tables: text columns to read as numbers.")
    ] = ()  # type: ignore[assignment]
    categories: Annotated[
        str | None,
        _reading(
            "--categories",
            metavar="KIND",
            help="Tables: hash text, or one-hot (the model keeps a dictionary). Default: as in the model, else hash.",
        ),
    ] = None
    hash_bits: Annotated[
        int | None,
        _reading("--hash-bits", metavar="BITS", help="Hash text to 2^BITS columns. Default: 18.", min=1, max=30),
    ] = None
    interactions: Annotated[
        list[str] | None,
        _reading("--interactions", metavar="A:B,...", help="Pairs of columns or namespaces to cross, e.g. 'site:ad,user:*'."),
    ] = ()  # type: ignore[assignment]
    ngrams: Annotated[
        list[str] | None,
        _reading("--ngrams", metavar="A:N,...", help="Tables: n-grams of up to N words, e.g. 'review:2'; 2: of all text."),
    ] = ()  # type: ignore[assignment]
    bins: Annotated[
        list[str] | None,
        _reading("--bins", metavar="A:K,...", help="Tables: K bins of a number, or by edges, e.g. 'price:10,age:18:30:65'."),
    ] = ()  # type: ignore[assignment]
    missing: Annotated[
        str | None,
        _reading(
            "--missing",
            metavar="POLICY",
            help="Missing values: error, omit or indicator; or of each kind: numbers=A,categories=B. Default: as in the model, "
            "else error.",
        ),
    ] = None
    dates: Annotated[
        str | None, _reading("--dates", metavar="UNIT", help="Read dates as seconds or days since 1970. Default: refuse them.")
    ] = None
    nulls: Annotated[
        list[str] | None, _reading("--nulls", metavar="A,B,...", help="CSV: texts that mean a missing value, e.g. 'NA,?'.")
    ] = None
    delimiter: Annotated[
        str | None,
        _reading("--delimiter", metavar="TEXT", help=r"CSV: the text between two values, e.g. ';' or '\t'. Default: by name."),
    ] = None
    decimal: Annotated[
        str | None,
        _reading("--decimal", metavar="TEXT", help="CSV: what stands before decimals, a point or ','. Default: a point."),
    ] = None
    max_errors: Annotated[
        int, _reading("--max-errors", help="Skip and report up to so many wrong lines. Default: 0.", min=0)
    ] = 0


LISTS = ("features", "exclude", "text", "numbers", "interactions", "ngrams", "bins", "nulls")


def split_list(name: str, value: Any) -> Any:
    """The value of an option; one that lists names may be given several times, or have commas between them."""
    if name not in LISTS:
        return value
    return tuple(piece for item in value for piece in item.split(",")) if value else Reading._field_defaults[name]


def reads(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command``, whose last parameter is ``reading: Reading``, an option for each field of it."""
    signature, hints = inspect.signature(command), get_type_hints(Reading, include_extras=True)
    fields = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
        for name, default in Reading._field_defaults.items()
    ]

    @wraps(command)
    def run(*args: Any, **options: Any) -> None:
        reading = Reading(**{name: split_list(name, options.pop(name)) for name in Reading._fields})
        command(*args, **options, reading=reading)

    known = get_type_hints(command, include_extras=True)
    own = [parameter.replace(annotation=known[name]) for name, parameter in signature.parameters.items() if name != "reading"]
    run.__signature__ = signature.replace(parameters=[*own, *fields])  # type: ignore[attr-defined]
    del run.__annotations__["reading"], run.__wrapped__
    run.__annotations__.update(known | hints)
    return run
