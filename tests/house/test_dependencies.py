"""All imported packages are declared, all declared packages are pinned, and no pin names its source."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import distribution, entry_points, packages_distributions
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gcspy_server.driver_recognition import RECOGNITION_GROUP
from tests.house.rooms import PACKAGES, ROOT, exports, imports, modules, needs_qt

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
PIN = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+]+")
ENVIRONMENT = {
    "python_version": "3.11",
    "python_full_version": "3.11.0",
    "sys_platform": "linux",
    "extra": "",
}


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    found = [line for line in lines if line and not line.startswith("#")]
    assert all(PIN.fullmatch(line) for line in found), (
        "a pin is a name, == and a version; nothing else"
    )
    return {
        canonicalize_name(name): version
        for name, _, version in (line.partition("==") for line in found)
    }


def requirements(texts: list[str]) -> list[Requirement]:
    return [Requirement(text) for text in texts if not text.startswith("gcspy-heap[")]


def applies(marker: Marker | None) -> bool:
    return marker is None or marker.evaluate(ENVIRONMENT)


def test_every_declared_dependency_is_pinned_to_a_version_it_allows() -> None:
    declared = requirements(
        [
            *PROJECT["dependencies"],
            *EXTRAS["gui"],
            *EXTRAS["export"],
            *EXTRAS["fast"],
            *EXTRAS["objects"],
            *EXTRAS["test"],
            *EXTRAS["dev"],
        ]
    )
    pinned = pins()
    for requirement in declared:
        if applies(requirement.marker):
            version = pinned[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version), f"{requirement} is pinned to {version}"


def test_what_the_pinned_packages_need_is_pinned_too() -> None:
    pinned = pins()
    for name in pinned:
        for text in distribution(name).requires or []:
            requirement = Requirement(text)
            if applies(requirement.marker):
                version = pinned[canonicalize_name(requirement.name)]
                assert requirement.specifier.contains(version), (
                    f"{name} needs {requirement}, pinned is {version}"
                )


@pytest.mark.parametrize("version", ["6.12.0", "6.12.1"])
def test_the_qt_that_aborts_python_3_11_is_excluded_there(version: str) -> None:
    allowed = [
        one
        for one in requirements(EXTRAS["gui"])
        if one.name == "PySide6-Essentials" and applies(one.marker)
    ]
    assert len(allowed) == 1
    assert not allowed[0].specifier.contains(version)


@pytest.mark.parametrize(
    "file",
    [
        "constraints.txt",
        "constraints.lock",
        "pyproject.toml",
        "Makefile",
        ".ci/run",
        ".ci/install.py",
        ".ci/lock.py",
    ],
)
def test_no_file_that_installs_names_a_package_index(file: str) -> None:
    text = (ROOT / file).read_text()
    text = text.replace('"--find-links", folder', "")  # of files that were compared with the lock
    assert not re.search(
        r"--(extra-)?index-url|--find-links|--trusted-host|\bpypi|https?://", text, re.IGNORECASE
    )


def test_the_base_install_has_no_qt() -> None:
    names = {
        canonicalize_name(requirement.name) for requirement in requirements(PROJECT["dependencies"])
    }
    assert not names & {"pyside6-essentials", "pyside6", "shiboken6", "pyqtgraph", "pytest-qt"}


@cache
def providers() -> dict[str, set[str]]:
    """Return which distributions bring a package, by the package's name; asking reads the files of all that are installed."""
    return {
        name: {canonicalize_name(one) for one in found}
        for name, found in packages_distributions().items()
    }


MODULES = modules()


def undeclared(module: str) -> list[str]:
    """Return what a module imports that pyproject.toml does not declare for it."""
    extras = (EXTRAS["gui"] if needs_qt(module) else []) + (
        EXTRAS["export"] if exports(module) else []
    )
    compiling = {"gcspy_compiled.machine_code"}
    extras += EXTRAS["fast"] if module in compiling else []
    extras += EXTRAS["objects"] if module.startswith("gcspy_objects.analysis.") else []
    tables = {
        "gcspy.fleet.feature_table",
        "gcspy.fleet.stored_features",
        "gcspy.objects.access_files",
    }
    extras += EXTRAS["export"] if module in tables else []
    extras += EXTRAS["metrics"] if module == "gcspy.metrics.prometheus_endpoint" else []
    extras += EXTRAS["otlp"] if module == "gcspy.metrics.otlp_push" else []
    extras += EXTRAS["dask"] if module == "gcspy.fleet.dask_engine" else []
    extras += EXTRAS["storage"] if module.startswith("gcspy.storage.") else []
    declared = requirements(PROJECT["dependencies"] + extras)
    names = {canonicalize_name(requirement.name) for requirement in declared}
    known = set(sys.stdlib_module_names) | set(PACKAGES)
    return [
        f"{module} line {line}: {name}"
        for line, name in imports(MODULES[module])
        if (top := name.partition(".")[0]) not in known and not names & providers().get(top, set())
    ]


def test_a_room_imports_only_what_is_declared() -> None:
    assert [each for module in MODULES for each in undeclared(module)] == []


BLOCK_QT = "import sys; sys.modules.update(dict.fromkeys(['PySide6', 'shiboken6', 'pyqtgraph'])); import importlib; "


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_but_the_window_imports_without_qt() -> None:
    names = [name for name in modules() if not needs_qt(name) and not name.endswith("__main__")]
    run(BLOCK_QT + f"[importlib.import_module(name) for name in {names!r}]")


def test_the_command_line_loads_neither_qt_nor_a_server_before_it_needs_them() -> None:
    loaded = run(
        "import sys, gcspy.cli; print(' '.join(name.partition('.')[0] for name in sys.modules))"
    ).split()
    assert "gcspy_protocol" in loaded
    assert not {"PySide6", "shiboken6", "pyqtgraph", "trio", "gcspy_server", "gcspy_drivers"} & set(
        loaded
    )


WITHOUT_WORK = """
import contextlib, io, sys
from gcspy import cli
lines = [["--help"], ["--version"], ["nonsense"], ["--nonsense"]]
for name in cli.gcspy.list_commands(None):
    lines += [[name, "--help"], [name, "--nonsense"]]
    group = cli.gcspy.get_command(None, name)
    lines += [[name, one, word] for one in getattr(group, "list_commands", lambda _: ())(None) for word in ("--help", "--nonsense")]
lines += [["tail"], ["record", "1"], ["record", "1", "-o", "f", "--split-size", "1"], ["screenshot", "1"]]
for line in lines:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = cli.main(line)
    assert code in (0, 2), (line, code)
    heavy = set(sys.modules) & set(sys.argv[1:])
    assert not heavy, f"gcspy {' '.join(line)} loads {heavy}"
"""


def test_help_and_a_wrong_command_line_load_nothing_heavy() -> None:
    heavy = [
        "numpy",
        "trio",
        "PySide6",
        "shiboken6",
        "pyqtgraph",
        "rich",
        "psutil",
        "msgpack",
        *(
            f"gcspy_drivers.{driver}.{module}"
            for driver in ("cpython", "hotspot")
            for module in ("driver", "passive_driver", "discovery")
        ),
        "gcspy_drivers.kit",
        "gcspy_drivers.remote",
    ]
    command = [sys.executable, "-c", WITHOUT_WORK, *heavy]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


HELP = "import sys; from gcspy.cli import main; assert main(['--help']) == 0; print(*sys.modules)"


def test_the_list_of_commands_imports_no_command() -> None:
    loaded = run(HELP).split("Exit codes:")[1].split()
    assert "gcspy.cli" in loaded
    assert [name for name in loaded if name.startswith("gcspy.commands.")] == []
    unneeded = {"numpy", "psutil", "importlib.metadata", "logging", "socket", "secrets"}
    assert not unneeded & set(loaded)


LIST = """
import os, subprocess, sys, time
from gcspy.connection.process_list import list_processes
with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
    while not (found := [one for one in list_processes(below=os.getpid()) if one.watchable]):
        time.sleep(0.05)
    child.stdin.close()
assert [(one.pid, one.driver) for one in found] == [(child.pid, "cpython")]
assert {option["name"] for option in found[0].options} == {"ages", "inject", "mode", "accesses", "count", "count-in", "count-hot"}
print(*sys.modules)
"""


def test_a_list_of_processes_loads_no_driver_and_no_server() -> None:
    if not entry_points(group=RECOGNITION_GROUP):
        pytest.skip("installed from an older pyproject.toml, without recognisers: run make")
    loaded = set(run(LIST).split())
    assert "gcspy_drivers.cpython.recognition" in loaded
    heavy = {
        *("trio", "PySide6", "rich", "msgpack", "numba", "numpy", "elftools"),
        *("gcspy_server.api", "gcspy_server.server", "gcspy_protocol.messages"),
        *(f"gcspy_drivers.{driver}.driver" for driver in ("cpython", "hotspot")),
        *(f"gcspy_drivers.{driver}.passive_driver" for driver in ("cpython", "hotspot")),
        "gcspy_drivers.hotspot.vm.jvm",
        "gcspy_drivers.kit.sampled_driver",
    }
    assert not heavy & loaded
