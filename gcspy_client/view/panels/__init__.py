"""The panels about the displayed state: stream and legend, tile, summary, events and filters, facts."""
