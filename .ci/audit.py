"""Asks advisory sources about the pinned packages: ``make audit``.

Installs pip-audit into a throw-away environment and runs it on ``constraints.txt``. It knows no
advisory itself. Exit codes: 0, nothing is known against the pins; 1, something is; 3, no source
could be asked, or not about all of them, so nothing can be said.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import install

AUDITOR = "pip-audit>=2.9,<3"
SOURCES = ("pypi", "osv")
CLEAN, VULNERABLE, UNKNOWN = 0, 1, 3
_TIMEOUT_SECS = 300


def ask(auditor: Path, source: str) -> list[dict[str, Any]]:
    """Return what one source knows of each pin, in pip-audit's own terms; empty if it cannot be asked."""
    options = ["--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
    try:
        done = subprocess.run(
            [auditor, "-r", install.CONSTRAINTS, *options, "--vulnerability-service", source],
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_SECS,
        )
        packages = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError):
        return []
    return list(packages)


def report(answers: dict[str, list[dict[str, Any]]]) -> int:
    """Print the report, and return the exit code.

    Args:
        answers: What each source says of each package.
    """
    asked: set[str] = set()
    names: set[str] = set()
    found: dict[tuple[str, str], str] = {}
    for packages in answers.values():
        for package in packages:
            names.add(package["name"])
            if "skip_reason" in package:
                continue
            asked.add(package["name"])
            for advisory in package.get("vulns", ()):
                fixed = ", ".join(advisory.get("fix_versions", ())) or "no version yet"
                found[package["name"], advisory["id"]] = f"{package['version']}; fixed in {fixed}"
    for (name, advisory), text in sorted(found.items()):
        install.say(f"{advisory}: {name} {text}")
    if not asked:
        install.say(
            f"no advisory source can be reached (tried {', '.join(answers)}): nothing is known"
        )
        return VULNERABLE if found else UNKNOWN
    unknown = sorted(names - asked)
    if unknown:
        install.say(f"no source knows {', '.join(unknown)}")
    install.say(f"{len(asked)} packages looked up, {len(found)} advisories")
    return VULNERABLE if found else UNKNOWN if unknown else CLEAN


def main() -> int:
    """Ask every source, and report."""
    with tempfile.TemporaryDirectory(prefix="gcspy-audit-") as folder:
        environment = Path(folder) / "venv"
        install.make_environment(environment)
        python = install.python_in(environment)
        if not install.pip(python, "install", AUDITOR):
            install.say(f"{AUDITOR} cannot be installed: nothing is known")
            return UNKNOWN
        auditor = python.with_name("pip-audit")
        return report({source: ask(auditor, source) for source in SOURCES})


if __name__ == "__main__":
    sys.exit(main())
