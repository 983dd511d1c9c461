"""A class on one session, in the window: who is present, following who leads, the join line, presenting."""
