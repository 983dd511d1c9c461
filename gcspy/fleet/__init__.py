"""Many recordings: a row of features for each, as a table."""
