"""Other forms of a counter: nanoseconds of processor time for each increment, in pairs with the same loop without counters.

    python -m benchmarks.cpython.counter_encodings [--python PATH]... [--pairs N] [--json]

The product counts by an item of `itertools.repeat`. Here the same is done with an iterator of a list, and with a type in C that is built for it: by its next item, its
truth, its inversion, and its negation. Needs a C compiler and headers of Python.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from benchmarks.cpython.counter_cost import MEASURED_LOOP, options_of

__all__ = ["main"]

_SOURCE = """
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
typedef struct { PyObject_HEAD long long n; } Counter;
static int truth(PyObject *o) { ((Counter *)o)->n++; return 1; }
static PyObject *none(PyObject *o) { ((Counter *)o)->n++; Py_INCREF(Py_None); return Py_None; }
static PyObject *hint(PyObject *o, PyObject *x) { return PyLong_FromLongLong(PY_SSIZE_T_MAX - ((Counter *)o)->n); }
static PyMethodDef methods[] = {{"__length_hint__", hint, METH_NOARGS, 0}, {0}};
static PyType_Slot slots[] = {{Py_nb_bool, truth}, {Py_nb_invert, none}, {Py_tp_iter, PyObject_SelfIter}, {Py_tp_iternext, none}, {Py_tp_methods, methods}, {0}};
static PyType_Spec spec = {"native_counter.Counter", sizeof(Counter), 0, Py_TPFLAGS_DEFAULT, slots};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "native_counter", 0, -1};
PyMODINIT_FUNC PyInit_native_counter(void) {
    PyObject *made = PyModule_Create(&module);
    PyModule_AddObject(made, "Counter", PyType_FromSpec(&spec));
    return made;
}
"""
_MEASURE = (
    f"""
import sys
sys.path[:0] = sys.argv[1:3]
{MEASURED_LOOP}"""
    """
from native_counter import Counter
from gcspy_counting import instrumented_code
from gcspy_counting.bytecode import assembler
from gcspy_counting.bytecode.opcodes import OP, VERSION

def form(*names):
    def count(stream, counters, origin):
        for counter in counters:
            stream.add(OP["LOAD_CONST"], stream.constant(counter), origin)
            for name in names:
                target = -2 - (len(stream.ops) + 1) if "JUMP" in name else -1
                stream.add(OP[name], 0, origin, target=target)
    return count

jump = "POP_JUMP_FORWARD_IF_FALSE" if VERSION == (3, 11) else "POP_JUMP_IF_FALSE"
usual = assembler._Stream.count
ITEMS = [None] * (1 << 24)
FORMS = {
    "repeat": (usual, instrumented_code._counter),
    "list": (usual, lambda: iter(ITEMS)),
    "C, next item": (usual, Counter),
    "C, truth": (form("TO_BOOL", "POP_TOP") if VERSION >= (3, 13) else form(jump), Counter),
    "C, inversion": (form("UNARY_INVERT", "POP_TOP"), Counter),
}
if VERSION < (3, 13):
    FORMS["C, negation"] = form("UNARY_NOT", "POP_TOP"), Counter
counted = {}
for name, (count, counter) in FORMS.items():
    assembler._Stream.count, instrumented_code._counter = count, counter
    names = {}
    exec(CountedProgram(PlanKind.SITE, SiteChoice.DEFINITE).instrument(compile(SOURCE, "s", "exec")), names)
    counted[name] = names["f"]
    names["f"](1000, 1, 2)
found = {name: [] for name in counted}
for _ in range(int(sys.argv[3])):
    for name, function in counted.items():
        alone = seconds(plain["f"])
        found[name].append((seconds(function) - alone) / ROUNDS / 10 * 1e9)
print(json.dumps({"version": "%d.%d" % VERSION} | {name: statistics.median(each) for name, each in found.items()}))
"""
)


def main() -> int:
    """Measure and print."""
    options = options_of(__doc__, 15)
    import gcspy_counting

    folder = Path(gcspy_counting.__file__).parents[1]
    with tempfile.TemporaryDirectory(prefix="gcspy-count-") as built:
        source = Path(built, "native_counter.c")
        source.write_text(_SOURCE)
        include = sysconfig.get_paths()["include"]
        library = Path(built, "native_counter.abi3.so")
        command = ["cc", "-O2", "-shared", "-fPIC", f"-I{include}", str(source), "-o", str(library)]
        try:
            subprocess.run(command, check=True)
            for python in options.pythons or [sys.executable]:
                arguments = [python, "-c", _MEASURE, str(folder), built, str(options.pairs)]
                told = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
                found = json.loads(told)
                print(told.strip() if options.json else _line(found))
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"counter_encodings: {error}", file=sys.stderr)
            return 1
    return 0


def _line(found: dict[str, float | str]) -> str:
    cells = (f"{name} {value:.1f}" for name, value in found.items() if isinstance(value, float))
    return f"{found['version']}: ns an increment: {', '.join(cells)}"


if __name__ == "__main__":
    sys.exit(main())
