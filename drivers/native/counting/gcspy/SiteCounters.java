package gcspy;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;

/**
 * Counters in a file that is mapped: who counts reads them at any time, also when this process was killed.
 *
 * <p>A counter is incremented atomically, so that no count of any thread is lost. The class is on the path of the bootstrap loader: every class sees it.
 */
public final class SiteCounters {
    private static final VarHandle LONGS =
            MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
    private static volatile ByteBuffer counters = ByteBuffer.allocateDirect(8 * CountingAgent.CAPACITY + 8).alignedSlice(8);

    private SiteCounters() {}

    /** Count in this file from now on. */
    static void open(Path file) throws IOException {
        counters = CountingAgent.mapped(file);
    }

    /** Count one execution of a site; called by instrumented code. */
    public static void add(int site) {
        long ignored = (long) LONGS.getAndAdd(counters, 8 * site, 1L);
    }
}
