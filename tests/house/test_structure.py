"""What is counted of a revision: circles, folders and help texts."""

from __future__ import annotations

from pathlib import PurePosixPath

from tests.house.structure import circles_of, folders_of, helps_of

SOURCES = {
    PurePosixPath(path): source
    for path, source in {
        "gcspy/__init__.py": "",
        "gcspy/commands/go.py": """
import click
from gcspy.commands import come

@click.command()
@click.option("--far", "-f", default=1, help="Distance.")
@click.option("--silent", is_flag=True)
def command():
    \"\"\"Go
    away.

    More.
    \"\"\"
""",
        "gcspy/commands/come.py": "def f():\n    from gcspy.commands import go",
        "protocol/gcspy_protocol/frame.py": "",
    }.items()
}


def test_circles_folders_and_help_texts_of_a_tree_are_counted() -> None:
    assert circles_of(SOURCES) == [{"gcspy.commands.go", "gcspy.commands.come"}]
    assert folders_of(SOURCES) == [("gcspy/commands", 2), ("protocol/gcspy_protocol", 1)]
    assert helps_of(SOURCES) == {"go": "Go away.", "go --far": "Distance."}
