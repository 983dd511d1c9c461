"""Answers about objects: lives, types that grew, object traces."""
