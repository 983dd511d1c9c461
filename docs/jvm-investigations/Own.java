import java.lang.management.*;
import java.util.*;

/** What a program says of itself: collections and what they took, by the JVM's own beans. Waits for a line before it begins and before it ends. */
public class Own {
    interface Work { String run() throws Exception; }

    static void watch(Work work) throws Exception {
        System.out.println("ready");
        System.in.read();
        long began = System.nanoTime();
        String more = work.run();
        StringBuilder said = new StringBuilder("{\"millis\": " + (System.nanoTime() - began) / 1_000_000);
        for (GarbageCollectorMXBean each : ManagementFactory.getGarbageCollectorMXBeans()) {
            said.append(", \"" + each.getName() + "\": [" + each.getCollectionCount() + ", " + each.getCollectionTime() + "]");
        }
        System.out.println(said + more + "}");
        System.in.read();
        Runtime.getRuntime().halt(0);
    }
}
