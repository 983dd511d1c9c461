package gcspy;

import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** The sites that are counted, as lines of a file: number of the counter, which several may share, source file, line, class and method, what is allocated; with tabs between. Lines with <code>=</code> tell how long classes were rewritten. */
final class SiteList {
    private final Writer file;
    private final boolean shares;
    private int next;
    private long spentNanos;

    SiteList(Path path, boolean shares) throws IOException {
        this.shares = shares;
        file = Files.newBufferedWriter(path, StandardCharsets.UTF_8, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    /** Say whether sites may share counters. */
    boolean shares() {
        return shares;
    }

    /** Give a site a counter: a new one, or one that it shares; -1: there is none left. */
    synchronized int add(int shared, String source, int line, String method, String what) {
        if (shared < 0 && next >= CountingAgent.CAPACITY) {
            return -1;
        }
        int counter = shared < 0 ? next : shared;
        try {
            file.write(counter + "\t" + source + "\t" + line + "\t" + method + "\t" + what + "\n");
        } catch (IOException error) {
            return -1;
        }
        if (shared < 0) {
            next++;
        }
        return counter;
    }

    /** Note a class whose sites are not counted, and why. */
    synchronized void failed(String name, Throwable why) {
        try {
            file.write("!\t" + name + "\t" + String.valueOf(why).replaceAll("\\s+", " ") + "\n");
            file.flush();
        } catch (IOException error) {
            // Nobody can be told.
        }
    }

    /** Write what was added for one class, and how long all took until now. */
    synchronized void rewritten(long nanos) {
        spentNanos += nanos;
        try {
            file.write("=\t" + spentNanos + "\n");
            file.flush();
        } catch (IOException error) {
            // The counts of these sites have no names.
        }
    }
}
