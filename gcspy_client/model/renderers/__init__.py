"""Renderers: ways to draw a space. Another package derives its own from `Renderer` (docs/adding-a-renderer.md).

`renderer` has the base class, `registry` finds renderers by name, `renderer_worker` draws in a
thread and `renderer_options` passes the user's choices to a renderer. `arranged` gives each tile a
cell (`hilbert`, `order`), `bars` draws values and their distribution, `bivariate` two streams at
once, `multiples` several side by side; `mirror` is a copy of a space that follows its changes.
"""

from gcspy_client.model.renderers.renderer import NO_TILES, Inscription, LabelSide, Place, Renderer

__all__ = ["NO_TILES", "Inscription", "Place", "Renderer", "LabelSide"]
