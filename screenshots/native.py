"""Takes the pictures of native heaps of programs that run: of malloc, of malloc beside CPython, and of jemalloc by its library.

A program that is missing is named, and its picture stays as it was; called by `make.py`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PERL = "$|=1; my %h; $h{$_}='x'x($_%3000) for 1..30000; delete $h{$_*7} for 1..3000; print qq(ready\\n); while(1){ $h{int rand 30000}='y'x int rand 3000 for 1..20; select undef,undef,undef,0.05 }"
PYTHON = "import time; kept=[bytes(n%5000) for n in range(20000)]; print('ready', flush=True)\nwhile True: kept[hash(time.time())%20000]=bytes(int(time.time()*1e6)%5000); time.sleep(.01)"


def take(pid: int, name: str, *options: str) -> None:
    """Take a picture of a process."""
    picture = ["-o", str(HERE / name), "--size", "1600x1000", "--theme", "dark", "--after", "6"]
    command = [sys.executable, "-m", "gcspy", "screenshot", str(pid), *picture, *options]
    subprocess.run(command, check=True)


def take_of(command: list[str], name: str, *options: str) -> None:
    """Take a picture of a program that says when it is ready."""
    if shutil.which(command[0]) is None:
        print(f"no {command[0]} on PATH: {name} stays as it is", file=sys.stderr)
        return
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout is not None
            program.stdout.readline()
            take(program.pid, name, *options)
        finally:
            program.kill()


def take_redis() -> None:
    """Take the picture of a Redis, into which the library for jemalloc is loaded."""
    redis = shutil.which("redis-server")
    if redis is None:
        print("no redis-server on PATH: jemalloc.png stays as it is", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        socket = f"{folder}/redis.sock"
        words = [redis, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as program:
            try:
                assert program.stdout is not None
                for line in program.stdout:
                    if "eady to accept" in line:
                        break
                filled = "DEBUG populate 200000 key 100"
                asked = ["redis-cli", "-s", socket, *filled.split()]
                done = subprocess.run(asked, capture_output=True, text=True, check=True)
                if "ERR" in done.stdout:  # not allowed by default: set some values instead
                    sets = "".join(f"SET key{n} {'v' * (n % 300)}\n" for n in range(100_000))
                    subprocess.run(
                        ["redis-cli", "-s", socket],
                        input=sets,
                        capture_output=True,
                        text=True,
                        check=True,
                    )
                options = ("--driver", "published", "--option", "published.inject=allocator")
                take(program.pid, "jemalloc.png", *options)
            finally:
                program.kill()


def main() -> int:
    """Take them."""
    stopped = ("--level", "4", "--option", "malloc.mode=stopped", "--budget", "off", "--clock", "2")
    take_of(["perl", "-e", PERL], "native-malloc.png", "--driver", "malloc", *stopped)
    both = (
        "--driver",
        "malloc",
        "--driver",
        "cpython",
        "--level",
        "4",
        "--budget",
        "off",
        "--clock",
        "1",
    )
    take_of([sys.executable, "-c", PYTHON], "native-both.png", *both)
    take_redis()
    return 0


if __name__ == "__main__":
    sys.exit(main())
