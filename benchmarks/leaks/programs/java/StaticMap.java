import java.util.HashMap;
import java.util.Map;

/**
 * A shop that keeps each rendered page.
 *
 * Cause: a static map is used as a cache, and no entry is ever removed
 * Holder: StaticMap\.PAGES
 */
public final class StaticMap {
    private static final Map<String, String> PAGES = new HashMap<>();

    static String page(String path) {
        return PAGES.computeIfAbsent(path, wanted -> "<h1>" + wanted + "</h1>" + "<p>text</p>".repeat(20));
    }

    public static void main(String[] arguments) throws InterruptedException {
        Pace.begin();
        for (int session = 0; ; session++) Pace.keep(page("/product?session=" + session).length() + 150);
    }
}
