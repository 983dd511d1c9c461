"""The wire of the original GCspy (Printezis and Jones, 2002): bytes in, messages out, and back.

`wire` knows the bytes and nothing of this project's model; `outgoing` turns a session of ours into
messages of the original. Neither has sockets, threads or clocks.
"""
