"""What the window knows, without a window: numpy, no Qt.

`session` follows the messages; `codes` turns values into paint codes, `layout`
says where tiles stand, `raster` makes the picture, `palette` gives codes their
colours, `text` words values and `history` keeps summaries.

`history_graph` is time × tile: `history_rows` makes a row of an event, `history_store` keeps rows within a
budget, `history_events` are the axis, `history_filling` reads rows from a recording and `history_painter` draws them, `tile_series` are the
numbers of a range of tiles, `history_export` makes files. `compare` is the difference of two states, `pairing` says what belongs together
in two sessions, `palettes` which colours the user chose.

`renderers` is what a way to draw a space looks like: `arranged` gives each tile a cell (`hilbert`, `ordering`),
`bars` draws values and their distribution, `bivariate` two streams at once, `multiples` several side by side;
`tile_table` is the table, `derived` a stream that the user made of others. `tile_keys` are what tiles are matched by,
`tile_source` is where numbers come from.
"""
