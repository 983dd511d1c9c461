import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.util.JavacTask;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/** Keeps all trees and symbols that the Java compiler makes of so many classes: Symbols CLASSES. */
public class Symbols {
    static final List<Object> kept = new ArrayList<>();

    static class Source extends SimpleJavaFileObject {
        final String text;

        Source(int number) {
            super(URI.create("string:///C" + number + ".java"), Kind.SOURCE);
            StringBuilder made = new StringBuilder("import java.util.*;\npublic class C" + number + " {\n");
            for (int m = 0; m < 20; m++)
                made.append("  Map<String, List<Integer>> f").append(m).append(" = new HashMap<>();\n")
                    .append("  public int m").append(m).append("(String s, List<String> l) { int x = ").append(m)
                    .append("; for (String each : l) { x += each.length() + f").append(m)
                    .append(".getOrDefault(s, new ArrayList<>()).size() + Objects.hash(each, x); } return x; }\n");
            text = made.append("}\n").toString();
        }

        @Override
        public CharSequence getCharContent(boolean ignored) {
            return text;
        }
    }

    public static void main(String[] arguments) throws Exception {
        List<JavaFileObject> sources = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(arguments[0]); i++)
            sources.add(new Source(i));
        JavacTask task = (JavacTask) ToolProvider.getSystemJavaCompiler().getTask(null, null, null, List.of("-proc:none"), null, sources);
        for (CompilationUnitTree unit : task.parse())
            kept.add(unit);
        task.analyze().forEach(kept::add);
        kept.add(task);
        System.out.println("ready");
        System.in.read();
        System.out.println("done");
        System.in.read();
    }
}
