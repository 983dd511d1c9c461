/** The pace of a program that leaks: it grows at once by 16 MiB, then by 2 MiB a second until 150 MiB, and waits; it ends when its parent has. */
final class Pace {
    private static final long FIRST_BYTES = 16L << 20, BYTES_A_SECOND = 2L << 20, MOST_BYTES = 150L << 20;
    private static final ProcessHandle PARENT = ProcessHandle.current().parent().orElseThrow();

    private static long grown, began;

    private Pace() {}

    /** Say that the program begins. */
    static void begin() {
        System.out.println("begun");
    }

    /** Wait until the program may keep so many bytes more, as it counts them itself; what is garbage does not count. */
    static void keep(long bytes) throws InterruptedException {
        grown += bytes;
        if (grown < FIRST_BYTES) return;
        if (began == 0) {
            began = System.nanoTime();
            System.out.println("grown");
        }
        while (grown > Math.min(MOST_BYTES, FIRST_BYTES + BYTES_A_SECOND * (System.nanoTime() - began) / 1_000_000_000L)) {
            if (!PARENT.isAlive()) System.exit(0);
            Thread.sleep(50);
        }
    }
}
