"""What stands around a session: panels and their places, preferences, guide, keys, and what is said when there is nothing to see."""
