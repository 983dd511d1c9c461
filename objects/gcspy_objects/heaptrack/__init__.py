"""Files of heaptrack (KDE), read and written as object traces of ours.

Import from the modules; nothing is exported here.
"""
