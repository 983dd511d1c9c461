"""Programs that leak or bloat, and what `gcspy why` says of them."""
