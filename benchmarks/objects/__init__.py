"""Objects one by one: traces, rebuilt heaps, the simulator."""
