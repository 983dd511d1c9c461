"""What the demo watches: a program with an interesting heap. It runs as a process of its own, never imported."""
