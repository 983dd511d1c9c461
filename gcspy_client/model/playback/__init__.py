"""Time: which events there are, and how one moves among them.

`timeline` is the table of events, `time_shift` keeps a live session, `strip` says which interval is in view, `excerpt`
saves a range of events as a file, `bookmarks` and `timers` are what the user and the program measured, and
`program_clock` is the program's own time.
"""
