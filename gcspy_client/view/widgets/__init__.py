"""Small widgets that know nothing of sessions."""
