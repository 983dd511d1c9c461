import java.io.File;
import java.nio.file.*;
import java.util.*;
import java.util.stream.*;
import javax.tools.*;

/** javac on a tree of sources of java.base, so many times over: FOLDER OUTPUT ROUNDS PACKAGE... */
public class Compiling {
    public static void main(String[] arguments) throws Exception {
        Path root = Paths.get(arguments[0]);
        List<File> files = new ArrayList<>();
        for (String part : Arrays.asList(arguments).subList(3, arguments.length)) {
            try (Stream<Path> tree = Files.walk(root.resolve(part))) {
                tree.filter(path -> path.toString().endsWith(".java") && !path.endsWith("package-info.java")).sorted().forEach(path -> files.add(path.toFile()));
            }
        }
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        for (int round = 0; round < Integer.parseInt(arguments[2]); round++) {
            List<String> options = Arrays.asList(
                "-d", arguments[1], "-proc:none", "-implicit:none", "-nowarn", "-XDignore.symbol.file", "-Xmaxerrs", "1",
                "--patch-module", "java.base=" + root);
            try (StandardJavaFileManager manager = compiler.getStandardFileManager(null, null, null)) {
                boolean well = compiler.getTask(null, manager, d -> { if (d.getKind() == Diagnostic.Kind.ERROR) System.err.println(d); }, options, null, manager.getJavaFileObjectsFromFiles(files)).call();
                if (!well) throw new IllegalStateException("javac refuses the sources");
            }
        }
    }
}
