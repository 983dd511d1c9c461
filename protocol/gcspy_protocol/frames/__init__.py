"""Bytes of frames: encoding, decoding and printing, one module for each subject."""
