"""History graphs: time × tile.

`graph` is the graph. `rows` makes a row of an event, `store` keeps rows within a budget, `events` are the axis,
`filler` reads rows from a recording, `painter` draws in a thread, `view` says which part is seen, `pooling` what a
pixel shows that stands for several tiles; `value` reads one tile's value, `series` the numbers of a range of
tiles. `tracks` are the graphs that a user has open, `export` makes files, and `summaries` keeps one number per
stream and event for the small graph.
"""
