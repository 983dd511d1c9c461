"""Traces that AntTracksVM wrote: `reader.AntTracksTrace`. The bytes: `layout`, `symbols`, `lzw`."""
