"""What the window knows, without a window: numpy, no Qt.

`session` follows the messages; `view_states` says how each space is looked at, `attendance` who is present in a
class. `codes` turns values into paint codes, `layout` says where tiles stand, `raster` makes the picture, `palette`
gives codes their colours, `palettes` which of them the user chose, `text` words values. `tile_source` is where
numbers come from, `derived` a stream that the user made of others, `tile_keys` what tiles are matched by.
`latest_worker` runs what takes long in a thread.

The folders stand for the parts of the window: `renderers`, `spaces`, `history`, `compare`, `playback`, `panels` and
`shell`.
"""
