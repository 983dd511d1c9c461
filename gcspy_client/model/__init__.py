"""What the window knows, without a window: numpy, no Qt.

`session` follows the messages; `codes` turns values into paint codes, `layout`
says where tiles stand, `raster` makes the picture, `palette` gives codes their
colours, `text` words values and `history` keeps summaries.
"""
