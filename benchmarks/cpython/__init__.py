"""CPython programs that are watched: what it costs them."""
