"""Numbers of the sessions of a host, for systems that collect time series."""
