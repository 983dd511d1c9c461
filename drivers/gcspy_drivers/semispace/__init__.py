"""A small semi-space collector and the driver that shows it: the example of `drivers/adding-a-driver.md`."""
