"""The evaluation of the GCspy paper (2002), done again: tables, sessions of real programs, and what is read from them."""
