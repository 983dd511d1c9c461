import gcspy.SiteCounters;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.atomic.AtomicLong;

/** Makes two objects in each round of a loop, in some threads, and counts them in some way; prints ns of processor time a round for each way: THREADS ROUNDS. */
public class CounterCost {
    private static final String[] WAYS = {"none", "shared", "striped", "local"};
    private static final VarHandle LONGS =
            MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
    private static final int SITES = 1 << 17;
    private static final int STRIPES = 16;
    private static final ByteBuffer COUNTERS = ByteBuffer.allocateDirect(8 * SITES * STRIPES + 8).alignedSlice(8);
    static Object kept;

    /** A counter of its own for one of 16 groups of threads. */
    static void striped(int site) {
        int stripe = System.identityHashCode(Thread.currentThread()) & STRIPES - 1;
        long ignored = (long) LONGS.getAndAdd(COUNTERS, 8 * (stripe * SITES + site), 1L);
    }

    static void run(String way, int rounds) {
        switch (way) {
            case "none":
                for (int i = 0; i < rounds; i++) {
                    kept = new Object();
                    kept = new StringBuilder();
                }
                break;
            case "shared":
                for (int i = 0; i < rounds; i++) {
                    kept = new Object();
                    SiteCounters.add(5);
                    kept = new StringBuilder();
                    SiteCounters.add(6);
                }
                break;
            case "striped":
                for (int i = 0; i < rounds; i++) {
                    kept = new Object();
                    striped(5);
                    kept = new StringBuilder();
                    striped(6);
                }
                break;
            default: // counted in variables, and added when the method ends, however it ends
                long first = 0;
                long second = 0;
                try {
                    for (int i = 0; i < rounds; i++) {
                        kept = new Object();
                        first++;
                        kept = new StringBuilder();
                        second++;
                    }
                } finally {
                    long ignored = (long) LONGS.getAndAdd(COUNTERS, 40, first);
                    ignored = (long) LONGS.getAndAdd(COUNTERS, 48, second);
                }
        }
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        int rounds = Integer.parseInt(arguments[1]);
        for (int pass = 0; pass < 6; pass++) {
            for (String way : WAYS) {
                AtomicLong nanos = new AtomicLong();
                Thread[] all = new Thread[threads];
                for (int i = 0; i < threads; i++) {
                    all[i] = new Thread(() -> {
                        run(way, rounds);
                        nanos.addAndGet(ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime());
                    });
                    all[i].start();
                }
                for (Thread each : all) {
                    each.join();
                }
                if (pass > 0) {
                    System.out.println(way + " " + (double) nanos.get() / threads / rounds);
                }
            }
        }
    }
}
