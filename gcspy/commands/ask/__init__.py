"""Commands that answer a question about the memory of a process, a recording or a program."""
