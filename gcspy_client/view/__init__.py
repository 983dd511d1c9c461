"""The widgets of the window. They draw what `gcspy_client.model` knows, and decide nothing."""
