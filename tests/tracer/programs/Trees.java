import java.util.ArrayList;
import java.util.List;

/** Makes trees of numbered nodes, keeps some, collects, and says how many nodes it made and kept. */
public class Trees {
    static final class Node {
        final int number;
        final Node left, right;

        Node(int number, Node left, Node right) {
            this.number = number;
            this.left = left;
            this.right = right;
        }
    }

    static int made;
    static final List<Node> kept = new ArrayList<>();

    static Node make(int depth) {
        return new Node(++made, depth == 0 ? null : make(depth - 1), depth == 0 ? null : make(depth - 1));
    }

    static void work(int rounds, int depth) {
        for (int round = 0; round < rounds; round++) {
            Node tree = make(depth);
            if (round % 10 == 0) {
                kept.add(tree);
            }
        }
    }

    public static void main(String[] words) {
        int depth = Integer.parseInt(words[1]);
        work(Integer.parseInt(words[0]), depth);
        System.gc();
        System.out.println(made + " " + kept.size() * ((2 << depth) - 1));
    }
}
