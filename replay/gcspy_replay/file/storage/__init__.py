"""Where a recording is written: files, rings, the time shift."""
