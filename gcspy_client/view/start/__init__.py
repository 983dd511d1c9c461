"""Opening processes, recordings and servers; the start page that offers them."""
