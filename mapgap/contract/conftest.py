"""The contract's seeds and its marker, also where another package runs it."""

from __future__ import annotations

import pytest

PLUGIN = "mapgap.contract.seeds"


def pytest_configure(config: pytest.Config) -> None:
    if not config.pluginmanager.has_plugin(PLUGIN):
        config.pluginmanager.import_plugin(PLUGIN)
