package gcspy;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Counters in a file that is mapped: who counts reads them at any time, also when this process was killed.
 *
 * <p>A counter is incremented atomically, so that no count of any thread is lost. The class is on the path of the bootstrap loader: every class sees it.
 */
public final class SiteCounters {
    /** Most counters; sites beyond have none. */
    public static final int CAPACITY = 1 << 17;

    private static final VarHandle LONGS =
            MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
    private static volatile ByteBuffer counters = ByteBuffer.allocateDirect(8 * CAPACITY + 8).alignedSlice(8);

    private SiteCounters() {}

    /** Count in this file from now on. */
    static void open(Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(
                file, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            counters = channel.map(FileChannel.MapMode.READ_WRITE, 0, 8L * CAPACITY).order(ByteOrder.nativeOrder());
        }
    }

    /** Count one execution of a site; called by instrumented code. */
    public static void add(int site) {
        long ignored = (long) LONGS.getAndAdd(counters, 8 * site, 1L);
    }
}
