"""Which pages of another process were written: how the kernel says it, whether this kernel can, and accounts for several who ask."""
