import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassHierarchyResolver;
import java.lang.classfile.ClassModel;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.CodeElement;
import java.lang.classfile.CodeModel;
import java.lang.classfile.CodeTransform;
import java.lang.classfile.Instruction;
import java.lang.classfile.Label;
import java.lang.classfile.MethodModel;
import java.lang.classfile.MethodTransform;
import java.lang.classfile.Opcode;
import java.lang.classfile.TypeKind;
import java.lang.classfile.instruction.BranchInstruction;
import java.lang.classfile.instruction.ExceptionCatch;
import java.lang.classfile.instruction.LabelTarget;
import java.lang.classfile.instruction.LookupSwitchInstruction;
import java.lang.classfile.instruction.NewMultiArrayInstruction;
import java.lang.classfile.instruction.NewObjectInstruction;
import java.lang.classfile.instruction.NewPrimitiveArrayInstruction;
import java.lang.classfile.instruction.NewReferenceArrayInstruction;
import java.lang.classfile.instruction.ReturnInstruction;
import java.lang.classfile.instruction.TableSwitchInstruction;
import java.lang.classfile.instruction.ThrowInstruction;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Counts how often control went along each edge of the flow graph of each method of a program: {@code -javaagent:JAR=FILE}, Java 25.
 *
 * <p>Only for measuring plans of counters: it counts everything, and is slow. The file has a line for each method, in JSON.
 */
public final class FlowCounts {
    private static final int OUTSIDE = -1;
    private static final int MOST_BLOCKS = 1500;
    private static final ClassDesc HERE = ClassDesc.of("FlowCounts");
    private static final MethodTypeDesc ENTER =
            MethodTypeDesc.of(ConstantDescs.CD_int, ConstantDescs.CD_int, ConstantDescs.CD_int, ConstantDescs.CD_int);
    private static final List<Graph> GRAPHS = new ArrayList<>();
    private static volatile AtomicLongArray[] counts = new AtomicLongArray[1 << 17];

    private FlowCounts() {}

    public static void premain(String file, Instrumentation instrumentation) {
        instrumentation.addTransformer(new ClassFileTransformer() {
            @Override
            public byte[] transform(
                    ClassLoader loader, String name, Class<?> again, ProtectionDomain domain, byte[] code) {
                if (loader == null || loader == ClassLoader.getPlatformClassLoader()) {
                    return null;
                }
                try {
                    return counted(loader, code);
                } catch (Throwable error) {
                    System.err.println("FlowCounts: " + name + ": " + error);
                    return null;
                }
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> write(Path.of(file))));
    }

    /** Control enters a block of a method, or leaves the method. */
    public static int enter(int before, int block, int method) {
        AtomicLongArray table = counts[method];
        int width = GRAPHS_WIDTH[method];
        table.getAndIncrement((before + 1) * width + block + 1);
        return block;
    }

    private static final int[] GRAPHS_WIDTH = new int[1 << 17];

    private static final class Graph {
        final int number;
        final String name;
        /** Block that begins with an instruction, by the number of the instruction. */
        final Map<Integer, Integer> starts = new HashMap<>();
        final Set<Integer> handlers = new HashSet<>();
        final List<Integer> sites = new ArrayList<>();
        /** (source, target) and how control goes there. */
        final Map<List<Integer>, String> edges = new LinkedHashMap<>();

        Graph(int number, String name) {
            this.number = number;
            this.name = name;
        }
    }

    private static byte[] counted(ClassLoader loader, byte[] code) {
        ClassHierarchyResolver resolver = ClassHierarchyResolver.ofResourceParsing(loader)
                .orElse(ClassHierarchyResolver.defaultResolver());
        ClassFile file = ClassFile.of(ClassFile.ClassHierarchyResolverOption.of(resolver));
        ClassModel model = file.parse(code);
        return file.transformClass(model, (builder, element) -> {
            if (element instanceof MethodModel method && method.code().isPresent()) {
                Graph graph = graph(model.thisClass().asInternalName() + "." + method.methodName().stringValue(), method.code().get());
                if (graph != null) {
                    builder.transformMethod(method, MethodTransform.transformingCode(CodeTransform.ofStateful(() -> new Counting(graph))));
                    return;
                }
            }
            builder.with(element);
        });
    }

    private static synchronized Graph graph(String name, CodeModel code) {
        Graph graph = new Graph(GRAPHS.size(), name);
        Set<Label> targets = new HashSet<>();
        Set<Label> handlers = new HashSet<>();
        for (CodeElement each : code.elementList()) {
            targets.addAll(targetsOf(each));
            if (each instanceof ExceptionCatch caught) {
                handlers.add(caught.handler());
                targets.add(caught.handler());
            }
        }
        Map<Label, Integer> blockOf = new HashMap<>();
        List<Label> waiting = new ArrayList<>();
        boolean pending = true;
        int block = -1;
        int at = -1;
        for (CodeElement each : code.elementList()) {
            if (each instanceof LabelTarget target && targets.contains(target.label())) {
                pending = true;
                waiting.add(target.label());
            }
            if (!(each instanceof Instruction)) {
                continue;
            }
            at++;
            if (pending) {
                block++;
                graph.starts.put(at, block);
                graph.sites.add(0);
                for (Label label : waiting) {
                    blockOf.put(label, block);
                    if (handlers.contains(label)) {
                        graph.handlers.add(block);
                    }
                }
                waiting.clear();
                pending = false;
            }
            if (isSite(each)) {
                graph.sites.set(block, graph.sites.get(block) + 1);
            }
            if (isEnd(each) || !targetsOf(each).isEmpty()) {
                pending = true;
            }
        }
        if (block < 0 || block > MOST_BLOCKS || graph.sites.stream().allMatch(n -> n == 0)) {
            return null;
        }
        graph.edges.put(List.of(OUTSIDE, 0), "entry");
        block = -1;
        at = -1;
        CodeElement last = null;
        for (CodeElement each : code.elementList()) {
            if (!(each instanceof Instruction)) {
                continue;
            }
            Integer begins = graph.starts.get(++at);
            if (begins != null) {
                if (last != null && !isEnd(last) && !isGoto(last)) {
                    graph.edges.putIfAbsent(List.of(block, begins), "fall");
                }
                block = begins;
            }
            for (Label to : targetsOf(each)) {
                graph.edges.putIfAbsent(List.of(block, blockOf.get(to)), isGoto(each) ? "goto" : "jump");
            }
            if (isEnd(each)) {
                graph.edges.put(List.of(block, OUTSIDE), "exit");
            }
            last = each;
        }
        for (int handler : graph.handlers) {
            graph.edges.put(List.of(OUTSIDE, handler), "handler");
        }
        int width = block + 2;
        GRAPHS_WIDTH[graph.number] = width;
        counts[graph.number] = new AtomicLongArray(width * width);
        GRAPHS.add(graph);
        return graph;
    }

    private static boolean isSite(CodeElement each) {
        return each instanceof NewObjectInstruction || each instanceof NewReferenceArrayInstruction
                || each instanceof NewPrimitiveArrayInstruction || each instanceof NewMultiArrayInstruction;
    }

    private static boolean isEnd(CodeElement each) {
        return each instanceof ReturnInstruction || each instanceof ThrowInstruction;
    }

    private static boolean isGoto(CodeElement each) {
        return each instanceof BranchInstruction jump && (jump.opcode() == Opcode.GOTO || jump.opcode() == Opcode.GOTO_W)
                || each instanceof TableSwitchInstruction || each instanceof LookupSwitchInstruction;
    }

    private static List<Label> targetsOf(CodeElement each) {
        List<Label> found = new ArrayList<>();
        switch (each) {
            case BranchInstruction jump -> found.add(jump.target());
            case TableSwitchInstruction jump -> {
                found.add(jump.defaultTarget());
                jump.cases().forEach(way -> found.add(way.target()));
            }
            case LookupSwitchInstruction jump -> {
                found.add(jump.defaultTarget());
                jump.cases().forEach(way -> found.add(way.target()));
            }
            default -> { }
        }
        return found;
    }

    private static final class Counting implements CodeTransform {
        private final Graph graph;
        private int before;
        private int at = -1;
        private int block;

        Counting(Graph graph) {
            this.graph = graph;
        }

        @Override
        public void atStart(CodeBuilder builder) {
            before = builder.allocateLocal(TypeKind.INT);
            builder.loadConstant(OUTSIDE).istore(before);
        }

        @Override
        public void accept(CodeBuilder builder, CodeElement element) {
            Integer begins = element instanceof Instruction ? graph.starts.get(++at) : null;
            if (begins != null) {
                block = begins;
                builder.iload(before).loadConstant(block).loadConstant(graph.number).invokestatic(HERE, "enter", ENTER).istore(before);
            }
            if (isEnd(element)) {
                builder.loadConstant(block).loadConstant(OUTSIDE).loadConstant(graph.number).invokestatic(HERE, "enter", ENTER).pop();
            }
            builder.with(element);
        }
    }

    private static synchronized void write(Path path) {
        try (Writer out = Files.newBufferedWriter(path)) {
            for (Graph graph : GRAPHS) {
                int width = GRAPHS_WIDTH[graph.number];
                AtomicLongArray table = counts[graph.number];
                StringBuilder line = new StringBuilder();
                for (Map.Entry<List<Integer>, String> each : graph.edges.entrySet()) {
                    int from = each.getKey().get(0);
                    int to = each.getKey().get(1);
                    long count = 0;
                    if (each.getValue().equals("handler")) {
                        for (int block = 0; block < width - 1; block++) {
                            if (!graph.edges.containsKey(List.of(block, to))) {
                                count += table.get((block + 1) * width + to + 1);
                            }
                        }
                    } else {
                        count = table.get((from + 1) * width + to + 1);
                    }
                    line.append(line.isEmpty() ? "" : ", ").append("[" + from + ", " + to + ", \"" + each.getValue() + "\", " + count + "]");
                }
                out.write("{\"name\": \"" + graph.name + "\", \"sites\": " + graph.sites + ", \"edges\": [" + line + "]}\n");
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
