"""Data that no JVM exports, by layouts that are used only if they pass checks at the attached JVM.

Everything else is found by the VM's own tables; nothing here is needed for a heap to be shown.
"""
