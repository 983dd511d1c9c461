"""History graphs: time × tile.

`graph` is the graph. `rows` makes a row of an event, `store` keeps rows within a budget, `events`
are the axis, `filler` reads rows from a recording, `painter` draws in a thread, `view` defines the
visible part, `pooling` combines several tiles in a pixel; `value` reads one tile's value, `series`
the numbers of a range of tiles. `tracks` are the open graphs, `export` makes files, and `summaries`
keeps one number per stream and event for the small graph.
"""
