"""A recording for other people's tools: CSV, Parquet, MCAP. One module a format, imported when it is asked for.

Each has one function: ``write(recording, path, wanted, progress)``. Summaries come
as they were made by the driver; tiles only where an event gathered them, so that no
row shows an older value as new.
"""
