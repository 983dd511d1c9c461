"""Files of memray, read as object traces of ours.

Knows memray's own library and the format of our traces; does not know who asks.
"""
