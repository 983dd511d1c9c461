"""The commands on real processes: what they print, and that the target never notices."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path
from uuid import uuid4

import pytest

from benchmarks.targets.busy_target import BusyTarget
from gcspy.exit_codes import ExitCode
from gcspy.output import share_lines as sharing
from tests.cli.conftest import Run
from tests.unknown_process import unknown_process
from tests.waiting import PATIENCE_SECS, wait_until


def test_ps_lists_a_python_process_with_its_driver(busy_target: BusyTarget, gcspy: Run) -> None:
    done = gcspy("ps", "--json")
    assert done.returncode == ExitCode.OK, done.stderr
    (row,) = [row for row in json.loads(done.stdout) if row["pid"] == busy_target.pid]
    assert (row["runtime"], row["driver"], row["watchable"]) == ("CPython", "cpython", True)
    assert row["version"].startswith(f"{sys.version_info[0]}.{sys.version_info[1]}.")


def test_ps_finds_by_pattern_and_prints_a_table(busy_target: BusyTarget, here: Run) -> None:
    done = here("ps", "heap_target.py")
    assert str(busy_target.pid) in done.stdout
    assert "CPython" in done.stdout
    assert here("ps", "no such command line").stdout.startswith("no process can be monitored")


@pytest.mark.parametrize(("columns", "kept"), [(80, 7), (200, 9)])
def test_ps_keeps_its_columns_in_a_terminal_however_long_a_command_line_is(
    columns: int, kept: int
) -> None:
    words = uuid4().hex + "x" * 3000  # other runs of these tests have other words
    with subprocess.Popen(
        [sys.executable, "-c", "print(1, flush=True); input()", words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as target:
        assert target.stdout is not None
        target.stdout.readline()
        printed = in_terminal(columns, "ps", "--all", words[:100])
        target.kill()
    header, row = printed.splitlines()[:2]
    names = ["PID", "PARENT", "USER", "RUNTIME", "VERSION", "RSS", "AGE", "DRIVERS", "MODES"]
    assert header.split()[:kept] == names[:kept]
    assert row.split()[:2] == [str(target.pid), str(os.getpid())]
    assert "CPython" in row
    assert " MB " in row
    assert all(len(line) <= columns for line in printed.splitlines())


def in_terminal(columns: int, *arguments: str) -> str:
    """Return a command's output to a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    with subprocess.Popen(
        [sys.executable, "-m", "gcspy", *arguments], stdout=theirs, env=environment
    ) as command:
        os.close(theirs)
        found = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:  # its end: all of it was read
                break
            if not more:
                break
            found += more
        command.wait()
    os.close(ours)
    return found.decode()


def test_ps_lists_what_has_the_name_of_a_runtime_with_the_reason_and_its_parent(
    gcspy: Run, tmp_path: Path
) -> None:
    program = tmp_path / "pypy3"
    shutil.copy("/bin/sleep", program)
    with (
        subprocess.Popen([program, "600"]) as with_malloc,
        unknown_process(tmp_path, "pypy3.10") as without,
    ):
        try:
            rows = json.loads(gcspy("ps", "--json").stdout)
        finally:
            with_malloc.kill()
    (row,) = [row for row in rows if row["pid"] == without]
    assert (row["runtime"], row["watchable"], row["parent"]) == ("PyPy", False, os.getpid())
    assert "another way than CPython" in row["why_not"]
    assert row["ancestors"][0] == os.getpid()
    (row,) = [row for row in rows if row["pid"] == with_malloc.pid]
    assert (row["runtime"], row["watchable"]) == ("glibc malloc", True)
    assert "another way than CPython" in row["detail"]


def test_ps_does_not_list_gcspy_itself_unless_asked(busy_target: BusyTarget, gcspy: Run) -> None:
    command = [sys.executable, "-m", "gcspy", "attach", str(busy_target.pid), "--no-window"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        try:
            listed = {row["pid"] for row in json.loads(gcspy("ps", "--json").stdout)}
            everything = json.loads(gcspy("ps", "--json", "--all").stdout)
        finally:
            server.terminate()
    assert busy_target.pid in listed
    assert server.pid not in listed
    assert [row["own"] for row in everything if row["pid"] == server.pid] == [True]


def test_ps_lists_what_is_below_a_process_and_nothing_else(
    busy_target: BusyTarget, gcspy: Run
) -> None:
    source = "import os; os.fork(); os.write(1, b'%d\\n' % os.getpid()); input()"
    with subprocess.Popen(
        [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        both = {int(parent.stdout.readline()), int(parent.stdout.readline())}
        rows = json.loads(gcspy("ps", "--json", "--below", str(parent.pid)).stdout)
        ours = json.loads(gcspy("ps", "--json", "--below", str(os.getpid())).stdout)
        parent.communicate("\n\n")
    assert {row["pid"] for row in rows} == both - {parent.pid}
    assert {row["pid"] for row in ours} >= both | {busy_target.pid}
    assert all(os.getpid() in row["ancestors"] for row in ours)


def test_ps_watch_tells_what_comes_and_goes_until_its_input_ends() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "gcspy", "ps", "--watch"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as watch:
        assert watch.stdout is not None
        assert watch.stdin is not None
        lines = (json.loads(line) for line in watch.stdout)
        next(line for line in lines if "round" in line)
        with subprocess.Popen(
            [sys.executable, "-c", "print(1, flush=True); input()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as target:
            row = next(line for line in lines if line.get("pid") == target.pid and line["looked"])
            assert row["watchable"]
            assert row["started"] > 1e9
            target.kill()
        next(line for line in lines if line.get("gone") == target.pid)
        watch.stdin.close()
        assert all("round" in line or "pid" in line or "gone" in line for line in lines)
    assert watch.returncode == ExitCode.OK


def test_tail_prints_one_json_object_an_event(busy_target: BusyTarget, gcspy: Run) -> None:
    done = gcspy(
        "tail", str(busy_target.pid), "--events", "3", "--json", "--values", "--clock", "50"
    )
    assert done.returncode == ExitCode.OK, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(events) == 3
    assert [event["sequence"] for event in events] == sorted(event["sequence"] for event in events)
    for event in events:
        assert event["event"] in ("Clock", "Collections")
        assert event["acts_on"] == "sampling"
        names = [space["name"] for space in event["spaces"]]
        assert names == [
            "pymalloc arenas",
            "Size classes",
            "Whole arenas",
            "GC generations",
            "Process memory",
            "Memory over time",
        ]
        for space in event["spaces"]:
            for stream in space["streams"]:
                assert len(stream["values"]) == space["tiles"]
    arenas, classes = events[-1]["spaces"][:2]
    in_arenas = next(s for s in arenas["streams"] if s["name"] == "Blocks in use")["summary"]
    in_classes = next(s for s in classes["streams"] if s["name"] == "Blocks in use")["summary"]
    assert in_arenas == in_classes, "both are sums over the same pools of the same reading"
    assert busy_target.advances()


def test_tail_prints_text_for_people(busy_target: BusyTarget, here: Run) -> None:
    done = here("tail", str(busy_target.pid), "--events", "1")
    assert done.returncode == ExitCode.OK, done.stderr
    first, *rest = done.stdout.splitlines()
    assert first.startswith(("Clock #", "Collections #"))
    spaces, infos = rest[:6], rest[6:]
    names = (
        "pymalloc arenas",
        "Size classes",
        "Whole arenas",
        "GC generations",
        "Process memory",
        "Memory over time",
    )
    assert [line.strip().startswith(name) for line, name in zip(spaces, names, strict=True)] == [
        True
    ] * len(names)
    # A space's description is reported once.
    assert all(line.strip().startswith(names) for line in infos), infos
    assert len(infos) <= len(names)


def test_types_looks_once_and_tells_of_which_types_the_objects_are(
    busy_target: BusyTarget, here: Run
) -> None:
    done = here("types", str(busy_target.pid), "--json", "--top", "5")
    assert done.returncode == ExitCode.OK, done.stderr
    found = json.loads(done.stdout)
    sizes = [row["bytes"] for row in found["rows"]]
    assert len(sizes) == 5
    assert sizes == sorted(sizes, reverse=True)
    assert all(row["objects"] > 0 for row in found["rows"])
    assert found["rest"]["rows"] > 0
    text = here("types", str(busy_target.pid), "--top", "3").stdout.splitlines()
    assert text[1].split()[:3] == ["Type", "Objects", "Bytes"]
    assert text[5].startswith(
        "("
    )  # three rows, then the others; what was in motion may be noted below
    assert Path(f"/proc/{busy_target.pid}").is_dir()


def test_ctrl_c_ends_tail_and_leaves_the_target_running(
    busy_target: BusyTarget, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-m", "gcspy", "tail", str(busy_target.pid), "--json"],
        stdout=subprocess.PIPE,
        text=True,
    ) as tail:
        assert tail.stdout is not None
        assert tail.stdout.readline().startswith("{")
        tail.send_signal(signal.SIGINT)
        assert tail.wait(PATIENCE_SECS) == ExitCode.INTERRUPTED
    assert busy_target.advances()
    wait_until(lambda: not list(tmp_path.rglob("*.sock")), "the sidecar takes its socket away")


def test_a_server_alone_is_joined_by_pid_and_by_address_and_stops_cleanly(
    busy_target: BusyTarget, gcspy: Run, here: Run, tmp_path: Path
) -> None:
    pid = str(busy_target.pid)
    with subprocess.Popen(
        [sys.executable, "-m", "gcspy", "attach", pid, "--no-window", "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        lines = [server.stdout.readline() for _ in range(4)]
        joins = [line.split()[-1] for line in lines if "join with" in line]
        assert [join.split(":")[0] for join in joins] == ["unix", "127.0.0.1"]
        (token_file,) = tmp_path.rglob("*.token")
        assert token_file.stat().st_mode & 0o077 == 0
        for source in ([pid], [joins[0]], [joins[1], "--token-file", str(token_file)]):
            done = here("tail", *source, "--events", "2", "--json")
            assert done.returncode == ExitCode.OK, done.stderr
        refused = here("tail", joins[1], "--events", "1")
        assert refused.returncode == ExitCode.NO_CONNECTION
        assert "token" in refused.stderr
        taken = gcspy("attach", pid, "--no-window")
        assert taken.returncode == ExitCode.NO_CONNECTION
        assert len(taken.stderr.splitlines()) == 1
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE_SECS) == ExitCode.OK
        assert "the target keeps running" in server.stdout.read()
    assert busy_target.advances()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() or path.is_socket()]


def test_the_server_says_when_the_target_ended(busy_target: BusyTarget, gcspy: Run) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "gcspy", "attach", str(busy_target.pid), "--no-window"],
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        while "join with" not in server.stdout.readline():
            pass
        with subprocess.Popen(
            [sys.executable, "-m", "gcspy", "tail", str(busy_target.pid), "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as tail:
            assert tail.stdout is not None
            assert tail.stderr is not None
            assert tail.stdout.readline()
            busy_target.process.kill()
            assert tail.wait(PATIENCE_SECS) == ExitCode.OK
            assert "ended" in tail.stderr.read()
        assert server.wait(PATIENCE_SECS) == ExitCode.OK
        assert "has ended" in server.stdout.read()


def test_a_screenshot_of_a_process_has_the_size_that_was_asked_for(
    busy_target: BusyTarget, gcspy: Run, tmp_path: Path
) -> None:
    path = tmp_path / "heap.png"
    done = gcspy(
        "screenshot",
        str(busy_target.pid),
        "-o",
        str(path),
        "--size",
        "900x700",
        "--theme",
        "light",
        "--after",
        "0.5",
    )
    assert done.returncode == ExitCode.OK, done.stderr
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")) == (900, 700)
    assert done.stderr == "", "no noise of Qt's"


def test_the_demonstration_takes_a_picture_where_there_is_no_display(
    gcspy: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    path = tmp_path / "demo.png"
    done = gcspy("demo", "--seconds", "1", "-o", str(path))
    assert done.returncode == ExitCode.OK, done.stderr
    assert path.read_bytes().startswith(b"\x89PNG")
    assert str(path) in done.stdout


def test_tail_loads_no_qt(
    busy_target: BusyTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    program = (
        "import sys; from gcspy.cli import main\n"
        f"code = main(['tail', '{busy_target.pid}', '--events', '1'])\n"
        "print([name for name in sys.modules if name.startswith(('PySide6', 'pyqtgraph', 'trio'))])\n"
        "sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("tls:0.0.0.0:7777#sha256=" + "a" * 64, "tls:desk:7777#sha256=" + "a" * 64),
        ("tls:[::]:7777#sha256=" + "a" * 64, "tls:desk:7777#sha256=" + "a" * 64),
        ("127.0.0.1:7777", "127.0.0.1:7777"),
        ("unix:/run/a.sock", "unix:/run/a.sock"),
    ],
)
def test_the_join_line_names_a_host_that_others_can_reach(
    address: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "desk")
    sharing.say_addresses((address,))
    assert capsys.readouterr().out == f"gcspy: join with  gcspy view {said}\n"


def test_a_target_that_ends_before_so_many_events_is_an_error(
    busy_target: BusyTarget, gcspy: Run
) -> None:
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "gcspy",
            "tail",
            str(busy_target.pid),
            "--events",
            "1000000",
            "--json",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as tail:
        assert tail.stdout is not None
        assert tail.stderr is not None
        assert tail.stdout.readline()
        busy_target.process.kill()
        assert len(tail.stdout.readlines()) < 1000
        assert tail.wait(PATIENCE_SECS) == ExitCode.TARGET_GONE
        (line,) = tail.stderr.read().splitlines()
        assert "of 1000000 events" in line


def test_without_a_display_gcspy_alone_is_its_help_and_start_says_what_to_do(gcspy: Run) -> None:
    alone = gcspy()
    assert alone.returncode == ExitCode.USAGE
    assert "gcspy attach PID" in alone.stdout
    insisted = gcspy("start")
    assert insisted.returncode == ExitCode.MISSING_PART
    assert "no display" in insisted.stderr
