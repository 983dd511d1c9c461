"""The demo's target: a program with an interesting heap. It runs as a process of its own, never imported."""
