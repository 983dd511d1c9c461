"""Colour arithmetic: OKLab, sRGB and what colour-blind eyes see of it.

OKLab is used because equal steps in it look about equally large: a ramp that is a straight line in
its lightness is perceptually even by construction, so no palette table is needed.

Knows numbers; does not know streams or themes.

Source: OKLab is B. Ottosson, "A perceptual color space for image processing"
(2020). The simulation matrices are Machado, Oliveira and Fernandes, "A
physiologically-based model for simulation of color vision deficiency", IEEE
TVCG 15(6), 2009, severity 1.0, applied to linear sRGB.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "VISIONS",
    "Floats",
    "distance",
    "fit_oklch",
    "oklab_from_rgb",
    "packed",
    "rgb_from_oklab",
    "seen_by",
]

Floats = NDArray[np.float64]

_CONES_FROM_LINEAR: Floats = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LAB_FROM_CONES: Floats = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
_LINEAR_FROM_CONES: Floats = np.linalg.inv(_CONES_FROM_LINEAR).astype(np.float64)
_CONES_FROM_LAB: Floats = np.linalg.inv(_LAB_FROM_CONES).astype(np.float64)

VISIONS: dict[str, Floats] = {
    "full": np.eye(3),
    "protan": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deutan": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritan": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
"""Linear sRGB as each kind of eye sees it, by name."""


def _linear_from_oklab(lab: Floats) -> Floats:
    linear: Floats = ((lab @ _CONES_FROM_LAB.T) ** 3) @ _LINEAR_FROM_CONES.T
    return linear


def _oklab_from_linear(linear: Floats) -> Floats:
    lab: Floats = np.cbrt(linear @ _CONES_FROM_LINEAR.T) @ _LAB_FROM_CONES.T
    return lab


def rgb_from_oklab(lab: Floats) -> Floats:
    """sRGB, 0 to 255 (not rounded), of colours in OKLab, shape (..., 3); clipped to the gamut of a screen."""
    linear = np.clip(_linear_from_oklab(lab), 0.0, 1.0)
    encoded: Floats = np.where(
        linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055
    )
    return 255.0 * encoded


def oklab_from_rgb(rgb: Floats) -> Floats:
    """OKLab of sRGB colours, shape (..., 3), 0 to 255."""
    encoded = np.asarray(rgb, dtype=np.float64) / 255.0
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    return _oklab_from_linear(linear)


def fit_oklch(lightness: Floats, chroma: Floats, hue_degrees: Floats) -> Floats:
    """OKLab of polar colours, with as little chroma taken away as the screen's gamut asks.

    Args:
        lightness: Shape (n,), 0 to 1; kept exactly, so an even ramp stays even.
        chroma: Shape (n,), distance from grey.
        hue_degrees: Shape (n,).

    Returns:
        Shape (n, 3), a new array.
    """
    angle = np.deg2rad(hue_degrees)

    def lab(radius: Floats) -> Floats:
        return np.stack([lightness, radius * np.cos(angle), radius * np.sin(angle)], axis=-1)

    def inside(radius: Floats) -> NDArray[np.bool_]:
        linear = _linear_from_oklab(lab(radius))
        within: NDArray[np.bool_] = np.all((linear > -1e-6) & (linear < 1 + 1e-6), axis=-1)
        return within

    low, high = np.zeros_like(chroma), chroma.copy()
    low = np.where(inside(chroma), chroma, low)
    for _ in range(18):  # 2**-18 of a chroma is far below one step of 8 bits
        middle = (low + high) / 2
        fits = inside(middle)
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return lab(low)


def seen_by(vision: str, lab: Floats) -> Floats:
    """Colours in OKLab as the eyes named in `VISIONS` see them."""
    linear = np.clip(_linear_from_oklab(lab), 0.0, 1.0) @ VISIONS[vision].T
    return _oklab_from_linear(np.clip(linear, 0.0, 1.0))


def distance(one: Floats, other: Floats) -> Floats:
    """Perceived difference of colours in OKLab; 0.02 is about the least visible one."""
    apart: Floats = np.linalg.norm(one - other, axis=-1)
    return apart


def packed(rgb: Floats) -> NDArray[np.uint32]:
    """0xFFRRGGBB, as Qt's RGB32 wants it, of sRGB colours of shape (n, 3), 0 to 255."""
    whole = np.rint(np.clip(rgb, 0, 255)).astype(np.uint32)
    pixels: NDArray[np.uint32] = (
        np.uint32(0xFF000000) | (whole[..., 0] << 16) | (whole[..., 1] << 8) | whole[..., 2]
    ).astype(np.uint32)
    return pixels
