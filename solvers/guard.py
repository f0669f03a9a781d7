"""Releases of engines that are known to prove what is not so."""

from __future__ import annotations

from importlib.metadata import version

from mapgap.core import MapgapError

KNOWN_BAD = {
    "ortools": {"9.15": "presolve gives wrong answers on rows beyond 2^31 (google/or-tools issue 5293)"},
    "highspy": {
        "1.14": "presolve gives suboptimal plans as optimal on mixed models (ERGO-Code/HiGHS issues 3043, 3073, 3094)"
    },
}


class GuardError(MapgapError):
    """The model or the engine's version is outside what has been verified to give right answers."""


def check_version(package: str, found: str | None = None) -> None:
    """Refuse a release that is known to return wrong answers.

    Raises
    ------
    GuardError
        Names package, release and what is wrong with it.
    """
    release = found or version(package)
    reason = KNOWN_BAD[package].get(".".join(release.split(".")[:2]))
    if reason is not None:
        raise GuardError(f"{package} {release}: expected a release that mapgap is pinned to; its {reason}")
