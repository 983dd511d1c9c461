"""A Java program with objects that are held in many ways, a number of each; and a JVM that runs it and then stands still."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.drivers.hotspot.jvms import compile_java, remove_socket

PROGRAM = """
import java.lang.ref.*;
import java.net.*;
import java.util.*;
import java.util.concurrent.*;

public class Planted {
    static class Order { int number; Order(int n) { number = n; } }
    static class Kept { long a, b; }
    static class Waiting { int a; }
    static class Softly { int a; }
    static class Weakly { int a; }
    static class Ended { protected void finalize() { System.out.print(""); } }
    static class Cache { final Map<String, Order> entries = new HashMap<>(); static final Map<Integer, Order> SHARED = new TreeMap<>(); }
    static class Session { final byte[] state = new byte[1000]; class Handler implements Runnable { public void run() { System.out.println(state.length); } } }
    static class Bus { final List<Runnable> handlers = new ArrayList<>(); }
    enum Colour { RED, GREEN }

    static final List<Order> AUDIT = new ArrayList<>();
    static final Cache CACHE = new Cache();
    static final Bus BUS = new Bus();
    static final Set<Order> MEMBERS = new HashSet<>();
    static final Deque<Order> RECENT = new ArrayDeque<>();
    static final List<Order> LINKED = new LinkedList<>();
    static final ConcurrentHashMap<Long, Order> CONCURRENT = new ConcurrentHashMap<>();
    static final Order[] BOTH = new Order[7];
    static final List<Order> ALSO = new ArrayList<>();
    static final Map<Colour, Order> SAFE = Collections.synchronizedMap(new LinkedHashMap<>());
    static final Queue<Order> QUEUE = new ConcurrentLinkedQueue<>();
    static final ThreadLocal<List<Order>> EACH = new ThreadLocal<>();
    static final List<Object> LOADERS = new ArrayList<>();
    static final Set<String> INTERNED = new HashSet<>();
    static final SoftReference<List<Softly>> SOFT = new SoftReference<>(new ArrayList<>());
    static final WeakReference<Weakly> WEAK = new WeakReference<>(new Weakly());

    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < 3000; i++) AUDIT.add(new Order(i));
        for (int i = 0; i < 300; i++) CACHE.entries.put("k" + i, new Order(i));
        for (int i = 0; i < 40; i++) Cache.SHARED.put(i, new Order(i));
        for (int i = 0; i < 31; i++) MEMBERS.add(new Order(i));
        for (int i = 0; i < 90; i++) RECENT.add(new Order(i));
        for (int i = 0; i < 23; i++) LINKED.add(new Order(i));
        for (int i = 0; i < 1700; i++) CONCURRENT.put(1000L + i, new Order(i));
        for (int i = 0; i < 7; i++) ALSO.add(BOTH[i] = new Order(i));
        SAFE.put(Colour.GREEN, new Order(1));
        for (int i = 0; i < 11; i++) QUEUE.add(new Order(i));
        for (int i = 0; i < 12; i++) BUS.handlers.add(new Session().new Handler());
        for (int i = 0; i < 500; i++) INTERNED.add(("interned " + i).intern());
        for (int i = 0; i < 9; i++) SOFT.get().add(new Softly());
        for (int i = 0; i < 5; i++) {
            URLClassLoader loader = new URLClassLoader(new URL[] { Paths() }, null);
            LOADERS.add(loader);
            loader.loadClass("Plugin").getDeclaredConstructor().newInstance();
        }
        Thread thread = new Thread(() -> {
            List<Order> mine = new ArrayList<>();
            for (int i = 0; i < 19; i++) mine.add(new Order(i));
            EACH.set(mine);
            mine = null;
            pause();
        }, "worker 1");
        thread.setDaemon(true);
        thread.start();
        Thread other = new Thread(() -> waiting(), "waiter");
        other.setDaemon(true);
        other.start();
        new Ended();
        hold();
    }

    static URL Paths() throws Exception { return new java.io.File(System.getProperty("plugins")).toURI().toURL(); }

    static void waiting() {
        Waiting[] inThread = new Waiting[5];
        for (int i = 0; i < 5; i++) inThread[i] = new Waiting();
        pause();
        System.out.println(inThread.length);
    }

    static void hold() {
        List<Kept> local = new ArrayList<>();
        for (int i = 0; i < 6; i++) local.add(new Kept());
        System.out.println("ready");
        pause();
        System.out.println(local.size());
    }

    static void pause() {
        try { new CountDownLatch(1).await(); } catch (InterruptedException error) { }
    }
}
"""

PLUGIN = """
public class Plugin {
    static final Plugin[] ALL = new Plugin[10];
    static { for (int i = 0; i < 10; i++) ALL[i] = new Plugin(); }
    final byte[] data = new byte[100];
}
"""

ORDERS = {
    "Planted.AUDIT": ("java.util.ArrayList", 3000),
    "Planted.CACHE.entries": ("java.util.HashMap", 300),
    "Planted$Cache.SHARED": ("java.util.TreeMap", 40),
    "Planted.MEMBERS": ("java.util.HashSet", 31),
    "Planted.RECENT": ("java.util.ArrayDeque", 90),
    "Planted.LINKED": ("java.util.LinkedList", 23),
    "Planted.CONCURRENT": ("java.util.concurrent.ConcurrentHashMap", 1700),
    "Planted.SAFE": ("java.util.Collections$SynchronizedMap", 1),
    "Planted.QUEUE": ("java.util.concurrent.ConcurrentLinkedQueue", 11),
    "thread worker 1, value of Planted.EACH": ("java.util.ArrayList", 19),
}
"""Holder, its type, and how many orders it holds."""


def compile_planted(folder: Path) -> Path:
    """Compile the program and, in a folder below, the plugin; skips where there is no compiler."""
    compile_java(folder / "plugins", {"Plugin": PLUGIN})
    return compile_java(folder, {"Planted": PROGRAM})


@contextmanager
def running(java: str, classes: Path, *flags: str) -> Iterator[int]:
    """Run it until the end of the block; yields its number once all is planted."""
    with subprocess.Popen(
        [
            java,
            "-Xmx96m",
            *flags,
            f"-Dplugins={classes / 'plugins'}",
            "-cp",
            str(classes),
            "Planted",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                pytest.skip(f"{java} does not start with {' '.join(flags)}: not tested here")
            while line.strip() != "ready":
                line = process.stdout.readline()
                assert line
            yield process.pid
        finally:
            process.kill()
            process.wait()
            remove_socket(process.pid)
