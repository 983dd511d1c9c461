"""Coverage-guided fuzzing of every decoder: `make fuzz`, and a little of it in `make test`."""
