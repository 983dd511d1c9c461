"""What the panels show: facts, cost, filters, triggers, growth, and answers to questions about objects.

`tile_questions` and `session_questions` keep what was asked and answered; `chart` and `graph` are curves and their axes.
"""
