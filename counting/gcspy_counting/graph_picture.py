"""The flow graph of a function as an SVG picture: blocks with their sites and counts, and the edges that carry counters."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from gcspy_counting.flow_graph import OUTSIDE, EdgeKind
from gcspy_counting.instrumented_code import InstrumentedCode

__all__ = ["graph_picture"]

_WIDTH = 300
_LINE = 16
_GAP = 34
_LEFT = 150
_MOST_SITES = 8
_LANE = 12


def graph_picture(code: InstrumentedCode) -> str:
    """Draw a function's graph; blocks stand in the order of the code, those that cannot be reached are left out.

    Edges that carry counters are thick and orange, with their counts; blocks that carry one have a thick frame. Edges of handlers are dashed.
    """
    network = code.plan.network
    graph = network.graph
    counts = code.counts()
    flows = code.flows()
    counted = code.plan.counted
    places = graph.instructions.places
    lines = [position[0] for position in graph.code.co_positions()]
    present = sorted(
        {each for edge in graph.edges for each in (edge.source, edge.target) if each != OUTSIDE}
    )
    boxes: dict[int, tuple[int, int]] = {}
    parts: list[str] = []
    top = 70
    for number in present:
        block = graph.blocks[number]
        texts = [f"line {lines[places[block.start]] or '?'}"]
        for site in block.sites[:_MOST_SITES]:
            mark = "" if site.always else "?"
            texts.append(
                f"{site.what}{mark}, line {lines[places[site.row]] or '?'}: {counts.get(site.row, 0):,}"
            )
        if len(block.sites) > _MOST_SITES:
            texts.append(f"{len(block.sites) - _MOST_SITES} more sites")
        height = _LINE * len(texts) + 10
        boxes[number] = (top, height)
        carries = network.block_edges.get(number) in counted
        parts.append(
            f'<rect x="{_LEFT}" y="{top}" width="{_WIDTH}" height="{height}" rx="4" class={quoteattr("counted" if carries else "block")}/>'
        )
        for at, text in enumerate(texts):
            parts.append(
                f'<text x="{_LEFT + 10}" y="{top + 18 + at * _LINE}" class={quoteattr("place" if not at else "site")}>{escape(text)}</text>'
            )
        top += height + _GAP
    bottom = top
    parts += _edges(code, boxes, flows)
    title = f"{graph.code.co_qualname}: {code.counter_count()} counters, {code.increments():,} increments"
    width = _LEFT + _WIDTH + 60 + _LANE * len(graph.edges)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 30}" width="{width}" height="{bottom + 30}" font-family="sans-serif" font-size="12">'
        "<style>.block{fill:#f4f6f8;stroke:#5b6570}.counted{fill:#fff3e0;stroke:#c25700;stroke-width:3}"
        ".edge{fill:none;stroke:#5b6570}.carries{fill:none;stroke:#c25700;stroke-width:3}.handler{fill:none;stroke:#5b6570;stroke-dasharray:4 3}"
        ".place{fill:#444}.site{fill:#111}.flow{fill:#8a3e00;font-size:11px}</style>"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" orient="auto"><path d="M0 0L8 4L0 8z" fill="#5b6570"/></marker></defs>'
        f'<rect width="100%" height="100%" fill="#fff"/><text x="{_LEFT}" y="24" font-size="14" font-weight="bold">{escape(title)}</text>'
        f"{''.join(parts)}</svg>"
    )


def _edges(
    code: InstrumentedCode,
    boxes: dict[int, tuple[int, int]],
    flows: dict[int, int],
) -> list[str]:
    graph = code.plan.network.graph
    parts = []
    lane = 0
    middle = _LEFT + _WIDTH // 2
    right = _LEFT + _WIDTH
    for number, edge in enumerate(graph.edges):
        kind = "carries" if number in code.plan.counted else "edge"
        if edge.kind is EdgeKind.HANDLER:
            kind = "handler"
        flow = f"{flows[number]:,}" if number in flows else ""
        if edge.source == OUTSIDE:
            y, height = boxes[edge.target]
            at = y + height // 2
            path, label = f"M{_LEFT - 70} {at}H{_LEFT - 2}", (_LEFT - 130, at + 4)
            word = "raised" if edge.kind is EdgeKind.HANDLER else "called"
            flow = f"{word} {flow}"
        elif edge.target == OUTSIDE:
            y, height = boxes[edge.source]
            at = y + height - 8
            path, label = f"M{right} {at}H{right + 40}", (right + 46, at + 4)
        else:
            start, height = boxes[edge.source]
            end, _ = boxes[edge.target]
            if end == start + height + _GAP:
                path, label = (
                    f"M{middle} {start + height}V{end - 2}",
                    (middle + 8, start + height + 20),
                )
            else:
                lane += 1
                x = right + 46 + lane * _LANE
                path = f"M{right} {start + height - 14}H{x}V{end + 8}H{right + 2}"
                label = (right + 8, start + height - 18)
        parts.append(f'<path d="{path}" class="{kind}" marker-end="url(#tip)"/>')
        if flow:
            parts.append(f'<text x="{label[0]}" y="{label[1]}" class="flow">{escape(flow)}</text>')
    return parts
