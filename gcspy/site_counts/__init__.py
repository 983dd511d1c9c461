"""Programs whose allocation sites are counted: started, and their counts printed."""
