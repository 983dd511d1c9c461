"""The window on a session: `model` knows, `view` draws, `link` connects, `app` starts it."""
