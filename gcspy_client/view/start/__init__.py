"""What a window opens: processes, recordings, servers; the start page that offers them."""
