"""Imports between packages: the contracts of pyproject.toml hold, cover every package, and can fail."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.house.rooms import PACKAGES, ROOT, imports, modules

CONFIGURATION: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
    "importlinter"
]
CONTRACTS: list[dict[str, Any]] = CONFIGURATION["contracts"]


def lint(configuration: Path) -> subprocess.CompletedProcess[str]:
    program = (
        "import sys; from importlinter.cli import lint_imports_command; lint_imports_command()"
    )
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache", "--config", str(configuration)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )


def test_the_contracts_hold() -> None:
    done = lint(ROOT / "pyproject.toml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(CONTRACTS)} kept, 0 broken" in done.stdout


def test_a_broken_contract_is_noticed(tmp_path: Path) -> None:
    false = tmp_path / "contracts.toml"
    false.write_text(
        '[tool.importlinter]\nroot_packages = ["gcspy_protocol"]\ninclude_external_packages = true\n'
        '[[tool.importlinter.contracts]]\nname = "no numpy"\ntype = "forbidden"\n'
        'source_modules = ["gcspy_protocol"]\nforbidden_modules = ["numpy"]\n'
    )
    done = lint(false)
    assert done.returncode == 1
    assert "no numpy BROKEN" in done.stdout


def test_every_room_is_a_root_and_has_a_contract() -> None:
    assert set(CONFIGURATION["root_packages"]) == set(PACKAGES)
    sources = {
        source.partition(".")[0]
        for contract in CONTRACTS
        for source in contract.get("source_modules", [])
    }
    assert sources == set(PACKAGES) - {"gcspy"}, "gcspy, the front door, may import everything"


SHARED = {
    "gcspy_drivers.remote",
    "gcspy_drivers.cooperative",
    "gcspy_drivers.kit",
    "gcspy_drivers.native_heap",
}
"""Folders of the drivers' room that serve every driver."""


def drivers() -> set[str]:
    """Return the folders of the drivers' room that each know one runtime."""
    folders = {
        name for name in modules() if name.count(".") == 1 and name.startswith("gcspy_drivers.")
    }
    assert folders > SHARED
    return folders - SHARED


def test_every_driver_is_kept_apart_from_the_others() -> None:
    apart = next(
        set(contract["modules"]) for contract in CONTRACTS if contract["type"] == "independence"
    )
    assert apart == drivers()


@pytest.mark.parametrize("shared", sorted(SHARED))
def test_what_drivers_share_may_import_no_driver(shared: str) -> None:
    contract = next(one for one in CONTRACTS if one.get("source_modules") == [shared])
    assert drivers() - set(contract["forbidden_modules"]) == set()


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: str(contract["id"]))
def test_contracts_name_modules_that_exist(contract: dict[str, Any]) -> None:
    ours = [
        name
        for key in ("source_modules", "forbidden_modules", "modules")
        for name in contract.get(key, [])
        if name.partition(".")[0] in PACKAGES
    ]
    assert ours
    assert set(ours) <= set(modules())


def test_one_module_imports_the_plotting_library() -> None:
    """The contract names an exception; here the exception is counted, in every room."""
    named = {name: path for name, path in modules().items() if "pyqtgraph" in path.read_text()}
    found = {
        name
        for name, path in named.items()
        for _, what in imports(path)
        if what.partition(".")[0] == "pyqtgraph"
    }
    assert found == {"gcspy_client.view.panels.plot"}
