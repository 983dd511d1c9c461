"""What stands around a session: start page, panels and their places, preferences, guide, keys, and what is said when there is nothing to see."""
