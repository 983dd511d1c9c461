"""The drivers open the files that a target names in one place; every other opening of a path is listed here, with the reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.house.rooms import PACKAGES, parsed

DRIVERS = PACKAGES["gcspy_drivers"]

OPENING = {
    "open", "os.open", "io.open", "io.FileIO", "os.stat", "os.lstat", "os.readlink", "os.listdir", "os.scandir", "os.walk", "os.access",
    "os.unlink", "os.remove", "os.rename", "os.replace", "os.mkdir", "os.makedirs", "os.rmdir", "os.link", "os.symlink", "os.truncate",
    "os.mkfifo", "os.utime", "os.path.exists", "os.path.isfile", "os.path.isdir", "os.path.realpath", "mmap.mmap", "subprocess.run",
    "subprocess.Popen", "read_text", "read_bytes", "write_text", "write_bytes", "iterdir", "glob",
}  # fmt: skip
"""Calls that open a path, or inspect or change the file behind it."""

NEVER = {"os.chmod", "os.chown", "os.lchown", "os.system", "os.umask", "chmod", "lchmod", "chown"}
"""Calls that no driver needs: the owner and the mode of a file are set when it is made."""

REASONS = {
    "cooperative/line.py": "a sealed page of memory",
    "cooperative/ring_buffer.py": "a sealed memory",
    "cpython/driver.py": "the script that the user names to gcspy run, with the user's own rights",
    "cpython/cooperation/bootstrap.py": "runs in the target",
    "cpython/cooperation/stub.py": "runs in the target",
    "cpython/cooperation/gdb_call.py": "gdb, which is told to open nothing of the target's, and our own Python",
    "cpython/cooperation/injection.py": "its own stub",
    "cpython/counting/package.py": "our own package",
    "cpython/graph/memory_copy.py": "/proc/PID/pagemap",
    "cpython/target.py": "/proc/meminfo",
    "hotspot/agent/agent_library.py": "our own libraries",
    "hotspot/agent/attach_protocol.py": "makes a new file with the rights of the target's user",
    "hotspot/counting/counting_agent.py": "our own library, and the kernel's name of a name space",
    "hotspot/counting/site_files.py": "a folder that we made",
    "published/allocator_library.py": "a compiler, of our own sources",
    "published/control_page.py": "a sealed page, and the kernel's own list of descriptors",
    "remote/files.py": "is the place",
    "remote/handover.py": "makes new files with the rights of the target's user",
    "remote/leftover_folders.py": "our own folders, below open ones and with the rights of the target's user",
    "remote/process.py": "the kernel's own files",
    "remote/sockets.py": "looks at names in open folders, and follows none",
    "remote/pages/mirror.py": "our own memory, without a file",
    "remote/pages/protection.py": "the kernel's name of a descriptor",
    "remote/pages/referenced_memory.py": "the kernel's own files",
    "remote/pages/soft_dirty.py": "the kernel's own files",
    "remote/pages/trial.py": "memory without a file",
    "remote/pages/unprepared_process.py": "our own library",
    "remote/process_hold.py": "the kernel's own files",
    "remote/run_delay.py": "the kernel's own files",
}


def calls(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and name of what a file calls: whole, and its last part alone for methods."""
    for node in ast.walk(parsed(path.read_text())):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            yield node.lineno, name
            if isinstance(node.func, ast.Attribute) and not name.startswith(("os.", "self.")):
                yield node.lineno, node.func.attr


def attached() -> list[Path]:
    """Return the modules that work with processes; traces and simulated programs are the user's own."""
    folders = ("boehm", "cooperative", "cpython", "hotspot", "published", "remote")
    return sorted(path for folder in folders for path in (DRIVERS / folder).rglob("*.py"))


def test_no_driver_opens_a_path_by_itself() -> None:
    found = [
        (str(path.relative_to(DRIVERS)), line, name)
        for path in attached()
        for line, name in calls(path)
    ]
    assert [one for one in found if one[2] in NEVER] == []
    opening = [one for one in found if one[2] in OPENING and one[0] not in REASONS]
    assert opening == [], "gcspy_drivers.remote.files opens what a target names"


def test_each_reason_is_of_a_file_that_needs_it() -> None:
    for name in REASONS:
        assert [one for one in calls(DRIVERS / name) if one[1] in OPENING], f"{name} opens nothing"


def test_a_path_that_is_opened_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("import os\nos.chmod(a, 1)\nopen(b)\nPath(c).read_text()\n")
    found = {name for _, name in calls(tmp_path / "one.py")}
    assert "os.chmod" in found & NEVER
    assert {"open", "read_text"} <= found & OPENING
