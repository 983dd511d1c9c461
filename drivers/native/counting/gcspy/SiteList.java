package gcspy;

import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** The sites that have counters, as lines of a file: number, source file, line, class and method, what is allocated; with tabs between. */
final class SiteList {
    private final Writer file;
    private int next;

    SiteList(Path path) throws IOException {
        file = Files.newBufferedWriter(path, StandardCharsets.UTF_8, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    /** Give a site a number; -1: there is no counter left. */
    synchronized int add(String source, int line, String method, String what) {
        if (next >= SiteCounters.CAPACITY) {
            return -1;
        }
        try {
            file.write(next + "\t" + source + "\t" + line + "\t" + method + "\t" + what + "\n");
        } catch (IOException error) {
            return -1;
        }
        return next++;
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

    /** Write what was added. */
    synchronized void flush() {
        try {
            file.flush();
        } catch (IOException error) {
            // The counts of these sites have no names.
        }
    }
}
