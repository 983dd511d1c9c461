"""Programs that need a package of `requirements.txt`."""
