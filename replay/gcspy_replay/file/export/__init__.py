"""Exports for other tools: CSV, Parquet, MCAP. One module for each format, imported on demand.

Each has one function: ``write(recording, path, wanted, progress)``. Summaries are those of the
driver; tiles are exported only if an event gathered them, so that no row shows an older value as
new.
"""
