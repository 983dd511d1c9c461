"""Time: which events there are, and how one moves among them.

`timeline` is the table of events, `time_shift` stores a live session, `strip` is the visible
interval, `excerpt` saves a range of events as a file, `bookmarks` and `timers` belong to the user
and the program, and `program_clock` is the program's own time.
"""
