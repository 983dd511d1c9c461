"""The widgets of the window. They draw what `gcspy_client.model` knows, and decide nothing."""

from gcspy_client.view.layout_guard import install_layout_guard
from gcspy_client.view.override_guard import install_override_guard

install_override_guard()
install_layout_guard()
