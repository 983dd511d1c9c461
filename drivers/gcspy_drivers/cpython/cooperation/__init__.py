"""Inside the target: the stub, and the ways to bring it in."""
