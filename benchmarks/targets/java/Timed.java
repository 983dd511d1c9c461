import java.io.PrintWriter;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;

/** Runs another program's main once a line has come, and writes what it took: seconds by the clock, of the process's processor time, collections, ms of them, and begin and end by the monotonic clock, ns. */
public class Timed {
    public static void main(String[] arguments) throws Exception {
        com.sun.management.OperatingSystemMXBean system =
            (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        Class<?> program = Class.forName(arguments[1]);
        String[] rest = java.util.Arrays.copyOfRange(arguments, 2, arguments.length);
        long[] before = collections();
        System.out.println("ready");
        System.in.read();
        long used = system.getProcessCpuTime(), began = System.nanoTime();
        program.getMethod("main", String[].class).invoke(null, (Object) rest);
        long ended = System.nanoTime(), wall = ended - began;
        used = system.getProcessCpuTime() - used;
        long[] after = collections();
        try (PrintWriter file = new PrintWriter(arguments[0])) {
            file.println(wall / 1e9 + " " + used / 1e9 + " " + (after[0] - before[0]) + " " + (after[1] - before[1]) + " " + began + " " + ended);
        }
        Runtime.getRuntime().halt(0);
    }

    static long[] collections() {
        long count = 0, millis = 0;
        for (GarbageCollectorMXBean each : ManagementFactory.getGarbageCollectorMXBeans()) {
            count += each.getCollectionCount();
            millis += each.getCollectionTime();
        }
        return new long[] {count, millis};
    }
}
