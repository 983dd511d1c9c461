"""The heap of a running JVM as a heap dump, made from a copy of its memory: objects, classes with their fields, static fields."""
