"""`gcspy why`: what a process's memory is used for, who holds it, and why it grows."""

from __future__ import annotations

from pathlib import Path

import click

from gcspy.options import (
    allocation_samples_option,
    driver_option,
    hold_option,
    is_address,
    json_option,
    needs_token,
    read_token,
    token_option,
    top_option,
)
from gcspy.recorder.named_recordings import names_recording

__all__ = ["command"]

_MOST_EXPLAINED = 3
"""Processes of a tree whose growth is explained: each takes as much work as one alone."""


@click.command()
@click.argument("sources", metavar="PID|FILE|ADDRESS", nargs=-1, required=True)
@click.option(
    "--over",
    "over_secs",
    type=click.FloatRange(0, 86_400),
    default=15.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between the two samples. 0: one sample, without growth.",
)
@click.option(
    "--tree",
    is_flag=True,
    help="Watch PID and all its descendants, then explain the growth of the three that grow most.",
)
@top_option(1000)
@hold_option
@allocation_samples_option
@driver_option
@token_option
@json_option
def command(
    sources: tuple[str, ...],
    over_secs: float,
    tree: bool,
    top: int,
    hold: bool,
    sample_bytes: int | None,
    drivers: tuple[str, ...],
    token_file: Path | None,
    as_json: bool,
) -> None:
    """Show what memory is for, who holds it, and why it grows.

    For a process, compares two samples of all memory. The first sample gives the uses of the
    resident set, by type of object and for all other memory, and the largest holders. The second
    gives a sentence: how much memory grew, of which types, and who holds the new objects.

    The process keeps running, and nothing is left in it. With --hold all threads are stopped while
    memory is copied, so that each sample shows one moment. The sample of a JVM is then a heap
    dump; without --hold, references from its stacks and native code are missing.

    For a recording, shows the growth of the resident set and of the types. Recordings have no
    references, so there are no holders. For an object trace, shows the growth by type and by
    allocation site in the second half of its collections, with holders if it has pointers.

    With --tree, watches the sizes of a process and all its descendants for the time between the
    samples, which costs next to nothing, and shows which of them grow. Then it takes the two samples
    of the three that grow most.

    ADDRESS is a running session (HOST:PORT or unix:PATH): its server reads the process, and answers
    the client that controls the session.
    """
    if tree:
        if len(sources) != 1 or not sources[0].isdigit():
            raise click.UsageError("--tree needs one process: give its PID")
        if drivers or sample_bytes:
            raise click.UsageError("--tree excludes --driver and --allocation-samples")
        _explain_tree(int(sources[0]), over_secs, top=top, hold=hold, as_json=as_json)
        return
    if len(sources) == 1 and not sources[0].isdigit() and Path(sources[0]).exists():
        from gcspy.objects.trace_conversion import names_trace

        if names_trace(sources[0]):
            from gcspy.objects.questions import ask_growth

            ask_growth(Path(sources[0]), top=top, as_json=as_json)
            return
    if all(map(names_recording, sources)):
        if sample_bytes:
            raise click.BadParameter(
                "a recording has no allocation samples", param_hint="--allocation-samples"
            )
        from gcspy.objects.memory_growth import grown_memory, print_as_json, print_as_text

        found = grown_memory([Path(source) for source in sources], top)
        (print_as_json if as_json else print_as_text)(found)
        return
    (text,) = sources if len(sources) == 1 else ("",)
    if not text.isdigit() and not is_address(text):
        raise click.BadParameter(
            f"{' '.join(sources)} is neither a process nor a recording, nor the address of a session",
            param_hint="PID|FILE|ADDRESS",
        )
    if drivers and not text.isdigit():
        raise click.UsageError("--driver needs a process: a session has its own drivers")
    from gcspy.connection.memory_question import explain
    from gcspy.connection.session_question import explain_session
    from gcspy.output.memory_text import print_first, print_later, report_as_json
    from gcspy.output.terminal import say_aside, say_json
    from gcspy_server.api import MemoryQuestion

    question = MemoryQuestion(
        over_secs=over_secs, most=top, held=hold, sample_bytes=sample_bytes or 0
    )
    if text.isdigit():
        reports = explain(int(text), question, drivers)
    else:
        token = read_token(token_file, ask=needs_token(text))
        reports = explain_session(text, question, token or "")
    first = next(reports)
    if as_json:
        later = next(reports, None)
        source = {"pid": int(text)} if text.isdigit() else {"session": text}
        say_json({**source, **report_as_json(first, later)})
        return
    print_first(first, f"{'process' if text.isdigit() else 'session'} {text}")
    if over_secs:
        say_aside(f"comparing with another sample in {over_secs:g} s; Ctrl-C ends this command")
    for later in reports:
        print_later(later, first)


def _explain_tree(root: int, over_secs: float, *, top: int, hold: bool, as_json: bool) -> None:
    """Say which processes of a tree grow, and why."""
    from gcspy.output.progress import steps_shown
    from gcspy.output.terminal import say_aside, say_json
    from gcspy.tree.tree_question import explain_growing, watch
    from gcspy.tree.tree_report import print_explained, print_watched, tree_as_json
    from gcspy_server.api import MemoryQuestion

    with steps_shown() as progress:
        watched = watch(root, over_secs, progress)
    if not as_json:
        print_watched(watched, over_secs, top)
        if any(one.grows for one in watched):
            say_aside(
                f"examining those that grow most, twice in {over_secs:g} s; Ctrl-C ends this command"
            )
    question = MemoryQuestion(over_secs=over_secs, most=top, held=hold)
    explained = []
    for one in explain_growing(watched, question, _MOST_EXPLAINED):
        explained.append(one)
        if not as_json:
            print_explained(one)
    if as_json:
        say_json(tree_as_json(root, watched, explained))
