"""Output of the command line: text, tables, progress, pictures."""
