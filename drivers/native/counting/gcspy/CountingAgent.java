package gcspy;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.file.Path;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Counts each allocation site of a program's classes: {@code -javaagent:JAR=FOLDER}, or loaded into a JVM that runs.
 *
 * <p>The argument {@code stop} gives all classes their own code back. The library that rewrites classes is the JDK's own: ASM up to 23,
 * {@code java.lang.classfile} from 24 on.
 */
public final class CountingAgent {
    /** Rewrites one class; null: it has no sites. */
    interface Rewriter {
        byte[] rewrite(ClassLoader loader, String name, byte[] code, SiteList sites) throws Exception;
    }

    private static final int LAST_WITH_ASM = 23;
    private static final int CLASSES_AT_A_TIME = 50;
    private static ClassFileTransformer running;

    private CountingAgent() {}

    public static void premain(String argument, Instrumentation instrumentation) throws Exception {
        start(Path.of(argument), instrumentation);
    }

    public static synchronized void agentmain(String argument, Instrumentation instrumentation) throws Exception {
        if (running != null) {
            instrumentation.removeTransformer(running);
            running = null;
            retransform(instrumentation);
        }
        if (!argument.equals("stop")) {
            start(Path.of(argument), instrumentation);
            retransform(instrumentation);
        }
    }

    private static synchronized void start(Path folder, Instrumentation instrumentation) throws Exception {
        SiteCounters.open(folder.resolve("counters"));
        SiteList sites = new SiteList(folder.resolve("sites"));
        Rewriter rewriter = rewriter(instrumentation);
        running = new ClassFileTransformer() {
            @Override
            public byte[] transform(
                    ClassLoader loader, String name, Class<?> again, ProtectionDomain domain, byte[] code) {
                if (!isOfProgram(loader, name)) {
                    return null;
                }
                try {
                    byte[] counted = rewriter.rewrite(loader, name, code, sites);
                    sites.flush();
                    return counted;
                } catch (Throwable error) { // the class runs as it is
                    sites.failed(name, error);
                    return null;
                }
            }
        };
        instrumentation.addTransformer(running, true);
    }

    private static boolean isOfProgram(ClassLoader loader, String name) {
        return loader != null && loader != ClassLoader.getPlatformClassLoader() && name != null && !name.startsWith("gcspy/");
    }

    private static Rewriter rewriter(Instrumentation instrumentation) throws Exception {
        String name = "gcspy.ClassFileSites";
        if (Runtime.version().feature() <= LAST_WITH_ASM) {
            name = "gcspy.AsmSites";
            Map<String, Set<Module>> exports =
                    Map.of("jdk.internal.org.objectweb.asm", Set.of(CountingAgent.class.getModule()));
            instrumentation.redefineModule(
                    Object.class.getModule(), Set.of(), exports, Map.of(), Set.of(), Map.of());
        }
        return (Rewriter) Class.forName(name).getDeclaredConstructor().newInstance();
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
