"""What is said of every published number: where it is reproduced and how it is judged, or why it has no verdict.

One file per paper lies beside this module, with an entry per identifier of the paper's numbers::

    verdicts:
      hap_lo: {kind: gain, readings: {sum: "REPORT/TABLE[CONDITIONS].COLUMN FOLD", growth: "..."}}
      fig9:   {kind: range, from: ["...", "..."]}
      batch:  {none: input}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from mapgap.catalogue.files import load_model
from mapgap.core import Frozen
from mapgap.reporting.verdicts import Kind

FOLDER = Path(__file__).parent
Reason = Literal["input", "boards", "related", "unreadable", "definition", "fitted", "machine"]
REASONS: Mapping[Reason, str] = {
    "input": "an input of the experiments, which the instances take over",
    "boards": "needs the authors' boards or data",
    "related": "about somebody else's work",
    "unreadable": "printed as a curve only",
    "definition": "a definition, or follows from other printed numbers",
    "fitted": "a constant is fitted to it",
    "machine": "a search time on a machine that the paper does not name; what is counted is compared",
}
Specs = str | tuple[str, str]
"""The specification of a figure, or of both ends of a range."""


class Entry(Frozen):
    """How one published number is judged, or why it is not.

    Attributes
    ----------
    kind : str, optional
    found : str or pair of str, optional
        Written ``from``: where the number stands in the committed tables.
    readings : mapping
        The same for every reading of the paper by its name; the verdict is on the one that is kinder to the paper.
    sign : str, optional
        Of kind ``order``: the sign that the paper claims.
    none : str, optional
        A key of :data:`REASONS`.
    why : str
        More words.
    """

    kind: Kind | None = None
    found: Specs | None = Field(default=None, alias="from")
    readings: dict[str, Specs] = Field(default_factory=dict)
    sign: Literal["positive", "negative"] | None = None
    none: Reason | None = None
    why: str = ""

    @model_validator(mode="after")
    def _judged_or_not(self) -> Self:
        specs = list(self.specs().values())
        if (self.kind is None) == (self.none is None):
            raise ValueError("expected either a kind or a reason (none), found both or neither")
        if (self.kind is None) == bool(specs):
            raise ValueError("expected from or readings where there is a kind, and nowhere else")
        if (self.kind == "order") != (self.sign is not None):
            raise ValueError("expected a sign where the kind is order, and nowhere else")
        if any((self.kind == "range") != isinstance(each, tuple) for each in specs):
            raise ValueError("expected two specifications where the kind is range, one otherwise")
        return self

    def specs(self) -> dict[str, Specs]:
        """Specifications by reading; the only one is named by the empty word."""
        return ({} if self.found is None else {"": self.found}) | self.readings


class _File(Frozen):
    verdicts: dict[str, Entry]


def entries_of(paper: str, folder: Path = FOLDER) -> dict[str, Entry]:
    """The entries of a paper by identifier; none if its file is not there.

    Raises
    ------
    InputError
        Every entry that cannot be read, with file, line and field.
    """
    path = folder / f"{paper}.yaml"
    return load_model(path, _File).verdicts if path.is_file() else {}
