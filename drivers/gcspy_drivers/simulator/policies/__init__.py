"""How parts of a heap behave, shared by collectors: `bump`, `freelist`, `marking`, `cards`."""
