"""The surroundings of a session: panels and their places, preferences, guide, keys, and notices."""
