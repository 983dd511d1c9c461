"""Every text that the window shows, as plain text: widgets, items, models, menus, tips, dialogs, Markdown.

Names in a recording, on the wire or in a trace are strangers'. Qt takes a text that looks like
HTML for HTML in labels and tooltips by itself, opens the pictures that it names, and takes an
ampersand in a menu for a mnemonic. So nothing outside of this folder makes a Qt widget that
shows text, and `tests/house/test_plain_text.py` looks that it stays so.
"""
