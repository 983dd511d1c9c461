"""The processes of one program together: a parent, its children, and theirs."""
