"""The command line: which commands there are, in which order, and what becomes of errors.

A command is a typed function: its parameters are the command's, its result is the exit code (``None`` for 0). Its
module is imported when it is run, or when somebody asks for its options: neither ``--help`` nor ``list`` should wait
for solvers and Matplotlib.

Exit codes: 0 a verified plan or an answered question, 2 bad input, 3 proven infeasible, 4 nothing found within the
budget, 5 a plan failed verification, 130 interrupted.
"""

# No postponed annotations: Typer would evaluate the text of each of them several times.
import gc
import io
import os
import signal
import sys
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command_from_info
from typer.models import CommandInfo

from mapgap import __version__

#: By panel of ``mapgap --help``, the function of each command and what the command does.
COMMANDS: Mapping[str | None, Mapping[str, str]] = {
    "Solve": {
        "catalogue:list_": "List problems, methods and library instances.",
        "catalogue:show": "Describe an instance, a method or a problem.",
        "solve:solve": "Solve an instance; every plan is verified by the evaluator. Ctrl-C keeps and prints the "
        "incumbent.",
        "plans:check": "Evaluate a plan: its objective and every rule it breaks.",
        "plans:explain": "Say why a plan is not better: what binds, what more hardware would bring, which decisions "
        "cost how much.",
        "plans:export": "Write the integer program of an instance for another solver; check --solution reads its "
        "answer.",
    },
    "Your own model": {
        "imports:import_": "Make an instance of your own model and profile: ONNX, ONNX Runtime, TensorRT, language "
        "models, and files of published planners.",
        "imports:profile": "Measure the layers of an ONNX model on this machine with ONNX Runtime.",
        "catalogue:validate": "Check instance files; every error with file, line and column.",
        "catalogue:expand": "Write the expanded form: the integers that every method sees.",
        "catalogue:generate": "Write random instances of a family.",
        "catalogue:schema": "Print the JSON Schema of instance or plan files, for editors.",
    },
    "Run": {
        "clock:split": "Cut an ONNX model into the stages of a plan: a model per stage, and a manifest.",
        "clock:run": "Run a plan with a process per board, emulated or with ONNX Runtime, and compare the clock with "
        "the model.",
        "clock:board": "Be a board of a run: listen, with a token.",
        "clock:calibrate": "Put the times and bandwidths that a run measured back into the instance.",
    },
    "Benchmark": {
        "reports:bench": "Run a sweep: any methods on any instances under one budget; one JSON line per run, "
        "resumable.",
        "reports:report": "Make tables, figures and one HTML page from runs, against the best-known results.",
        "reports:study": "Run or resume a committed study, write its page and pack its runs.",
        "evidence:attack": "Search for the instance on which a method is worst against the certified optimum, and "
        "shrink it.",
    },
    "Evidence": {
        "certificates:certify": "Write certificates: files from which a small checker sees, without a solver, that "
        "no plan beats a bound, or that there is none. --agree asks two engines instead.",
        "certificates:verify": "Check certificates, without a solver: proof, instance, bound, and that the ledger's "
        "plan attains it.",
        "ledger:submit": "Check somebody else's plan or certificate, and enter it into the ledger if it is better.",
        "reports:audit": "Look at everything again that a checkout claims: ledger, committed runs, figures in README "
        "and docs.",
    },
    "Maintain": {
        "catalogue:plugins": "Say which packages announce problems and methods, what is loaded, and why not.",
        "reports:pack": "Make the pages of reports anew from their runs, pack these, and keep nothing else that can "
        "be made anew.",
    },
}
LEDGER = {
    "ledger:show": "What is known of an instance, and how it came about.",
    "ledger:history": "Who improved what, and when.",
    "ledger:close": "Pass plans and bounds on between instances that imply each other.",
    "ledger:rebuild": "Make the ledger's file and plans anew from its journal.",
}
ARENA = {
    "arena:export": "Write a folder for OpenEvolve and SkyDiscover: program, evaluator, certified ceilings.",
    "arena:score": "Score a program on fresh instances against the published heuristic and the certified ceiling.",
    "arena:verify": "Recompute a score from its plans; one above its ceiling is refused.",
}


class Lazy(TyperCommand):
    """A command whose function is imported for its parameters, or to be run; before, only its help is known."""

    def __init__(self, home: str, **told: Any) -> None:
        super().__init__(**told)
        self._home = home
        del self.params, self.callback

    def __getattr__(self, name: str) -> Any:
        if name not in ("params", "callback"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        from mapgap.core import resolve

        info = CommandInfo(self.name, callback=resolve(f"mapgap.cli.{self._home}"))
        made = get_command_from_info(info, pretty_exceptions_short=False, rich_markup_mode=self.rich_markup_mode)
        self.params, self.callback = made.params, made.callback
        return getattr(self, name)


def declared(panels: Mapping[str | None, Mapping[str, str]], **about: Any) -> typer.Typer:
    """A group of commands by panel, each of the name of its function."""
    group = typer.Typer(no_args_is_help=True, **about)
    for panel, commands in panels.items():
        for home, text in commands.items():
            name, lazy = home.partition(":")[2].rstrip("_"), partial(Lazy, home)
            group.command(name, cls=lazy, help=text, rich_help_panel=panel)(lambda: None)  # type: ignore[arg-type]
    return group


def _exit(code: int | None, **_: Any) -> None:
    raise typer.Exit(code or 0)


app = declared(
    COMMANDS,
    name="mapgap",
    help="How far from optimal are the published mappings of neural networks onto heterogeneous edge devices?",
    epilog="Exit codes: 0 ok, 2 bad input, 3 infeasible, 4 nothing found in time, 5 a plan failed verification, "
    "130 interrupted.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    result_callback=_exit,
)
_OLD: Any = partial(Lazy, "certificates:certify")
app.command("prove", cls=_OLD, help="The old name of certify.", hidden=True)(lambda: None)
app.add_typer(
    declared({None: LEDGER}, help="The best-known ledger: what it holds, who found it, what follows."),
    name="ledger",
    rich_help_panel="Evidence",
)
app.add_typer(
    declared({None: ARENA}, help="Heuristics of anybody, machines included, against certified ceilings."),
    name="arena",
    rich_help_panel="Benchmark",
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


def _interrupted(*_: Any) -> None:
    """Ctrl-C and SIGTERM between runs, and in sweeps, whose runs wait in threads."""
    from mapgap.core.errors import Interrupted
    from mapgap.execution.run import interrupt_all

    interrupt_all()
    raise Interrupted(130)


def _warned(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """A warning on one line of standard error; the line of source that gave it says nothing to a user."""
    from mapgap.cli.output import complain

    complain([" ".join(str(message).split())], label="warning")


def main() -> None:
    """Entry point: every error a user can cause becomes one clear message and an exit code."""
    signal.signal(signal.SIGINT, _interrupted)
    signal.signal(signal.SIGTERM, _interrupted)
    _prepare_streams()
    # Instances and certificates are trees of small objects; to look for cycles after every 700 of these takes time.
    gc.set_threshold(100_000)
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
        complain(
            [f"{place}{error.strerror or error}" if _somewhere() else "the working folder: expected one that exists"]
        )
    else:
        raise error
    return 2


def _somewhere() -> bool:
    """Whether the working folder exists."""
    try:
        os.getcwd()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
