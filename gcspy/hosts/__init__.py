"""What serves a session from this process or beside it: a process, a simulation, a playback, a program itself."""
