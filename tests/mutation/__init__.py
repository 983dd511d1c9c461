"""Plants small faults in the product and counts how many the tests find: ``make mutants``."""
