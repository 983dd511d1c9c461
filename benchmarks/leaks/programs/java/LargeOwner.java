import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A server with one object that has everything: a large table of pages that does not grow, and a log that does.
 *
 * Cause: a log is kept by an object most of whose memory does not grow
 * Holder: LargeOwner\.SERVER\.log
 */
public final class LargeOwner {
    private static final int PAGES = 40_000;
    private static final LargeOwner SERVER = new LargeOwner();

    private final Map<Integer, byte[]> pages = new HashMap<>();
    private final List<String> log = new ArrayList<>();

    private void serve() throws InterruptedException {
        for (int request = 0; ; request++) {
            String line = "request " + request + ": " + "done, ".repeat(20);
            log.add(line);
            Pace.keep(line.length() + 60);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Pace.begin();
        for (int page = 0; page < PAGES; page++) SERVER.pages.put(page, new byte[1000]);
        SERVER.serve();
    }
}
