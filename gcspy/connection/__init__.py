"""From what the user named to a session: addresses, links, targets, tokens."""
