"""The commands around proofs: names, arguments and options, for :mod:`mapgap.cli.app`."""

# No postponed annotations: Typer would evaluate the text of each of them several times.
from pathlib import Path
from typing import Annotated

import typer

from mapgap.cli.app_options import Json, Objective, Problem, complete_instances, complete_methods


def certify(
    instance: Annotated[
        str, typer.Argument(help="Instance: path, name, or a glob of either", autocompletion=complete_instances)
    ],
    objective: Objective = None,
    time_limit: Annotated[float, typer.Option(min=0.001, help="Seconds per run.")] = 60.0,
    workers: Annotated[int, typer.Option(min=1, max=4096, help="Threads a solver may use.")] = 1,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="The only source of randomness.")] = 0,
    update_ledger: Annotated[bool, typer.Option("--update-ledger", help="Enter the result.")] = False,
    ledger: Annotated[Path | None, typer.Option(help="Ledger file (default: the library's).")] = None,
    json: Json = False,
) -> None:
    """Raise the certificate of an optimum: two engines that agree, and a case split."""
    from mapgap.cli import evidence
    from mapgap.core import Budget

    name = instance if objective is None else f"{instance}@{objective}"
    budget = Budget(time_limit, workers=workers, seed=seed)
    raise typer.Exit(evidence.certify(name, budget, ledger=ledger, update=update_ledger, as_json=json))


def prove(
    instances: Annotated[
        list[str], typer.Argument(help="Instances: paths, names, or globs of either", autocompletion=complete_instances)
    ],
    objective: Objective = None,
    bound: Annotated[int | None, typer.Option(help="What to prove (default: what the ledger says).")] = None,
    share: Annotated[float, typer.Option(min=0.01, max=1.0, help="Of the bound of an entry that is open.")] = 1.0,
    time_limit: Annotated[float, typer.Option(min=0.001, help="Seconds per instance.")] = 60.0,
    update_ledger: Annotated[bool, typer.Option("--update-ledger", help="Enter what was proven.")] = False,
    ledger: Annotated[Path | None, typer.Option(help="Ledger file (default: the library's).")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File or folder (default: beside the ledger's plans).")
    ] = None,
    json: Json = False,
) -> None:
    """Write certificates: files from which a small checker sees, without a solver, that no plan beats a bound."""
    from mapgap.cli import certificates
    from mapgap.core import Budget

    names = instances if objective is None else [f"{name}@{objective}" for name in instances]
    request = {"bound": bound, "share": share, "output": output, "ledger": ledger, "update": update_ledger}
    raise typer.Exit(certificates.prove(names, Budget(time_limit), as_json=json, **request))


def verify(
    certificates: Annotated[
        list[str] | None,
        typer.Argument(help="Files, names of instances, or globs of either (default: all of the library)"),
    ] = None,
    ledger: Annotated[Path | None, typer.Option(help="Ledger file (default: the library's).")] = None,
    expand: Annotated[
        bool, typer.Option("--expand", help="Compare with the library's instances, expanded anew.")
    ] = False,
    json: Json = False,
) -> None:
    """Check certificates, without a solver: proof, instance, bound, and that the ledger's plan attains it."""
    from mapgap.cli import certificates as room

    raise typer.Exit(room.verify(certificates or [], ledger=ledger, expand=expand, as_json=json))


def attack(
    problem: Problem,
    method: Annotated[
        str, typer.Option("--method", "-m", help="Published method or baseline.", autocompletion=complete_methods)
    ],
    budget: Annotated[float, typer.Option(min=1.0, help="Seconds of the whole search.")] = 300.0,
    family: Annotated[str, typer.Option(help="Random family the instances come from.")] = "small",
    objective: Objective = None,
    seed: Annotated[int, typer.Option(help="First seed of the family, and of the search.")] = 0,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the instance.")] = Path(),
    json: Json = False,
) -> None:
    """Search for the instance on which a method is worst against the certified optimum, and shrink it."""
    from mapgap.cli import evidence
    from mapgap.cli.output import to_folder

    to_folder(output)
    request = {"time_s": budget, "family": family, "seed": seed, "objective": objective, "folder": output}
    evidence.attack(problem, method, as_json=json, **request)


def audit(
    checkout: Annotated[Path, typer.Argument(help="Folder with reports/, docs/, README.md.")] = Path(),
    fill: Annotated[bool, typer.Option("--fill", help="First write the figures of README and docs anew.")] = False,
    json: Json = False,
) -> None:
    """Look at everything again that a checkout claims: ledger, committed runs, figures in README and docs."""
    from mapgap.cli import audit as room

    raise typer.Exit(room.audit(checkout, fill=fill, as_json=json))
