package gcspy;

import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.MappedByteBuffer;
import java.nio.file.Path;

/** The same as {@link SiteCounters} for Java 8, which has no handles of variables. */
public final class OldSiteCounters {
    private static final sun.misc.Unsafe UNSAFE = unsafe();
    private static MappedByteBuffer kept;
    private static volatile long address = UNSAFE.allocateMemory(8L * CountingAgent.CAPACITY);

    private OldSiteCounters() {}

    private static sun.misc.Unsafe unsafe() {
        try {
            Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            return (sun.misc.Unsafe) field.get(null);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Count in this file from now on; files of before stay mapped, as threads may be about to count in them. */
    static void open(Path file) throws IOException {
        kept = CountingAgent.mapped(file);
        CountingAgent.keep(kept);
        try {
            Field field = java.nio.Buffer.class.getDeclaredField("address");
            address = UNSAFE.getLong(kept, UNSAFE.objectFieldOffset(field));
        } catch (ReflectiveOperationException error) {
            throw new IOException(error);
        }
    }

    /** Count one execution of a site; called by instrumented code. */
    public static void add(int site) {
        UNSAFE.getAndAddLong(null, address + 8L * site, 1L);
    }
}
