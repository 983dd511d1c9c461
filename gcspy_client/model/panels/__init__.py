"""The state of the panels: facts, cost, filters, triggers, growth, and answers to questions about objects.

`tile_questions` and `session_questions` keep questions and answers; `chart` and `graph` are curves
and their axes.
"""
