"""Serves a session from this process or beside it: a process, a simulation, a playback, or the program itself."""
