package gcspy;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/**
 * Allocations of a method that share a counter: those that always run one after the other, with nothing between them that could throw, call
 * the program, wait, or jump. So their counts are equal at any moment, also in calls that never end and in a JVM that is killed.
 */
final class SharedCounter {
    /** Constructors of the JDK that call nothing of the program, wait for nothing, and fail only when memory or the stack is used up. */
    private static final Set<String> HARMLESS = new HashSet<>(Arrays.asList(
            "java/lang/Object()V", "java/lang/StringBuilder()V", "java/util/ArrayList()V", "java/util/HashMap()V",
            "java/util/HashSet()V", "java/util/LinkedHashMap()V", "java/util/LinkedHashSet()V", "java/util/LinkedList()V",
            "java/util/TreeMap()V", "java/util/ArrayDeque()V", "java/util/concurrent/atomic/AtomicInteger()V",
            "java/util/concurrent/atomic/AtomicInteger(I)V", "java/util/concurrent/atomic/AtomicLong()V",
            "java/util/concurrent/atomic/AtomicLong(J)V", "java/util/concurrent/atomic/AtomicBoolean()V"));

    private static final int ALOAD_0 = 42;
    private static final int ALOAD = 25;
    private static final int GETFIELD = 180;

    private final SiteList sites;
    private final boolean shares;
    private final boolean isInstance;
    private int open = -1;
    private boolean hasThis;

    SharedCounter(SiteList sites, boolean isInstance) {
        this.sites = sites;
        this.shares = sites.shares();
        this.isInstance = isInstance;
    }

    /**
     * Note a site; return the counter that is incremented behind it, or -1 if one before it counts for it, too.
     *
     * <p>A site that may throw, as an array of a negative length, only begins what shares a counter.
     */
    int site(String source, int line, String method, String what, boolean mayThrow) {
        if (mayThrow) {
            close();
        }
        int counter = sites.add(open, source, line, method, what);
        int placed = open >= 0 ? -1 : counter;
        open = shares ? counter : -1;
        hasThis = false;
        return placed;
    }

    /** Something that may throw, call, wait or jump follows, or is jumped to. */
    void close() {
        open = -1;
        hasThis = false;
    }

    /** An instruction without a member or constant follows. */
    void plain(int op) {
        if (!isHarmless(op)) {
            close();
        }
        hasThis = isInstance && op == ALOAD_0;
    }

    /** An instruction that loads or stores a variable follows. */
    void variable(int op, int slot) {
        plain(op == ALOAD && slot == 0 ? ALOAD_0 : op);
    }

    /** An access to a field follows; a field of {@code this} is there. */
    void field(int op) {
        if (op != GETFIELD || !hasThis) {
            close();
        }
        hasThis = false;
    }

    /** A call follows. */
    void call(String owner, String name, String type) {
        if (!name.equals("<init>") || !HARMLESS.contains(owner + type)) {
            close();
        }
        hasThis = false;
    }

    /** Say whether an instruction neither throws, nor jumps, nor leaves the method: constants, variables, the stack, arithmetic without division of integers. */
    private static boolean isHarmless(int op) {
        boolean divides = op == 108 || op == 109 || op == 112 || op == 113;
        boolean variables = op >= 21 && op <= 45 || op >= 54 && op <= 78 || op == 132;
        return op <= 17 || variables || op >= 87 && op <= 152 && !divides;
    }
}
