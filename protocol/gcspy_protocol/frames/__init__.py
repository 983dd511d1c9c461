"""Bytes of frames, one module for each subject: encoding, decoding, and the text of them."""
