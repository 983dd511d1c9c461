"""Many hosts and many recordings: what they need, simulated from what was measured."""
