"""The half of the server interpreter that runs in the driver's thread: events, filters, control flow, encoding."""
