"""Time: timeline, transport, bookmarks, and saving a session."""
