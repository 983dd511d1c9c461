package gcspy;

import java.io.IOException;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Counts each allocation site of a program's classes: {@code -javaagent:JAR=FOLDER}, or loaded into a JVM that runs.
 *
 * <p>With {@code site:FOLDER} each site has a counter of its own. The argument {@code stop} gives all classes their own code back. The library that rewrites classes is the JDK's own: ASM up to 23,
 * {@code java.lang.classfile} from 24 on. All classes but the rewriters are those of Java 8.
 */
public final class CountingAgent {
    /** Rewrites one class; null: it has no sites. */
    interface Rewriter {
        byte[] rewrite(ClassLoader loader, String name, byte[] code, SiteList sites) throws Exception;
    }

    /** Most counters; sites beyond have none. */
    static final int CAPACITY = 1 << 17;

    private static final List<Object> KEPT = new ArrayList<>();
    private static final String EACH_SITE = "site:";
    private static final int LAST_WITH_ASM = 23;
    private static final long HELD_MILLIS = 1000;
    private static final int CLASSES_AT_A_TIME = 50;
    private static ClassFileTransformer running;

    private CountingAgent() {}

    /** Start with the JVM. What cannot be counted is said in one line, and the program runs without counters. */
    public static void premain(String argument, Instrumentation instrumentation) {
        String refused = startOrRefuse(argument, instrumentation);
        if (refused != null) {
            System.err.println("gcspy: " + refused);
        }
    }

    /** Start, or stop, in a JVM that runs; why it does not start is in the file {@code refused}. */
    public static synchronized void agentmain(String argument, Instrumentation instrumentation) {
        stop(running, instrumentation);
        if (!argument.equals("stop") && startOrRefuse(argument, instrumentation) == null) {
            retransform(instrumentation);
        }
    }

    /** Start; return why that is not possible, or null. */
    private static String startOrRefuse(String argument, Instrumentation instrumentation) {
        boolean shares = !argument.startsWith(EACH_SITE);
        Path folder = Paths.get(shares ? argument : argument.substring(EACH_SITE.length()));
        try {
            start(folder, shares, instrumentation);
            return null;
        } catch (Throwable error) { // nothing of the agent may end the program
            Throwable first = error instanceof InvocationTargetException ? error.getCause() : error;
            boolean isMissing = first instanceof ClassNotFoundException || first instanceof NoClassDefFoundError;
            String why = isMissing
                    ? "the agent has no part for it: install a JDK of that version where gcspy is installed, and gcspy again"
                    : String.valueOf(first);
            String line = "no allocation sites are counted in this JVM, Java " + version() + ": " + why.replaceAll("\\s+", " ");
            try {
                Files.write(folder.resolve("refused"), line.getBytes(StandardCharsets.UTF_8));
            } catch (IOException | RuntimeException another) {
                // Whoever asked sees that there are no counts.
            }
            return line;
        }
    }

    static boolean isJava8() {
        return version() == 8;
    }

    private static int version() {
        String text = System.getProperty("java.specification.version");
        return Integer.parseInt(text.startsWith("1.") ? text.substring(2) : text);
    }

    /** Keep something for ever. */
    static synchronized void keep(Object what) {
        KEPT.add(what);
    }

    /** Return a file of counters. */
    static MappedByteBuffer mapped(Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(
                file, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            MappedByteBuffer found = channel.map(FileChannel.MapMode.READ_WRITE, 0, 8L * CAPACITY);
            found.order(ByteOrder.nativeOrder());
            return found;
        }
    }

    private static synchronized void start(Path folder, boolean shares, Instrumentation instrumentation) throws Exception {
        Rewriter rewriter = rewriter(instrumentation);
        String counters = isJava8() ? "gcspy.OldSiteCounters" : "gcspy.SiteCounters";
        Class.forName(counters).getDeclaredMethod("open", Path.class).invoke(null, folder.resolve("counters"));
        SiteList sites = new SiteList(folder.resolve("sites"), shares);
        running = new ClassFileTransformer() {
            @Override
            public byte[] transform(
                    ClassLoader loader, String name, Class<?> again, ProtectionDomain domain, byte[] code) {
                if (!isOfProgram(loader, name)) {
                    return null;
                }
                long before = System.nanoTime();
                try {
                    byte[] counted = rewriter.rewrite(loader, name, code, sites);
                    sites.rewritten(System.nanoTime() - before);
                    return counted;
                } catch (Throwable error) { // the class runs as it is
                    sites.failed(name, error);
                    return null;
                }
            }
        };
        instrumentation.addTransformer(running, true);
        Path held = folder.resolve("held");
        if (Files.exists(held)) {
            watch(held, running, instrumentation);
        }
    }

    /** Stop when whoever asked for counts no longer holds the lock: it may have been killed. */
    private static void watch(Path held, ClassFileTransformer mine, Instrumentation instrumentation) {
        Thread watcher = new Thread(() -> {
            while (isHeld(held)) {
                try {
                    Thread.sleep(HELD_MILLIS);
                } catch (InterruptedException error) {
                    return;
                }
            }
            stop(mine, instrumentation);
        }, "gcspy-count");
        watcher.setDaemon(true);
        watcher.start();
    }

    private static boolean isHeld(Path held) {
        try (FileChannel channel = FileChannel.open(held, StandardOpenOption.WRITE)) {
            return channel.tryLock() == null;
        } catch (IOException error) { // it is gone
            return false;
        }
    }

    private static synchronized void stop(ClassFileTransformer mine, Instrumentation instrumentation) {
        if (mine != null && running == mine) {
            instrumentation.removeTransformer(mine);
            running = null;
            retransform(instrumentation);
        }
    }

    private static boolean isOfProgram(ClassLoader loader, String name) {
        return loader != null && loader != PLATFORM && name != null && !name.startsWith("gcspy/");
    }

    /** The loader of the JDK's own extensions: parent of that of the program. */
    private static final ClassLoader PLATFORM = ClassLoader.getSystemClassLoader().getParent();

    private static Rewriter rewriter(Instrumentation instrumentation) throws Exception {
        if (version() > LAST_WITH_ASM) {
            return (Rewriter) Class.forName("gcspy.ClassFileSites").getDeclaredConstructor().newInstance();
        }
        if (!isJava8()) {
            openAsm(instrumentation);
        }
        String counters = isJava8() ? "gcspy/OldSiteCounters" : "gcspy/SiteCounters";
        return (Rewriter) Class.forName("gcspy.AsmSites").getDeclaredConstructor(String.class).newInstance(counters);
    }

    /** Let this class use the ASM inside of the JDK: {@code redefineModule}, by its name, as Java 8 has no modules. */
    private static void openAsm(Instrumentation instrumentation) throws ReflectiveOperationException {
        Method moduleOf = Class.class.getMethod("getModule");
        Map<String, Set<Object>> exports = Collections.singletonMap(
                "jdk.internal.org.objectweb.asm", Collections.singleton(moduleOf.invoke(CountingAgent.class)));
        Class<?> module = Class.forName("java.lang.Module");
        Method redefine = Instrumentation.class.getMethod(
                "redefineModule", module, Set.class, Map.class, Map.class, Set.class, Map.class);
        Set<Object> none = Collections.emptySet();
        Map<Object, Object> nothing = Collections.emptyMap();
        redefine.invoke(instrumentation, moduleOf.invoke(Object.class), none, exports, nothing, none, nothing);
    }

    private static void retransform(Instrumentation instrumentation) {
        List<Class<?>> some = new ArrayList<>();
        for (Class<?> each : instrumentation.getAllLoadedClasses()) {
            if (isOfProgram(each.getClassLoader(), each.getName().replace('.', '/')) && instrumentation.isModifiableClass(each)) {
                some.add(each);
            }
            if (some.size() >= CLASSES_AT_A_TIME) {
                retransform(instrumentation, some);
            }
        }
        retransform(instrumentation, some);
    }

    private static void retransform(Instrumentation instrumentation, List<Class<?>> some) {
        try {
            if (!some.isEmpty()) {
                instrumentation.retransformClasses(some.toArray(new Class<?>[0]));
            }
        } catch (Throwable error) { // one of them cannot be: each by itself
            for (Class<?> each : some) {
                try {
                    instrumentation.retransformClasses(each);
                } catch (Throwable another) {
                    // It stays as it is.
                }
            }
        }
        some.clear();
    }
}
