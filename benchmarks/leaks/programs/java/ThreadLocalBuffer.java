import java.util.ArrayList;
import java.util.List;

/**
 * A worker of a pool, which never ends, and writes a log into a buffer of its own that nobody flushes.
 *
 * Cause: the value of a ThreadLocal lives as long as its thread
 * Holder: thread worker, value of ThreadLocalBuffer\.LINES
 */
public final class ThreadLocalBuffer {
    private static final ThreadLocal<List<String>> LINES = ThreadLocal.withInitial(ArrayList::new);

    static void work() {
        try {
            for (int job = 0; ; job++) {
                String line = "job " + job + ": " + "done, ".repeat(20);
                LINES.get().add(line);
                Pace.keep(line.length() + 60);
            }
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Pace.begin();
        Thread worker = new Thread(ThreadLocalBuffer::work, "worker");
        worker.start();
        worker.join();
    }
}
