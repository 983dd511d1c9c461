import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.Random;

/** Stores references into so many cards of the old generation before each young collection: Cards ROUNDS CARDS... */
public class Cards {
    static final int PER_CARD = 128; // references of 4 bytes in a card of 512 bytes
    static final int MOST = 48_000;
    static volatile Object waste;

    public static void main(String[] arguments) throws Exception {
        int rounds = Integer.parseInt(arguments[0]);
        Object[] old = new Object[MOST * PER_CARD]; // too large for the young generation
        Object stored = new Object();
        int[] order = new int[MOST];
        Random random = new Random(1);
        for (int i = 0; i < MOST; i++) {
            int place = random.nextInt(i + 1);
            order[i] = order[place];
            order[place] = i;
        }
        GarbageCollectorMXBean young = ManagementFactory.getGarbageCollectorMXBeans().get(0);
        System.gc();
        System.out.println("ready");
        System.in.read();
        for (int at = 1; at < arguments.length; at++)
            for (int round = 0; round < rounds; round++) {
                for (int i = 0; i < Integer.parseInt(arguments[at]); i++)
                    old[order[i] * PER_CARD + i % PER_CARD] = stored;
                for (long before = young.getCollectionCount(); young.getCollectionCount() == before;)
                    waste = new byte[1000];
            }
        System.out.println("done");
        System.in.read();
    }
}
