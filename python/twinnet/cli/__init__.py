"""The command line. Exit status: 0 done, 1 the work failed, 2 wrong usage.

Nothing is imported here but what `--help` needs; each command's module is loaded when the command is called.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Sequence

__all__ = ["main"]

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``twinnet`` with `arguments` (default: those of the process) and end the process."""
    _open_closed_streams()
    _speak_utf8()
    sys.exit(run(arguments))


def _open_closed_streams() -> None:
    """Have ``/dev/null`` where the caller has closed a standard stream (``>&-``): a file that is opened later would get
    its number, and what is printed."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is this one.
            opened = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(opened, True)
            setattr(sys, name, os.fdopen(opened, "r" if number == 0 else "w", encoding="utf-8"))


def _speak_utf8() -> None:
    """Where the locale has only ASCII (``LC_ALL=C``), go on in Python's UTF-8 mode, as Python does by itself unless it
    is told not to: names of files have other letters all the same."""
    if not sys.flags.utf8_mode and codecs.lookup(sys.getfilesystemencoding()).name == "ascii":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            # A locale that lacks a letter, or a name that is no text.
            stream.reconfigure(errors="backslashreplace")


def run(arguments: Sequence[str] | None = None) -> int:
    """Run ``twinnet`` with `arguments` and return its exit status; every error is one line on stderr."""
    import click

    from twinnet.cli.group import cli
    from twinnet.errors import TwinnetError, UsageError
    from twinnet.shown_text import showing

    outputs = sys.stdout, sys.stderr
    # What others have written steers no terminal, whichever command prints it.
    sys.stdout, sys.stderr = showing(sys.stdout), showing(sys.stderr)
    try:
        given = list(arguments) if arguments is not None else None
        status = cli.main(args=given, prog_name="twinnet", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.ClickException as error:
        from twinnet.cli.wrong_usage import remedy

        context = getattr(error, "ctx", None)
        if context is not None and error.message == context.get_help():
            # A group without a command: its help, as it is.
            click.echo(error.message, err=True)
            return error.exit_code
        hints = [remedy(error, sys.argv[1:] if arguments is None else arguments)]
        hints += [f"see {context.command_path} --help"] if context is not None else []
        hint = "; ".join(filter(None, hints))
        return _tell(error.format_message() + (f" ({hint})" if hint else ""), error.exit_code)
    except UsageError as error:
        return _tell(str(error), 2)
    except TwinnetError as error:
        return _tell(str(error), 1)
    except (KeyboardInterrupt, click.Abort):
        return _tell("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has left (`twinnet labs | head`): nobody is there to read it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    finally:
        sys.stdout, sys.stderr = outputs


def _tell(message: str, status: int) -> int:
    from twinnet.report.text_table import terminal_columns, wrapped

    columns = terminal_columns(sys.stderr)
    for line in message.splitlines() or [""]:
        sys.stderr.write(wrapped(f"twinnet: {line}", columns) + "\n")
    return status
