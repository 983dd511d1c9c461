"""Opens the session that the user named: addresses, links, targets, tokens."""
