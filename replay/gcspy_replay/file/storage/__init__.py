"""The destinations of a recording: files, rings, the time shift."""
