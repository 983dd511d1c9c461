"""Programs of others, never prepared: each is attached to 1,000 times and 200 readers are killed, and it goes on with its work."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gcspy_drivers.native_heap.figures import Mallinfo
from gcspy_drivers.native_heap.malloc_reader import MallocReader
from gcspy_drivers.remote import Process, held
from gcspy_protocol.errors import TargetError, Unsupported

from tests.waiting import wait_until

pytestmark = pytest.mark.soak

ATTACHINGS = int(os.environ.get("GCSPY_ATTACHINGS", "1000"))
KILLS = int(os.environ.get("GCSPY_NATIVE_KILLS", "200"))


class Answering:
    """A program that answers lines with lines.

    Args:
        command: Its command line.
        question: What it is asked.
        environment: More variables.
    """

    def __init__(
        self, command: list[str], question: str, environment: dict[str, str] | None = None
    ) -> None:
        self._question = question
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | (environment or {}),
        )
        self.pid = self._process.pid

    def ask(self) -> str:
        """Ask it; an empty answer means that it has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(self._question)
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


def need(program: str) -> str:
    found = shutil.which(
        program, path=f"{os.environ['PATH']}:/usr/sbin:/usr/lib/gcc/x86_64-linux-gnu/12"
    )
    if found is None:
        pytest.skip(f"no {program} on this machine")
    return found


def script(text: str) -> str:
    return textwrap.dedent(text)


def start_perl(_folder: Path) -> Answering:
    code = "$|=1; %h=map{($_=>'x'x($_%200))}1..60000; while(<>){$h{$_}=$_ x 20 for 1..200; delete $h{int rand 60000} for 1..200; print scalar(keys %h).\"\\n\"}"
    return Answering([need("perl"), "-e", code], "go\n")


def start_ruby(_folder: Path) -> Answering:
    code = "$stdout.sync=true; h={}; 60000.times{|i| h[i]='x'*(i%300)}; while gets; 500.times{|i| h[rand(60000)]='y'*(i%700)}; puts h.size; end"
    return Answering([need("ruby"), "-e", code], "go\n")


def start_node(_folder: Path) -> Answering:
    code = "let m=new Map();for(let i=0;i<50000;i++)m.set(i,Buffer.alloc(i%300));require('readline').createInterface({input:process.stdin}).on('line',()=>{for(let i=0;i<500;i++)m.set((Math.random()*50000)|0,Buffer.alloc(i*3));console.log(m.size)})"
    return Answering([need("node"), "-e", code], "go\n")


def start_python(_folder: Path) -> Answering:
    code = script("""
        import sys
        kept = {number: bytes(number % 700) for number in range(60000)}
        for line in sys.stdin:
            for number in range(500):
                kept[hash((line, number)) % 60000] = bytes(number)
            print(len(kept), flush=True)
    """)
    return Answering([sys.executable, "-c", code], "go\n", {"PYTHONMALLOC": "malloc"})


def start_sqlite(_folder: Path) -> Answering:
    program = Answering(
        [need("sqlite3")],
        "insert into t select randomblob(300) from n limit 200; select count(*) from t;\n",
    )
    first = "create table t(x); create table n(y); insert into n with recursive c(x) as (select 1 union all select x+1 from c limit 20000) select x from c; insert into t select randomblob(400) from n;\n"
    assert program._process.stdin is not None
    program._process.stdin.write(first)
    return program


def start_git(_folder: Path) -> Answering:
    root = Path(__file__).resolve().parents[2]
    command = [need("git"), "-C", str(root), "cat-file", "--batch-check", "--buffer"]
    return Answering([*command[:-1]], "HEAD:README.md\n")


class Redis:
    """A redis-server, which is linked to jemalloc."""

    def __init__(self, folder: Path) -> None:
        socket = folder / "redis.sock"
        self._socket = str(socket)
        command = [
            need("redis-server"),
            "--port",
            "0",
            "--unixsocket",
            self._socket,
            "--save",
            "",
            "--dir",
            str(folder),
        ]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.pid = self._process.pid
        wait_until(socket.exists, "redis listens")

    def ask(self) -> str:
        """Add a value."""
        command = [need("redis-cli"), "-s", self._socket, "incr", "x"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


class Nginx:
    """A worker of nginx."""

    def __init__(self, folder: Path) -> None:
        (folder / "index.html").write_text("hello\n")
        self._socket = str(folder / "nginx.sock")
        (folder / "nginx.conf").write_text(
            f"daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error;"
            f"events {{ worker_connections 64; }} http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;"
            f"fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;"
            f"server {{ listen unix:{self._socket}; location / {{ root {folder}; }} }} }}"
        )
        command = [need("nginx"), "-c", str(folder / "nginx.conf")]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        wait_until(lambda: bool(children.read_text().split()), "nginx has a worker")
        self.pid = int(children.read_text().split()[0])

    def ask(self) -> str:
        """Fetch the page."""
        import socket

        with socket.socket(socket.AF_UNIX) as link:
            link.connect(self._socket)
            link.sendall(b"GET / HTTP/1.0\r\n\r\n")
            text = b""
            while part := link.recv(4096):
                text += part
        assert b"hello" in text
        return "hello"

    def end(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()


class Postgres:
    """A backend of PostgreSQL."""

    def __init__(self, folder: Path) -> None:
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        if not programs or shutil.which("psql") is None or os.geteuid() != 0:
            pytest.skip("no PostgreSQL on this machine, or no right to start it as its user")
        self._folder = folder / "data"
        self._folder.mkdir()
        shutil.chown(self._folder, "postgres")
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        subprocess.run(
            [*as_user, str(programs[-1] / "initdb"), "-D", str(self._folder)],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        options = f"-c listen_addresses= -c unix_socket_directories={self._folder}"
        self._process = subprocess.Popen(
            [*as_user, str(programs[-1] / "postgres"), "-D", str(self._folder), *options.split()],
            stderr=subprocess.DEVNULL,
        )
        wait_until((self._folder / ".s.PGSQL.5432").exists, "PostgreSQL listens")
        time.sleep(1)
        query = "select count(*) from (select md5(x::text) from generate_series(1,20000) x) s;\n"
        self._link = Answering(
            ["psql", "-h", str(self._folder), "-U", "postgres", "-At", "postgres"], query
        )
        assert self._link._process.stdin is not None
        self._link._process.stdin.write("select pg_backend_pid();\n")
        self._link._process.stdin.flush()
        assert self._link._process.stdout is not None
        self.pid = int(self._link._process.stdout.readline())

    def ask(self) -> str:
        """Have it compute something."""
        return self._link.ask()

    def end(self) -> None:
        """End it."""
        self._link.end()
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()


class Compiler:
    """The compiler proper of C++, at work on a long text."""

    def __init__(self, folder: Path) -> None:
        program = sorted(Path("/usr/lib/gcc/x86_64-linux-gnu").glob("*/cc1plus"))
        if not program:
            pytest.skip("no cc1plus on this machine: apt-get install g++")
        self._command = [
            str(program[-1]),
            "-quiet",
            "-imultiarch",
            "x86_64-linux-gnu",
            "-O2",
            str(folder / "x.cc"),
            "-o",
            str(folder / "x.s"),
        ]
        text = "#include <map>\n#include <string>\n#include <vector>\n"
        for number in range(300):
            text += f"struct S{number} {{ std::map<std::string, std::vector<int>> m; int f(int x) {{ return m[std::to_string(x)].size() + {number}; }} }}; int g{number}(int x) {{ S{number} s; return s.f(x); }}\n"
        (folder / "x.cc").write_text(text)
        self._done = 0
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(self._command)
        self.pid = self._process.pid
        time.sleep(0.3)

    def ask(self) -> str:
        """Return whether it compiles, or has compiled well."""
        status = self._process.poll()
        if status is None:
            return "at work"
        assert status == 0, f"the compiler ended with {status}"
        self._done += 1
        self._start()
        return "done"

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


PROGRAMS: dict[str, Callable[[Path], Answering | Redis | Nginx | Postgres | Compiler]] = {
    "redis": Redis,
    "postgres": Postgres,
    "nginx": Nginx,
    "perl": start_perl,
    "ruby": start_ruby,
    "sqlite3": start_sqlite,
    "cc1plus": Compiler,
    "node": start_node,
    "git": start_git,
    "python": start_python,
}


@contextmanager
def killed_reader(pid: int, dice: random.Random) -> Iterator[None]:
    """Let a child process read the program, held or not, and kill it at some moment."""
    child = os.fork()
    if not child:
        try:
            with Process(pid) as process:
                reader = MallocReader(process)
                while True:
                    with held(process, longest_secs=2.0):
                        reader.read(4)
        except BaseException:  # noqa: BLE001  # a child of the test ends, whatever happened to it
            os._exit(0)
    time.sleep(dice.random() * 0.06)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    yield


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder that other users may enter: two of the programs run as such."""
    with tempfile.TemporaryDirectory(prefix="gcspy-test-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


def is_readable(pid: int) -> bool:
    """Whether a program has a heap that can be read by now, or has ended."""
    try:
        with Process(pid) as process:
            MallocReader(process).close()
    except Unsupported:
        return False
    except TargetError:
        return True
    return True


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_goes_on(name: str, folder: Path) -> None:
    dice = random.Random(int(os.environ.get("GCSPY_SEED", "1")))
    program = PROGRAMS[name](folder)
    whole = torn = refused = ended = unknown = again = 0
    began = time.thread_time()
    try:
        assert program.ask()
        for number in range(ATTACHINGS):
            try:
                with Process(program.pid) as process:
                    reader = MallocReader(process)
                    try:
                        if number % 2:
                            for _ in range(5):  # a thread may be stopped inside malloc
                                with held(process, longest_secs=2.0):
                                    reading = reader.read(4)
                                if reading.is_whole:
                                    break
                                again += 1
                        else:
                            reading = reader.read(4)
                    finally:
                        reader.close()
                complete = Mallinfo.of(reading) is not None
                unknown += sum(walk.unknown_bytes for each in reading.walks for walk in each)
                whole, torn = whole + complete, torn + (not complete)
                if number % 2:
                    assert complete
            except Unsupported:
                refused += 1
                if name == "cc1plus":  # a new one, which has not called malloc yet: it will
                    wait_until(lambda: is_readable(program.pid), "it has a heap, or has ended")
            except TargetError:
                assert name == "cc1plus"  # it ends, and another begins
                ended += 1
            if number % 20 == 0:
                assert program.ask()
        cpu = time.thread_time() - began
        for number in range(KILLS):
            with killed_reader(program.pid, dice):
                if number % 10 == 0:
                    assert program.ask()
        assert program.ask()
        tracer = [
            line
            for line in Path(f"/proc/{program.pid}/status").read_text().splitlines()
            if line.startswith("TracerPid")
        ]
        assert tracer == ["TracerPid:\t0"]
        print(
            f"{name}: {ATTACHINGS} attachings ({whole} whole, {torn} torn, {refused} refused, {ended} ended, {unknown} bytes unknown, {again} held again, {cpu / ATTACHINGS * 1e3:.1f} ms of processor each), {KILLS} readers killed"
        )
        # Refused for good is nobody but redis, which has jemalloc.
        if name != "cc1plus":
            assert refused == (ATTACHINGS if name == "redis" else 0)
    finally:
        program.end()
