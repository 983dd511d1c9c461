"""The panels about what is shown: stream and legend, tile, summary, events and filters, facts."""
