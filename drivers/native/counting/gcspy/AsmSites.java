package gcspy;

import jdk.internal.org.objectweb.asm.ClassReader;
import jdk.internal.org.objectweb.asm.ClassVisitor;
import jdk.internal.org.objectweb.asm.ClassWriter;
import jdk.internal.org.objectweb.asm.Label;
import jdk.internal.org.objectweb.asm.MethodVisitor;
import jdk.internal.org.objectweb.asm.Opcodes;
import jdk.internal.org.objectweb.asm.Type;

/** Puts counters before allocations with the ASM that JDKs up to 23 have inside. */
final class AsmSites implements CountingAgent.Rewriter {
    private static final String[] PRIMITIVES = {"boolean", "char", "float", "double", "byte", "short", "int", "long"};
    private static final int FIRST_PRIMITIVE = 4;

    @Override
    public byte[] rewrite(ClassLoader loader, String name, byte[] code, SiteList sites) {
        ClassReader reader = new ClassReader(code);
        ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
        Sites visitor = new Sites(writer, name, sites);
        reader.accept(visitor, 0);
        return visitor.found ? writer.toByteArray() : null;
    }

    private static final class Sites extends ClassVisitor {
        private final String name;
        private final SiteList sites;
        private String source;
        private boolean found;

        Sites(ClassVisitor next, String name, SiteList sites) {
            super(Opcodes.ASM8, next);
            this.name = name;
            this.sites = sites;
            this.source = name + ".class";
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
            return new MethodVisitor(Opcodes.ASM8, super.visitMethod(access, method, type, signature, thrown)) {
                private int line;

                private void count(String what) {
                    int site = sites.add(source, line, where, what);
                    if (site >= 0) {
                        found = true;
                        super.visitLdcInsn(site);
                        super.visitMethodInsn(Opcodes.INVOKESTATIC, "gcspy/SiteCounters", "add", "(I)V", false);
                    }
                }

                @Override
                public void visitLineNumber(int number, Label start) {
                    line = number;
                    super.visitLineNumber(number, start);
                }

                @Override
                public void visitTypeInsn(int op, String of) {
                    if (op == Opcodes.NEW || op == Opcodes.ANEWARRAY) {
                        String made = Type.getObjectType(of).getClassName();
                        count(op == Opcodes.NEW ? made : made + "[]");
                    }
                    super.visitTypeInsn(op, of);
                }

                @Override
                public void visitIntInsn(int op, int operand) {
                    if (op == Opcodes.NEWARRAY) {
                        count(PRIMITIVES[operand - FIRST_PRIMITIVE] + "[]");
                    }
                    super.visitIntInsn(op, operand);
                }

                @Override
                public void visitMultiANewArrayInsn(String of, int dimensions) {
                    count(Type.getType(of).getClassName());
                    super.visitMultiANewArrayInsn(of, dimensions);
                }
            };
        }
    }
}
