"""What the command line prints: text, tables, progress, pictures."""
