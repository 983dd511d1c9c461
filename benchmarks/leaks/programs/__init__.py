"""Programs whose memory grows, each for one cause that its docstring states."""
