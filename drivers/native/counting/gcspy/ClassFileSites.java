package gcspy;

import java.lang.classfile.Attributes;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassHierarchyResolver;
import java.lang.classfile.ClassModel;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.CodeElement;
import java.lang.classfile.CodeTransform;
import java.lang.classfile.MethodModel;
import java.lang.classfile.MethodTransform;
import java.lang.classfile.instruction.LineNumber;
import java.lang.classfile.instruction.NewMultiArrayInstruction;
import java.lang.classfile.instruction.NewObjectInstruction;
import java.lang.classfile.instruction.NewPrimitiveArrayInstruction;
import java.lang.classfile.instruction.NewReferenceArrayInstruction;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;

/** Puts counters before allocations with {@code java.lang.classfile}, which JDKs have from 24 on. */
final class ClassFileSites implements CountingAgent.Rewriter {
    private static final ClassDesc COUNTERS = ClassDesc.of("gcspy.SiteCounters");
    private static final MethodTypeDesc ADD = MethodTypeDesc.of(ConstantDescs.CD_void, ConstantDescs.CD_int);

    @Override
    public byte[] rewrite(ClassLoader loader, String name, byte[] code, SiteList sites) {
        ClassHierarchyResolver resolver =
                ClassHierarchyResolver.ofResourceParsing(loader).orElse(ClassHierarchyResolver.defaultResolver());
        ClassFile file = ClassFile.of(ClassFile.ClassHierarchyResolverOption.of(resolver));
        ClassModel model = file.parse(code);
        String source = model.findAttribute(Attributes.sourceFile())
                .map(each -> name.substring(0, name.lastIndexOf('/') + 1) + each.sourceFile().stringValue())
                .orElse(name + ".class");
        boolean[] found = {false};
        byte[] rewritten = file.transformClass(model, (builder, element) -> {
            if (element instanceof MethodModel method) {
                String where = name.replace('/', '.') + "." + method.methodName().stringValue();
                Counting counting = new Counting(source, where, sites, found);
                builder.transformMethod(method, MethodTransform.transformingCode(counting));
            } else {
                builder.with(element);
            }
        });
        return found[0] ? rewritten : null;
    }

    private static final class Counting implements CodeTransform {
        private final String source;
        private final String where;
        private final SiteList sites;
        private final boolean[] found;
        private int line;

        Counting(String source, String where, SiteList sites, boolean[] found) {
            this.source = source;
            this.where = where;
            this.sites = sites;
            this.found = found;
        }

        @Override
        public void accept(CodeBuilder builder, CodeElement element) {
            switch (element) {
                case LineNumber number -> line = number.line();
                case NewObjectInstruction made -> count(builder, named(made.className().asSymbol()));
                case NewReferenceArrayInstruction made -> count(builder, named(made.componentType().asSymbol()) + "[]");
                case NewPrimitiveArrayInstruction made -> count(builder, named(made.typeKind().upperBound()) + "[]");
                case NewMultiArrayInstruction made -> count(builder, named(made.arrayType().asSymbol()));
                default -> { }
            }
            builder.with(element);
        }

        private static String named(ClassDesc type) {
            if (type.isArray()) {
                return named(type.componentType()) + "[]";
            }
            String before = type.packageName();
            return before.isEmpty() ? type.displayName() : before + "." + type.displayName();
        }

        private void count(CodeBuilder builder, String what) {
            int site = sites.add(source, line, where, what);
            if (site >= 0) {
                found[0] = true;
                builder.loadConstant(site).invokestatic(COUNTERS, "add", ADD);
            }
        }
    }
}
