"""Texts that strangers wrote: how they are shown, and how they are written into tables."""
