"""The library of a problem of the house: modules and functions have the same names in every folder."""

from __future__ import annotations

from pathlib import Path

from mapgap.core import Library


def house_library(
    problem: str,
    *families: str,
    boards: bool = False,
    preferring: bool = False,
    climbing: bool = False,
    compiled: str | None = None,
) -> Library:
    """The library whose parts lie in ``instances/<problem>``.

    Parameters
    ----------
    problem : str
    families : str
        Functions of ``families.py``.
    boards : bool
        Whether ``importing.py`` knows boards that a cluster file can name.
    preferring : bool
        Whether ``formulations/<problem>/within.py`` looks for simpler plans within the spread of what was measured.
    climbing : bool
        Whether ``formulations/<problem>/certificate.py`` raises bounds that are proven as long as there is time.
    compiled : str, optional
        The module of ``formulations/<problem>`` that has ``cases`` with compiled loops.
    """
    here = f"mapgap.instances.{problem}"
    return Library(
        problem,
        folder=Path(__file__).parent / problem / "library",
        compact=f"{here}.compact:Compact",
        expansion=f"{here}.compact:expand",
        families={family: f"{here}.families:{family}" for family in families},
        splitting=f"{here}.cases:cases",
        shrinking=f"{here}.cases:shrink",
        sampling=f"{here}.families:random_plan",
        relating=f"{here}.relations:relations",
        proving=f"mapgap.formulations.{problem}.certificate:prove",
        climbing=f"mapgap.formulations.{problem}.certificate:climb" if climbing else None,
        compiled=compiled and f"mapgap.formulations.{problem}.{compiled}:cases",
        carrying=f"{here}.relations:carried",
        implying=f"{here}.relations:implied",
        importing=f"{here}.importing:build",
        boards=f"{here}.importing:library" if boards else None,
        preferring=f"mapgap.formulations.{problem}.within:preferred" if preferring else None,
    )
