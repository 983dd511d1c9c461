"""Matches an object's reported pointers with its fields.

HotSpot reports the references of an instance in the order in which they lie in memory in a full
collection, and in the reverse order in a minor one: those of superclasses first, each class's in
the order of its declaration, which is the reverse of the trace's list. Elements of arrays are
always in their order. Observed in `objects/samples/anttracks/pointers.tar.xz`: `tests/objects/heap/test_references.py`.

Knows types; does not know objects.
"""

from __future__ import annotations

from typing import Final

from gcspy_objects.names import TypeField, TypeKind, Types

__all__ = ["reference_fields", "weak_slot"]

_STATIC: Final = 0x0008
_VALUES: Final = frozenset(("boolean", "byte", "char", "double", "float", "int", "long", "short"))
_OF_REFERENCE: Final = frozenset(("referent", "queue", "next", "discovered"))
_SOFT: Final = "timestamp"
_FINAL: Final = ("java.lang.ref.FinalReference", "java.lang.ref.Finalizer")


def reference_fields(types: Types, row: int) -> tuple[TypeField, ...] | None:
    """Return the fields of a type's instances that are references, in the order of a full collection's pointers; None: not known."""
    fields = types.fields.get(row)
    if fields is None or types.kind[row] != TypeKind.INSTANCE:
        return None
    held = [one for one in fields if not one.access & _STATIC and one.type not in _VALUES]
    held.reverse()
    return tuple(sorted(held, key=lambda one: -one.declared_by))


def weak_slot(types: Types, row: int) -> int | None:
    """Return the place of a reference that does not hold its target: of weak and phantom references; None: there is none."""
    fields = reference_fields(types, row)
    if fields is None or types.names[row] in _FINAL:
        return None
    names = [one.name for one in fields]
    if not _OF_REFERENCE.issubset(names) or any(one.name == _SOFT for one in types.fields[row]):
        return None
    return names.index("referent")
