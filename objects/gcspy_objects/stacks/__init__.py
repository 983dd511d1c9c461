"""Objects and bytes by the stack that allocated them.

Import from the modules; nothing is exported here.
"""
