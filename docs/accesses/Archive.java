import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayDeque;
import java.util.Random;

/** A server that keeps the latest pages that it has read, 40,000 bytes each, and makes small garbage at each request. */
class Archive {
    static final ArrayDeque<byte[]> pages = new ArrayDeque<>();
    static long sum;

    static byte[] readPage(Random chance) {
        byte[] page = new byte[40000];
        page[chance.nextInt(page.length)] = 1;
        return page;
    }

    static String answer(int number) {
        StringBuilder text = new StringBuilder();
        for (int part = 0; part < 8; part++)
            text.append(number).append('/').append(part);
        return text.toString();
    }

    public static void main(String[] arguments) {
        int requests = Integer.parseInt(arguments[0]), kept = Integer.parseInt(arguments[1]);
        Random chance = new Random(1);
        for (int number = 0; number < requests; number++) {
            if (pages.size() == kept)
                pages.removeFirst();
            pages.addLast(readPage(chance));
            for (int line = 0; line < 40; line++)
                sum += answer(number).length();
        }
        StringBuilder text = new StringBuilder();
        for (GarbageCollectorMXBean each : ManagementFactory.getGarbageCollectorMXBeans())
            text.append(each.getName() + ": " + each.getCollectionCount() + " in " + each.getCollectionTime() + " ms; ");
        System.out.println(text + "sum " + sum);
    }
}
