"""The command line: which commands there are, in which order, and what becomes of errors.

Names, arguments and options of the commands are declared in ``app_instances``, ``app_plans``, ``app_evidence``,
``app_reports`` and ``app_ledger``; what they do stands in the modules beside. Those are imported inside the commands:
Typer declares all commands to run one of them, and neither ``--help`` nor ``list`` should wait for solvers and
Matplotlib.

Exit codes: 0 a verified plan or an answered question, 2 bad input, 3 proven infeasible, 4 nothing found within the
budget, 5 a plan failed verification, 130 interrupted.
"""

# No postponed annotations: Typer would evaluate the text of each of them several times.
import io
import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer

from mapgap import __version__
from mapgap.cli import app_evidence, app_instances, app_ledger, app_plans, app_reports

app = typer.Typer(
    name="mapgap",
    help="How far from optimal are the published mappings of neural networks onto heterogeneous edge devices?",
    epilog="Exit codes: 0 ok, 2 bad input, 3 infeasible, 4 nothing found in time, 5 a plan failed verification, "
    "130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        print(f"mapgap {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


#: In the order of ``mapgap --help``.
COMMANDS: dict[str, Callable[..., None]] = {
    "list": app_instances.list_,
    "show": app_instances.show,
    "validate": app_instances.validate,
    "expand": app_instances.expand,
    "solve": app_plans.solve,
    "check": app_plans.check,
    "explain": app_plans.explain,
    "export": app_instances.export,
    "generate": app_instances.generate,
    "schema": app_instances.schema,
    "import": app_instances.import_,
    "profile": app_instances.profile_,
    "bench": app_reports.bench,
    "certify": app_evidence.certify,
    "prove": app_evidence.prove,
    "verify": app_evidence.verify,
    "attack": app_evidence.attack,
    "report": app_reports.report,
    "study": app_reports.study,
    "pack": app_reports.pack,
    "audit": app_evidence.audit,
    "submit": app_ledger.submit,
}
for name, command in COMMANDS.items():
    app.command(name)(command)
app.add_typer(app_ledger.ledger, name="ledger")


def _interrupted(*_: Any) -> None:
    """Ctrl-C and SIGTERM between runs, and in sweeps, whose runs wait in threads."""
    from mapgap.execution.run import interrupt_all

    interrupt_all()
    raise SystemExit(130)


def _warned(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """A warning on one line of standard error; the line of source that gave it says nothing to a user."""
    from mapgap.cli.output import complain

    complain([" ".join(str(message).split())], label="warning")


def main() -> None:
    """Entry point: every error a user can cause becomes one clear message and an exit code."""
    signal.signal(signal.SIGINT, _interrupted)
    signal.signal(signal.SIGTERM, _interrupted)
    _prepare_streams()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warned
            app()
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        sys.exit(_failed(error))


def _prepare_streams() -> None:
    """Let no file that is opened later take the place of a standard stream that is closed."""
    missing = sys.stdout is None
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a locale cannot show is written as an escape
            stream.reconfigure(errors="backslashreplace")
    if missing:
        if sys.stderr is not None:
            sys.stderr.write("error: standard output: expected to be open, found closed\n")
        sys.exit(2)


def _failed(error: Exception) -> int:
    """Say what went wrong; the exit code.

    Raises
    ------
    Exception
        The error itself, if it is a mistake of this program.
    """
    from mapgap.cli.output import complain
    from mapgap.core import InputError, MapgapError, short

    if isinstance(error, MapgapError):
        complain(error.problems if isinstance(error, InputError) else [str(error)])
        return error.exit_code
    if isinstance(error, MemoryError):
        complain(["out of memory"])
    elif isinstance(error, OSError) and error.errno is not None:  # a full disk, a limit of the system, …
        place = "" if error.filename is None else f"{short(str(error.filename))}: "
        complain([f"{place}{error.strerror or error}"])
    else:
        raise error
    return 2


if __name__ == "__main__":
    main()
