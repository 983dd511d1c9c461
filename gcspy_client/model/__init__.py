"""The state of the window without widgets: numpy, no Qt.

`session` applies the messages; `view_states` has the view of each space, `attendance` the
participants of a class. `codes` turns values into paint codes, `layout` places tiles, `raster`
makes the picture, `palette` defines the colours of codes, `palettes` the user's choice of them,
`text` formats values. `tile_source` is a source of numbers, `derived` a stream that the user made
from others, `tile_keys` has the keys that match tiles. `latest_worker` runs slow work in a thread.

The folders correspond to the parts of the window: `renderers`, `spaces`, `history`, `compare`,
`playback`, `panels` and `shell`.
"""
