"""One module per format. What a format is declared by stands here."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType

from mapgap.core import InputError


@dataclass(frozen=True)
class Format:
    """One foreign format.

    Attributes
    ----------
    name, title : str
    module : str
        Has ``looks_like(source) -> bool`` and ``read(sources, settings) -> LayerGraph``.
    extra : str
        Extra of the package that the module needs; empty for none.
    suffix : str
        Of files that no other format claims; empty where the content tells. (Its module is then not asked.)
    """

    name: str
    title: str
    module: str
    extra: str = ""
    suffix: str = ""

    def load(self) -> ModuleType:
        """The module.

        Raises
        ------
        InputError
            A package is missing.
        """
        try:
            return importlib.import_module(self.module)
        except ModuleNotFoundError as error:
            if not self.extra or (error.name or "").partition(".")[0] == "mapgap":
                raise
            text = f"expected the package {error.name}; install it by: pip install 'mapgap[{self.extra}]'"
            raise InputError(f"{self.title}: {text}") from error
