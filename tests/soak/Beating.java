import java.io.RandomAccessFile;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;

/** The same as beating_target.py, for a JVM; System.nanoTime() is CLOCK_MONOTONIC on Linux. */
public class Beating {
    static final int UNITS = 0, LATEST = 8, SECOND = 16, MARK = 24, LONGEST = 32, HOLDS_FOR = 40;
    static byte[][] kept = new byte[64][];

    public static void main(String[] arguments) throws Exception {
        MappedByteBuffer shared;
        try (RandomAccessFile file = new RandomAccessFile(arguments[0], "rw")) {
            shared = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 4096);
        }
        shared.order(ByteOrder.nativeOrder());
        Thread second = new Thread(() -> {
            long units = 0;
            while (true) {
                shared.putLong(SECOND, ++units);
                try {
                    Thread.sleep(10);
                } catch (InterruptedException ended) {
                    return;
                }
            }
        });
        second.setDaemon(true);
        second.start();
        long units = 0, longest = 0, mark = 0, latest = System.nanoTime();
        while (true) {
            for (int i = 0; i < 30; i++) kept[(int) ((units + i) % kept.length)] = new byte[4096];
            units++;
            long now = System.nanoTime(), wanted = shared.getLong(MARK);
            if (wanted != mark) {
                mark = wanted;
                longest = 0;
            }
            longest = Math.max(longest, now - Math.max(latest, mark));
            latest = now;
            shared.putLong(LONGEST, longest);
            shared.putLong(HOLDS_FOR, mark);
            shared.putLong(LATEST, now);
            shared.putLong(UNITS, units);
            if (units == 1) {
                System.out.println("ready");
                System.out.flush();
            }
            Thread.sleep(5);
        }
    }
}
