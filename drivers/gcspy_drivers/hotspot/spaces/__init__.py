"""Spaces that every JVM has, whichever its collector: classes, objects, code, pools."""
