"""Recording a session into a file."""
