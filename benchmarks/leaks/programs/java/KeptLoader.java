import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;

/**
 * A server that loads each plug-in anew when it is deployed again; a listener of the old one is not removed, and keeps its class loader.
 *
 * Cause: an object of each class loader stays in a list, and so does all that the loader's classes have in static fields
 * Holder: KeptLoader\.LISTENERS
 */
public final class KeptLoader {
    private static final List<Runnable> LISTENERS = new ArrayList<>();

    /** What is deployed; each loader has a class of its own of this name, with a table of its own. */
    public static final class Plugin implements Runnable {
        static final byte[][] TABLE = new byte[64][4096];

        @Override
        public void run() {
            TABLE[0][0]++;
        }
    }

    private static final class PluginLoader extends ClassLoader {
        private final byte[] code;

        PluginLoader(byte[] code) {
            super(KeptLoader.class.getClassLoader());
            this.code = code;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.equals("KeptLoader$Plugin")) return super.loadClass(name, resolve);
            Class<?> known = findLoadedClass(name);
            return known != null ? known : defineClass(name, code, 0, code.length);
        }
    }

    private static byte[] code() throws IOException {
        try (InputStream file = KeptLoader.class.getResourceAsStream("KeptLoader$Plugin.class")) {
            return file.readAllBytes();
        }
    }

    public static void main(String[] arguments) throws Exception {
        Pace.begin();
        byte[] code = code();
        while (true) {
            Class<?> plugin = new PluginLoader(code).loadClass("KeptLoader$Plugin");
            Runnable listener = (Runnable) plugin.getDeclaredConstructor().newInstance();
            listener.run();
            LISTENERS.add(listener);
            Pace.keep(64 * 4112);
        }
    }
}
