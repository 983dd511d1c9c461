package gcspy;

import jdk.internal.org.objectweb.asm.ClassReader;
import jdk.internal.org.objectweb.asm.ClassVisitor;
import jdk.internal.org.objectweb.asm.ClassWriter;
import jdk.internal.org.objectweb.asm.Handle;
import jdk.internal.org.objectweb.asm.Label;
import jdk.internal.org.objectweb.asm.MethodVisitor;
import jdk.internal.org.objectweb.asm.Opcodes;
import jdk.internal.org.objectweb.asm.Type;

/** Puts counters behind allocations with the ASM that JDKs up to 23 have inside. */
final class AsmSites implements CountingAgent.Rewriter {
    private static final String[] PRIMITIVES = {"boolean", "char", "float", "double", "byte", "short", "int", "long"};
    private static final int FIRST_PRIMITIVE = 4;
    private static final int FIRST_WITH_FRAMES = 51;
    private static final int API = latest();

    private final String counters;

    /** Args: the class with the counters. */
    AsmSites(String counters) {
        this.counters = counters;
    }

    /** Return the latest version of ASM's interface that this JDK has. */
    private static int latest() {
        for (String name : new String[] {"ASM9", "ASM8", "ASM7", "ASM6"}) {
            try {
                return Opcodes.class.getField(name).getInt(null);
            } catch (ReflectiveOperationException error) {
                continue;
            }
        }
        return Opcodes.ASM5;
    }

    @Override
    public byte[] rewrite(ClassLoader loader, String name, byte[] code, SiteList sites) {
        ClassReader reader = new ClassReader(code);
        ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
        Sites visitor = new Sites(writer, name, sites, counters);
        reader.accept(visitor, 0);
        return visitor.found ? writer.toByteArray() : null;
    }

    private static final class Sites extends ClassVisitor {
        private final String name;
        private final SiteList sites;
        private String source;
        private final String counters;
        private boolean found;
        private boolean hasFrames;

        Sites(ClassVisitor next, String name, SiteList sites, String counters) {
            super(API, next);
            this.counters = counters;
            this.name = name;
            this.sites = sites;
            this.source = name + ".class";
        }

        @Override
        public void visit(int version, int access, String of, String signature, String above, String[] interfaces) {
            super.visit(version, access, of, signature, above, interfaces);
            hasFrames = (version & 0xffff) >= FIRST_WITH_FRAMES;
        }

        /** Pass on a permitted subclass: the ASM in JDK 17 calls this and otherwise refuses sealed classes. */
        public void visitPermittedSubclassExperimental(String of) {
            try {
                ClassVisitor.class.getMethod("visitPermittedSubclassExperimental", String.class).invoke(cv, of);
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public void visitSource(String file, String debug) {
            super.visitSource(file, debug);
            if (file != null) {
                source = name.substring(0, name.lastIndexOf('/') + 1) + file;
            }
        }

        @Override
        public MethodVisitor visitMethod(int access, String method, String type, String signature, String[] thrown) {
            String where = name.replace('/', '.') + "." + method;
            SharedCounter shared = new SharedCounter(sites, (access & Opcodes.ACC_STATIC) == 0);
            return new MethodVisitor(API, super.visitMethod(access, method, type, signature, thrown)) {
                private int line;

                private void count(String what, boolean mayThrow) {
                    int counter = shared.site(source, line, where, what, mayThrow);
                    if (counter >= 0) {
                        found = true;
                        super.visitLdcInsn(counter);
                        super.visitMethodInsn(Opcodes.INVOKESTATIC, counters, "add", "(I)V", false);
                    }
                }

                @Override
                public void visitLineNumber(int number, Label start) {
                    line = number;
                    super.visitLineNumber(number, start);
                }

                @Override
                public void visitLabel(Label label) {
                    if (!hasFrames) { // it may be jumped to
                        shared.close();
                    }
                    super.visitLabel(label);
                }

                @Override
                public void visitFrame(int kind, int locals, Object[] local, int depth, Object[] stack) {
                    shared.close(); // it is jumped to
                    super.visitFrame(kind, locals, local, depth, stack);
                }

                @Override
                public void visitTypeInsn(int op, String of) {
                    super.visitTypeInsn(op, of);
                    // Behind it: frames name the place of `new`, at which nothing else may stand.
                    if (op == Opcodes.NEW || op == Opcodes.ANEWARRAY) {
                        String made = Type.getObjectType(of).getClassName();
                        count(op == Opcodes.NEW ? made : made + "[]", op == Opcodes.ANEWARRAY);
                    } else {
                        shared.close();
                    }
                }

                @Override
                public void visitIntInsn(int op, int operand) {
                    super.visitIntInsn(op, operand);
                    if (op == Opcodes.NEWARRAY) {
                        count(PRIMITIVES[operand - FIRST_PRIMITIVE] + "[]", true);
                    }
                }

                @Override
                public void visitMultiANewArrayInsn(String of, int dimensions) {
                    super.visitMultiANewArrayInsn(of, dimensions);
                    count(Type.getType(of).getClassName(), true);
                }

                @Override
                public void visitInsn(int op) {
                    shared.plain(op);
                    super.visitInsn(op);
                }

                @Override
                public void visitVarInsn(int op, int slot) {
                    shared.variable(op, slot);
                    super.visitVarInsn(op, slot);
                }

                @Override
                public void visitFieldInsn(int op, String owner, String name, String type) {
                    shared.field(op);
                    super.visitFieldInsn(op, owner, name, type);
                }

                @Override
                public void visitMethodInsn(int op, String owner, String name, String type, boolean ofInterface) {
                    shared.call(owner, name, type);
                    super.visitMethodInsn(op, owner, name, type, ofInterface);
                }

                @Override
                public void visitInvokeDynamicInsn(String name, String type, Handle handle, Object... arguments) {
                    shared.close();
                    super.visitInvokeDynamicInsn(name, type, handle, arguments);
                }

                @Override
                public void visitJumpInsn(int op, Label to) {
                    shared.close();
                    super.visitJumpInsn(op, to);
                }

                @Override
                public void visitLdcInsn(Object constant) {
                    if (!(constant instanceof Number) && !(constant instanceof String)) {
                        shared.close();
                    }
                    super.visitLdcInsn(constant);
                }

                @Override
                public void visitTableSwitchInsn(int least, int largest, Label otherwise, Label... to) {
                    shared.close();
                    super.visitTableSwitchInsn(least, largest, otherwise, to);
                }

                @Override
                public void visitLookupSwitchInsn(Label otherwise, int[] keys, Label[] to) {
                    shared.close();
                    super.visitLookupSwitchInsn(otherwise, keys, to);
                }
            };
        }
    }
}
