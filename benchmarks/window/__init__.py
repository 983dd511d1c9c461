"""The window: painting, views, history graphs, looking back."""
