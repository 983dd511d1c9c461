"""Programs, heaps and traces that are measured."""
