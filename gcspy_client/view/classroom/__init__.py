"""A class on one session, in the window: participants, following the leader, the join line, presentation."""
