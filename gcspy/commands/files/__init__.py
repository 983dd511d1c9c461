"""Commands on files of recordings and traces."""
