"""Names of the VM, and as a programmer writes them: ``[Ljava/lang/String;`` is ``java.lang.String[]``.

Source: The Java Virtual Machine Specification, 4.3 (descriptors).
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["DESCRIPTOR", "METHOD", "histogram_name", "method_name", "type_name"]

DESCRIPTOR: Final = re.compile(rb"\[{0,255}(?:[BCDFIJSZV]|L[^;\0]{1,65535};)")
"""A type."""
METHOD: Final = re.compile(rb"[^()\0]{1,65535}\([^)\0]{0,65535}\)" + DESCRIPTOR.pattern)
"""A method as the symbols have it: class and name with dots, descriptor with slashes, to the end of the type that it returns."""

_PRIMITIVE: Final = {
    "B": "byte", "C": "char", "D": "double", "F": "float", "I": "int", "J": "long", "S": "short", "Z": "boolean", "V": "void",
}  # fmt: skip
_PARAMETER: Final = re.compile(r"\[*(?:[BCDFIJSZV]|L[^;]*;)")


def type_name(descriptor: str) -> str:
    """Return a type as a programmer writes it; a text that is no descriptor as it is."""
    dimensions = len(descriptor) - len(descriptor.lstrip("["))
    element = descriptor[dimensions:]
    if element.startswith("L") and element.endswith(";"):
        element = element[1:-1].replace("/", ".")
    elif element in _PRIMITIVE:
        element = _PRIMITIVE[element]
    else:
        return descriptor
    return element + "[]" * dimensions


def histogram_name(descriptor: str) -> str:
    """Return a type as HotSpot's class histogram does: ``java.lang.String``, ``[I``, ``[Ljava.lang.String;``."""
    if descriptor.startswith("L") and descriptor.endswith(";"):
        descriptor = descriptor[1:-1]
    return descriptor.replace("/", ".")


def method_name(signature: str) -> str:
    """Return a method in source form, without its return type: ``java.lang.String.substring(int, int)``."""
    name, opened, rest = signature.partition("(")
    parameters, closed, _ = rest.partition(")")
    if not (name and opened and closed):
        return signature
    return f"{name.replace('/', '.')}({', '.join(type_name(each) for each in _PARAMETER.findall(parameters))})"
