"""Arrays of pixels as images of Qt, without a copy.

Knows arrays; does not know what is drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QImage

__all__ = ["image_over"]


def image_over(pixels: NDArray[np.uint32], scale: float = 1.0) -> QImage:
    """An image over the memory of an array.

    Args:
        pixels: Shape (height, width), 0xFFRRGGBB, C-contiguous. It must live as long as the image does.
        scale: Device pixels of a logical pixel.
    """
    height, width = pixels.shape
    image = QImage(pixels.data, width, height, width * 4, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(scale)
    return image
