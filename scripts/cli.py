"""The command ``trncore``.

Exit status 0: success.  1: a comparison or check failed.  2: the input is bad; one line on stderr says
what is wrong and what was expected.
"""

import importlib
import sys

import click

__all__ = ["main"]

COMMANDS = ("gemm", "demo", "run", "export", "verify", "configs", "bench", "scale")
EXIT_FAILED, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 1, 2, 130


class _Commands(click.Group):
    """Loads the module of a command when it is asked for."""

    def list_commands(self, ctx):
        return list(COMMANDS)

    def get_command(self, ctx, name):
        if name not in COMMANDS:
            return None
        return importlib.import_module(f"scripts.commands.{name}").command


@click.group(cls=_Commands, no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="trncore")
def trncore():
    """A tensor core of the Trainium kind: run it, check it, export it.

    \b
    Example:
      trncore gemm A.npy B.npy -o D.npy
    """


def main(arguments=None):
    """Run the command line and exit.

    Parameters
    ----------
    arguments : list of str, optional
        Default: those of the process.

    Raises
    ------
    SystemExit
        Always.  The project's own errors become one line on stderr: ``ValueError``, ``TypeError`` and
        ``OSError`` say that the input is bad, ``RuntimeError`` and ``AssertionError`` that a run or a
        check failed.
    """
    try:
        status = trncore.main(arguments, prog_name="trncore", standalone_mode=False)
    except click.Abort:
        sys.exit(EXIT_INTERRUPTED)
    except click.ClickException as error:
        _fail(EXIT_BAD_INPUT, error.format_message())
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(EXIT_BAD_INPUT, f"{where}{error.strerror or error}")
    except (ValueError, TypeError) as error:
        _fail(EXIT_BAD_INPUT, error)
    except (RuntimeError, AssertionError) as error:
        _fail(EXIT_FAILED, error)
    sys.exit(status if isinstance(status, int) else 0)


def _fail(status, message):
    message = str(message)
    if status == EXIT_BAD_INPUT:
        message = " ".join(message.split())
    print("trncore:", message, file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()
