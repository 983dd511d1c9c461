"""JVMs that are watched: what it costs them."""
