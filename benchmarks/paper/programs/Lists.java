import java.util.Random;

/** Short lists of small objects, or arrays as large as them, replaced at random: most die young, the others fill the old generation. Lists small|large STEPS. */
public class Lists {
    static class Cell {
        Cell next;
        long value;
    }

    static final int KEPT = 20;
    static final int WASTED = 60;
    static volatile Object waste;

    public static void main(String[] arguments) throws Exception {
        boolean small = arguments[0].equals("small");
        Object[] kept = new Object[60_000];
        Random random = new Random(1);
        System.out.println("ready");
        System.in.read();
        long began = System.nanoTime();
        for (int step = 0; step < Integer.parseInt(arguments[1]); step++) {
            kept[random.nextInt(kept.length)] = small ? list(KEPT) : new byte[KEPT * 24 - 16];
            if (step % 100 == 0)
                Thread.sleep(1); // leaves a processor to who watches
            waste = small ? list(WASTED) : new byte[WASTED * 24 - 16];
        }
        System.out.println("done " + (System.nanoTime() - began));
        System.in.read();
    }

    static Cell list(int length) {
        Cell first = null;
        for (int i = 0; i < length; i++) {
            Cell cell = new Cell();
            cell.next = first;
            first = cell;
        }
        return first;
    }
}
