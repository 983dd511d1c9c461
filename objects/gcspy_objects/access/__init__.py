"""Accesses to objects between collections: the vectors of YA-JOP, and what follows from them. Knows columns; knows no runtime."""
