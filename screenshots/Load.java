import java.util.*;

/** A cache whose entries are replaced at random, and garbage beside it: young collections, promotion, marking, and old regions that are half dead. MEGABYTES */
public class Load {
    static volatile Object waste;

    public static void main(String[] arguments) throws Exception {
        int entries = Integer.parseInt(arguments[0]) * 1000;
        Map<Integer, byte[]> cache = new HashMap<>();
        Random random = new Random(1);
        System.out.println("ready");
        for (int step = 0;; step++) {
            cache.put(random.nextInt(entries), new byte[500 + random.nextInt(1000)]);
            for (int more = 0; more < 4; more++) waste = new byte[500];
            if (step % 40000 == 0) cache.put(-(step / 40000 % 6), new byte[900_000]);
            if (step % 50 == 0) Thread.sleep(0, 500_000);
        }
    }
}
