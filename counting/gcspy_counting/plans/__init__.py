"""Where counters stand: a counter a site, a block, a path (DuckTracks), or an edge off a spanning tree."""
