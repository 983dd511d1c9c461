"""Results of one pass over a trace, from which later questions start: checkpoints, collections and findings; in memory, and as a folder."""
