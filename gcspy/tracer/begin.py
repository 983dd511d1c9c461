"""Begin a Python program that is traced: ``python begin.py SETTINGS FORM PROGRAM ARGUMENTS…``; what `gcspy trace` starts.

SETTINGS is a JSON object: ``library``, ``folder``, ``stacks``, ``children``. FORM is ``script``, ``module`` or ``code``.
Runs on CPython 3.9 and later, with the standard library only, and is not imported by gcspy.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import runpy
import sys
import sysconfig
import types
from typing import Any

_NO = -1
_LAYOUTS = {
    # thread's frame, holder, holder's frame, code, previous, instruction, kind of it, tags
    9: (24, _NO, _NO, 32, 24, 104, 1, 0),
    10: (24, _NO, _NO, 32, 24, 96, 2, 0),
    11: (_NO, 56, 8, 32, 48, 56, 0, 0),
    12: (_NO, 56, 0, 0, 8, 56, 0, 0),
    13: (72, _NO, _NO, 0, 8, 56, 0, 0),
    14: (72, _NO, _NO, 0, 8, 56, 0, 7),
    15: (72, _NO, _NO, 0, 8, 56, 0, 7),
}
"""By minor version. Sources: CPython's Include/cpython/pystate.h, Include/cpython/frameobject.h (3.9, 3.10),
Include/internal/pycore_frame.h (3.11 to 3.13), pycore_interpframe_structs.h (3.14 on)."""
_FIRST_WITH_OBJECTS = 13
_REFUSED = 97
"""Exit code if the program cannot be traced; the reason is in the file ``refused``."""


class _Layout(ctypes.Structure):
    """``struct python_layout``."""

    _fields_ = [  # ctypes wants a list
        (name, ctypes.c_int64)
        for name in (
            "thread_frame", "thread_holder", "holder_frame", "code", "previous", "instruction", "instruction_is_index",
            "first_instruction", "file_name", "function_name", "tags", "owner",
        )
    ]  # fmt: skip


def _offset_of(holder: object, value: object) -> int:
    """Return where in an object a reference to another one is."""
    for offset in range(16, type(holder).__basicsize__, 8):
        if ctypes.c_uint64.from_address(id(holder) + offset).value == id(value):
            return offset
    return _NO


def _layout() -> _Layout | None:
    """Return the layout of this interpreter; None: it is not known."""
    known = _LAYOUTS.get(sys.version_info[1])
    if known is None:
        return None
    code = _layout.__code__
    name = getattr(code, "co_qualname", code.co_name)
    file_name, function_name = _offset_of(code, code.co_filename), _offset_of(code, name)
    if _NO in (file_name, function_name):
        return None
    return _Layout(
        *known[:7],
        type(code).__basicsize__,
        file_name,
        function_name,
        known[7],
        70 if sys.version_info[1] == 12 else _NO,
    )


def _agrees(library: ctypes.PyDLL) -> bool:
    """Whether the library finds the frames that Python finds, and the line of this one."""
    codes = (ctypes.c_uint64 * 64)()
    count = library.gcspy_python_codes(codes, 64)
    found: list[int] = []
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        found.append(id(frame.f_code))
        frame = frame.f_back
    line = library.gcspy_python_line()
    return list(codes[:count]) == found and abs(line - sys._getframe().f_lineno) <= 2


def _begin(settings: dict[str, Any]) -> str | None:
    """Begin to trace; return why not, or None."""
    if sys.implementation.name != "cpython":
        return "it is not CPython"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "it has no global interpreter lock"
    if hasattr(sys, "getobjects"):
        return "it is a debugging build"
    layout = _layout()
    if layout is None:
        return "the layout of its frames is not known"
    library = ctypes.PyDLL(settings["library"])
    library.gcspy_python_prepare.restype = ctypes.c_char_p
    library.gcspy_python_begin.restype = ctypes.c_char_p
    library.gcspy_python_callback.restype = ctypes.py_object
    missing = library.gcspy_python_prepare(ctypes.byref(layout))
    if missing is not None:
        return f"it does not export {missing.decode()}"
    if not _agrees(library):
        return "its frames are not where they are expected"
    minor = sys.version_info[1]
    gc.collect()  # empties free lists, too
    gc.callbacks.append(library.gcspy_python_callback())
    why_not = library.gcspy_python_begin(
        settings["folder"].encode(),
        settings["stacks"].encode(),
        int(settings["children"]),
        f"CPython {sys.version.split()[0]}".encode(),
        int(minor >= _FIRST_WITH_OBJECTS),
        int(minor >= 12),
    )
    return why_not.decode() if why_not else None


def _refuse(settings: dict[str, Any], why_not: str) -> None:
    with open(os.path.join(settings["folder"], "refused"), "w", encoding="utf-8") as file:
        file.write(f"{sys.executable} ({sys.version.split()[0]}): {why_not}")
    sys.exit(_REFUSED)


def main(settings: dict[str, Any], form: str, program: str, arguments: list[str]) -> None:
    """Begin to trace, and become the program, as if Python had been started with it."""
    fresh = types.ModuleType("__main__")
    fresh.__dict__["__builtins__"] = __builtins__
    sys.argv = [{"script": program, "module": "-m", "code": "-c"}[form], *arguments]
    sys.path[0] = {"script": os.path.dirname(os.path.realpath(program)), "module": os.getcwd(), "code": ""}[form]  # fmt: skip
    text: str | bytes = program
    if form == "script":
        with open(program, "rb") as file:
            text = file.read()
        fresh.__file__ = program
    why_not = _begin(settings)
    if why_not:
        _refuse(settings, why_not)
    sys.modules["__main__"] = fresh
    if form == "module":
        runpy.run_module(program, run_name="__main__", alter_sys=True)
        return
    name = program if form == "script" else "<string>"
    exec(compile(text, name, "exec", dont_inherit=True), fresh.__dict__)  # noqa: S102  # it is what was asked for


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:])
