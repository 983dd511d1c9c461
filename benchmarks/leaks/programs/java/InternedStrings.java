import java.util.HashSet;
import java.util.Set;

/**
 * A parser that interns the names it reads, and remembers which it has seen.
 *
 * Cause: interned strings stay in a collection; there are as many as there are names
 * Holder: InternedStrings\.SEEN
 */
public final class InternedStrings {
    private static final Set<String> SEEN = new HashSet<>();

    static void read(String name) {
        SEEN.add(name.intern());
    }

    public static void main(String[] arguments) throws InterruptedException {
        Pace.begin();
        for (int number = 0; ; number++) {
            String name = "customer-" + number + "-of-the-shop-in-the-high-street".repeat(4);
            read(name);
            Pace.keep(name.length() + 120);
        }
    }
}
