"""A flame graph as an SVG file that a web browser can zoom and search, or as folded stacks for other tools.

The file needs nothing else: its script is in it, and it loads nothing.

Knows flame graphs and SVG; does not know traces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from gcspy_protocol.text.short_places import short_place
from gcspy_protocol.text.visible import visible

from gcspy_client.model.panels.flame_graph import FlameGraph, box_colour, change_colour

__all__ = ["flame_svg", "folded_stacks"]

_WIDTH: Final = 1200
_ROW: Final = 18
_TOP: Final = 64
_MARGIN: Final = 10
_LEAST_PIXELS: Final = 0.4
"""Narrower boxes are left out: nobody sees them, and a program has a hundred thousand of them."""
_LETTER: Final = 6.6
"""Width of a letter, pixels."""


def flame_svg(
    graph: FlameGraph, title: str, *, in_bytes: bool = True, dark: bool = False, note: str = ""
) -> Iterator[str]:
    """Yield the text of an SVG file, in parts.

    Args:
        graph: The graph.
        title: Of the picture.
        in_bytes: Whether widths are bytes; otherwise objects.
        dark: Whether the background is dark.
        note: A line under the title.
    """
    layout = graph.layout(in_bytes=in_bytes)
    inner = _WIDTH - 2 * _MARGIN
    shown = np.flatnonzero(layout.width * inner >= _LEAST_PIXELS)
    rows = int(layout.row[shown].max(initial=0)) + 1
    height = _TOP + rows * _ROW + 34
    paper, ink = ("#1b1e23", "#e6e6e6") if dark else ("#ffffff", "#1b1e23")
    left_out = len(graph) - len(shown)
    lines = note
    if left_out:
        lines += f"{' ' if note else ''}{left_out:,} boxes are too narrow to be drawn."
    yield (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="monospace" font-size="11" role="img" aria-label={quoteattr(_plain(title))}>\n'
        f"<title>{escape(_plain(title))}</title>\n"
        f"<style>svg{{background:{paper}}}text{{fill:{ink};pointer-events:none}}.b text{{fill:{'#ffffff' if dark else '#000000'}}}"
        ".b{cursor:pointer}.b:hover rect{stroke:#888;stroke-width:1}.m rect{stroke:#d000d0;stroke-width:2}.u{cursor:pointer;text-decoration:underline;"
        "pointer-events:auto}</style>\n"
        f'<text x="{_MARGIN}" y="20" font-size="15">{escape(_plain(title))}</text>\n'
        f'<text x="{_MARGIN}" y="38" opacity="0.8">{escape(_plain(lines))}</text>\n'
        f'<text id="said" x="{_MARGIN}" y="{_TOP - 9}"></text>\n'
        f'<text class="u" id="search" x="{_WIDTH - _MARGIN}" y="20" text-anchor="end">Search (Ctrl+F)</text>\n'
        f'<text id="found" x="{_WIDTH - _MARGIN}" y="38" text-anchor="end"></text>\n'
    )
    whole = max(int(graph.bytes[0]), 1)
    most = 0 if graph.before is None else int(np.abs(graph.bytes - graph.before)[1:].max(initial=0))
    has_child = np.zeros(len(graph), np.bool_)
    has_child[graph.parent[1:]] = True
    for box in shown.tolist():
        name = _plain(graph.name[box])
        left, width = float(layout.left[box]), float(layout.width[box])
        x, y = _MARGIN + left * inner, _TOP + int(layout.row[box]) * _ROW
        if graph.before is None:
            colour = box_colour(graph.name[box], dark=dark, leaf=not has_child[box])
        else:
            colour = change_colour(int(graph.before[box]), int(graph.bytes[box]), most, dark=dark)
        letters = int((width * inner - 6) / _LETTER)
        if len(name) > letters:
            name = short_place(name)
        text = name if len(name) <= letters else (name[: letters - 2] + ".." if letters > 3 else "")
        share = int(graph.bytes[box]) / whole
        yield (
            f'<g class="b" data-l="{left:.7f}" data-w="{width:.7f}" data-r="{int(layout.row[box])}">'
            f"<title>{escape(_plain(graph.words(box)))}</title>"
            f'<rect x="{x:.2f}" y="{y}" width="{max(width * inner - 0.5, 0.3):.2f}" height="{_ROW - 1}" rx="2" fill="{colour}" data-s="{share:.6f}"/>'
            f'<text x="{x + 3:.2f}" y="{y + 13}">{escape(text)}</text></g>\n'
        )
    script = (
        _SCRIPT.replace("@MARGIN", str(_MARGIN))
        .replace("@INNER", str(inner))
        .replace("@LETTER", str(_LETTER))
    )
    yield f"<script><![CDATA[{script}]]></script>\n</svg>\n"


_SCRIPT: Final = """
const boxes=[...document.querySelectorAll('g.b')].map(g=>({g,l:+g.dataset.l,w:+g.dataset.w,r:+g.dataset.r,
 title:g.querySelector('title').textContent,rect:g.querySelector('rect'),text:g.querySelector('text')}));
for(const b of boxes)b.name=b.title.slice(0,b.title.lastIndexOf(': '));
const said=document.getElementById('said'),found=document.getElementById('found');
function show(f){for(const b of boxes){
 const above=b.r<=f.r&&b.l<=f.l+1e-9&&b.l+b.w>=f.l+f.w-1e-9;
 const inside=b.r>f.r&&b.l>=f.l-1e-9&&b.l+b.w<=f.l+f.w+1e-9;
 b.g.style.display=above||inside?'':'none';if(!above&&!inside)continue;
 const x=@MARGIN+(above?0:(b.l-f.l)/f.w)*@INNER,w=(above?1:b.w/f.w)*@INNER;
 b.rect.setAttribute('x',x);b.rect.setAttribute('width',Math.max(w-0.5,0.3));b.rect.style.opacity=above&&b!==f?0.6:1;
 b.text.setAttribute('x',x+3);const n=Math.floor((w-6)/@LETTER);
 let t=b.name;if(t.length>n)t=t.replace(/\\((?:[^()\\/]*\\/)+(?=[^()\\/]+\\))/,'(\u2026/');
 b.text.textContent=t.length<=n?t:n>3?t.slice(0,n-2)+'..':'';}}
for(const b of boxes){b.g.addEventListener('click',()=>show(b));
 b.g.addEventListener('mouseover',()=>{said.textContent=b.title;});b.g.addEventListener('mouseout',()=>{said.textContent='';});}
function search(){const t=prompt('Find functions and types that contain:');if(t===null)return;let s=0;const taken=[];
 for(const b of boxes){const m=t!==''&&b.name.toLowerCase().includes(t.toLowerCase());b.g.classList.toggle('m',m);
  if(m&&!taken.some(o=>o.l<=b.l+1e-9&&o.l+o.w>=b.l+b.w-1e-9)){taken.push(b);s+=b.w;}}
 found.textContent=t===''?'':(100*s).toFixed(1)+' % in boxes with '+t;}
document.getElementById('search').addEventListener('click',search);
addEventListener('keydown',e=>{if(e.key==='f'&&(e.ctrlKey||e.metaKey)){e.preventDefault();search();}
 if(e.key==='Escape')show(boxes[0]);});
"""


def folded_stacks(graph: FlameGraph, *, in_bytes: bool = True) -> Iterator[str]:
    """Yield a line for each stack, outermost function first, separated by semicolons, and its own bytes or objects."""
    weight = graph.weight(in_bytes=in_bytes)
    own = weight.copy()
    np.subtract.at(own, graph.parent[1:], weight[1:])
    for box in np.flatnonzero(own > 0).tolist():
        names = [_plain(graph.name[one]).replace(";", ",") for one in graph.path(box)[1:]]
        yield f"{';'.join(names) or 'all'} {int(own[box])}\n"


_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def _plain(text: str) -> str:
    """Return a stranger's text without what neither XML nor people can read."""
    return _CONTROL.sub("?", visible(text))
