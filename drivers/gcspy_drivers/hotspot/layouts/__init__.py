"""What no JVM exports, by layouts that are believed only where they prove themselves at the attached JVM.

Everything else is found by the VM's own tables; nothing here is needed for a heap to be shown.
"""
