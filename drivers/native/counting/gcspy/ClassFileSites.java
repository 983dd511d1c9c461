package gcspy;

import java.lang.classfile.Attributes;
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
import java.lang.classfile.TypeKind;
import java.lang.classfile.instruction.BranchInstruction;
import java.lang.classfile.instruction.ConstantInstruction;
import java.lang.classfile.instruction.ExceptionCatch;
import java.lang.classfile.instruction.FieldInstruction;
import java.lang.classfile.instruction.InvokeInstruction;
import java.lang.classfile.instruction.LabelTarget;
import java.lang.classfile.instruction.LineNumber;
import java.lang.classfile.instruction.LoadInstruction;
import java.lang.classfile.instruction.LookupSwitchInstruction;
import java.lang.classfile.instruction.NewMultiArrayInstruction;
import java.lang.classfile.instruction.NewObjectInstruction;
import java.lang.classfile.instruction.NewPrimitiveArrayInstruction;
import java.lang.classfile.instruction.NewReferenceArrayInstruction;
import java.lang.classfile.instruction.TableSwitchInstruction;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import java.lang.reflect.AccessFlag;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Puts counters behind allocations with {@code java.lang.classfile}, which JDKs have from 24 on. */
final class ClassFileSites implements CountingAgent.Rewriter {
    private static final int ALOAD = 25;
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
                boolean isInstance = !method.flags().has(AccessFlag.STATIC);
                Counting counting =
                        new Counting(source, where, new SharedCounter(sites, isInstance), jumpedTo(method), found);
                builder.transformMethod(method, MethodTransform.transformingCode(counting));
            } else {
                builder.with(element);
            }
        });
        return found[0] ? rewritten : null;
    }

    /** Labels that jumps and handlers of exceptions go to. */
    private static Set<Label> jumpedTo(MethodModel method) {
        Set<Label> found = new HashSet<>();
        for (CodeElement each : method.code().map(CodeModel::elementList).orElse(List.of())) {
            switch (each) {
                case BranchInstruction jump -> found.add(jump.target());
                case ExceptionCatch caught -> found.add(caught.handler());
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
        }
        return found;
    }

    private static final class Counting implements CodeTransform {
        private final String source;
        private final String where;
        private final SharedCounter shared;
        private final Set<Label> jumpedTo;
        private final boolean[] found;
        private int line;

        Counting(String source, String where, SharedCounter shared, Set<Label> jumpedTo, boolean[] found) {
            this.source = source;
            this.where = where;
            this.shared = shared;
            this.jumpedTo = jumpedTo;
            this.found = found;
        }

        @Override
        public void accept(CodeBuilder builder, CodeElement element) {
            builder.with(element);
            switch (element) {
                case LineNumber number -> line = number.line();
                case NewObjectInstruction made -> count(builder, named(made.className().asSymbol()), false);
                case NewReferenceArrayInstruction made ->
                    count(builder, named(made.componentType().asSymbol()) + "[]", true);
                case NewPrimitiveArrayInstruction made ->
                    count(builder, named(made.typeKind().upperBound()) + "[]", true);
                case NewMultiArrayInstruction made -> count(builder, named(made.arrayType().asSymbol()), true);
                case LabelTarget target -> {
                    if (jumpedTo.contains(target.label())) {
                        shared.close();
                    }
                }
                case LoadInstruction load -> shared.variable(opOf(load), load.slot());
                case FieldInstruction field -> shared.field(field.opcode().bytecode());
                case InvokeInstruction call ->
                    shared.call(call.owner().asInternalName(), call.name().stringValue(), call.type().stringValue());
                case ConstantInstruction.LoadConstantInstruction constant -> {
                    Object value = constant.constantValue();
                    if (!(value instanceof Number) && !(value instanceof String)) {
                        shared.close();
                    }
                }
                case Instruction other -> shared.plain(other.opcode().bytecode());
                default -> { }
            }
        }

        private static int opOf(LoadInstruction load) {
            return load.typeKind() == TypeKind.REFERENCE ? ALOAD : load.opcode().bytecode();
        }

        private static String named(ClassDesc type) {
            if (type.isArray()) {
                return named(type.componentType()) + "[]";
            }
            String before = type.packageName();
            return before.isEmpty() ? type.displayName() : before + "." + type.displayName();
        }

        private void count(CodeBuilder builder, String what, boolean mayThrow) {
            int counter = shared.site(source, line, where, what, mayThrow);
            if (counter >= 0) {
                found[0] = true;
                builder.loadConstant(counter).invokestatic(COUNTERS, "add", ADD);
            }
        }
    }
}
