"""The space "Allocation sites" of a JVM: what its counters say, with the source beside it, and nothing left when gcspy is killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gcspy_drivers.hotspot
import pytest
from gcspy_drivers.hotspot.passive_driver import PassiveJvmDriver

from gcspy_server.api import AttachOptions, Server, ServerSpace, StringNames
from tests.drivers.hotspot.jvms import HOMES, compile_java, find_javas
from tests.waiting import wait_until

FOLDER = Path(gcspy_drivers.hotspot.__file__).parent
SOURCE = """
public class Making {
    static Object made;
    static void make(boolean array) {
        made = new StringBuilder(new String(array ? "a" : "b"));
        made = new Object[] {new Object(), new Object()};
    }
    public static void main(String[] args) throws Exception {
        System.out.println("ready");
        for (int read; (read = System.in.read()) >= 0 && read != 'q'; )
            if (read == 'w') { for (int i = 0; i < 500; i++) make(i % 2 == 0); System.out.println("done"); }
            else if (read == 't') System.out.println(Thread.getAllStackTraces().keySet().stream().anyMatch(t -> t.getName().equals("gcspy-count")));
    }
}
"""
ATTACHING = """
import sys, time
from gcspy_drivers.hotspot.passive_driver import PassiveJvmDriver
from gcspy_server.api import AttachOptions
driver = PassiveJvmDriver.attach(int(sys.argv[1]), AttachOptions(values={"count": "wide"}))
driver.open(driver.describe().server(budget=None))
while driver._site_counts.latest is None:
    time.sleep(0.05)
print("counting", flush=True)
time.sleep(600)
"""

pytestmark = pytest.mark.skipif(
    not list(FOLDER.glob("gcspy-counting-*.jar")),
    reason="the agent in Java was not built (no JDK): allocation sites of JVMs are not counted here",
)


@pytest.fixture(name="jvm")
def _jvm(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    javas = find_javas()
    if not javas:
        pytest.skip(f"no java on PATH or in {HOMES}")
    classes = compile_java(tmp_path, {"Making": SOURCE})
    (tmp_path / "Making.java").write_text(SOURCE)
    with subprocess.Popen(
        [javas[0], "-Xmx64m", "-cp", str(classes), "Making"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def _tell(jvm: subprocess.Popen[str], command: str) -> str:
    assert jvm.stdin is not None
    assert jvm.stdout is not None
    jvm.stdin.write(command)
    jvm.stdin.flush()
    return jvm.stdout.readline().strip()


def _space(server: Server) -> ServerSpace:
    return next(one for one in server.spaces if one.name == "Allocation sites")


def _counts(server: Server) -> dict[str, int]:
    space = _space(server)
    assert isinstance(space.names, StringNames)
    stream = next(one for one in space.streams if one.name == "Allocations")
    return dict(zip(space.names.names, stream.data.tolist(), strict=True))


def test_it_shows_what_a_jvm_allocates(jvm: subprocess.Popen[str]) -> None:
    driver = PassiveJvmDriver.attach(jvm.pid, AttachOptions(values={"count": "wide"}))
    server = driver.describe().server(budget=None)
    server.add_observer(lambda event: None)
    driver.open(server)
    try:

        def shown(what: str, count: int) -> bool:
            driver.sample()
            return _counts(server).get(what) == count

        wait_until(lambda: shown("Making.java:6 java.lang.Object[] in Making.make", 0), "the sites")
        assert _tell(jvm, "w") == "done"
        wait_until(lambda: shown("Making.java:6 java.lang.Object[] in Making.make", 500), "arrays")
        found = _counts(server)
        assert found["Making.java:5 java.lang.StringBuilder in Making.make"] == 500
        assert found["Making.java:5 java.lang.String in Making.make"] == 500
        assert found["Making.java:6 java.lang.Object in Making.make"] == 500
        tile = list(found).index("Making.java:6 java.lang.Object[] in Making.make")
        table = _space(server)._details["source"](tile, 100)
        assert table is not None
        marked = next(row for row in table.rows if str(row[0]).startswith("▶"))
        assert "new Object[] {new Object(), new Object()}" in str(marked[0])
        assert marked[1] == 1500
    finally:
        driver.close()
    assert _tell(jvm, "w") == "done", "it runs on"


@pytest.mark.soak
def test_a_jvm_gets_its_classes_back_when_gcspy_is_killed(jvm: subprocess.Popen[str]) -> None:
    command = [sys.executable, "-c", ATTACHING, str(jvm.pid)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as ours:
        assert ours.stdout is not None
        assert ours.stdout.readline() == "counting\n"
        assert _tell(jvm, "t") == "true"
        ours.kill()
    wait_until(lambda: _tell(jvm, "t") == "false", "no thread of the agent")
    assert _tell(jvm, "w") == "done"
