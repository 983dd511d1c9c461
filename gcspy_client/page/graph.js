// The graph of the objects of a small heap: each object at its place in the heap, arrows for references, roots, counts, colours, free pointers.
// Drawn from the spaces "Objects", "References" and "Parts of the heap" (drivers/gcspy_drivers/simulator/driver/object_graph.py).

const OBJECT_FILLS = { dark: ["#d7dbe0", "#8a929d", "#12151a", "#8d63c9"], light: ["#ffffff", "#9aa1ab", "#16191e", "#7d4fc0"] };

// A canvas with small texts, as large as its place in the page.
class GraphCanvas {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
  }

  // Clear it for a new picture; returns its width and height.
  begin() {
    const { canvas, context } = this, scale = window.devicePixelRatio || 1;
    const width = Math.max(1, canvas.clientWidth), height = Math.max(1, canvas.clientHeight);
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    return [width, height];
  }
}

class ObjectGraph extends GraphCanvas {
  constructor(canvas) {
    super(canvas);
    this.nodes = [];
  }

  // The three spaces of a session; null: it has no graph.
  static of(session) {
    const found = (name) => [...(session?.spaces.values() ?? [])].find((space) => space.name === name);
    const objects = found("Objects"), references = found("References"), parts = found("Parts of the heap");
    return objects && references && parts ? { objects, references, parts } : null;
  }

  static column(space, name) {
    const values = [...space.streams.values()].find((one) => one.schema.name === name);
    return values ? Array.from(values.values, (one, n) => (values.known && !values.known[n] ? null : Number(one))) : [];
  }

  // The numbers that are drawn; `words` says them.
  read({ objects, references, parts }) {
    const of = ObjectGraph.column;
    const offsets = of(objects, "Offset"), sizes = of(objects, "Size"), colours = of(objects, "Colour"), roots = of(objects, "Roots");
    const counts = of(objects, "References to it"), live = of(objects, "Reachable");
    const nodes = offsets.map((offset, n) => ({
      name: objects.texts.get(n) ?? `${n}`, offset, size: sizes[n], colour: colours[n], roots: roots[n], count: counts[n], live: live[n],
    }));
    const to = of(references, "To");
    const edges = of(references, "From").map((from, n) => [from, to[n]]).filter(([from, target]) => nodes[from] && nodes[target]);
    const ends = of(parts, "Ends"), begins = of(parts, "Begins"), free = of(parts, "Free pointer");
    return { nodes, edges, parts: begins.map((begin, n) => ({ name: parts.texts.get(n) ?? "", begin, end: ends[n], free: free[n] })), info: objects.info };
  }

  static words({ nodes, edges, info }) {
    if (!nodes.length) return info || "no objects";
    const known = nodes.filter((one) => one.live !== null);
    if (!known.length) return info;
    const live = known.filter((one) => one.live).length, rooted = nodes.filter((one) => one.roots).length;
    return T("{objects} objects, {references} references, {live} reachable, {garbage} garbage, {rooted} held by roots", { objects: nodes.length, references: edges.length, live, garbage: known.length - live, rooted });
  }

  draw(session, selected, theme, inks) {
    const spaces = ObjectGraph.of(session);
    if (!spaces) return "";
    const read = this.read(spaces);
    this.place(read, ...this.begin());
    this.drawParts(read, inks);
    this.drawEdges(read, selected, inks);
    this.drawNodes(read, selected, theme, inks);
    return ObjectGraph.words(read);
  }

  // Rows of memory from left to right, as many as it takes for objects to have room.
  place({ nodes, parts }, width, height) {
    const most = Math.max(1, ...parts.map((part) => part.end ?? 0));
    const rows = Math.max(1, Math.min(24, Math.round(Math.sqrt((most / Math.max(16, ...nodes.map((one) => one.size || 0))) * (height / width) * 1.6))));
    this.rows = rows;
    this.rowBytes = most / rows;
    this.left = 16;
    this.wide = width - 32;
    this.rowHeight = height / rows;
    const spread = nodes.length ? this.wide / Math.ceil(nodes.length / rows) : this.wide;
    this.radius = Math.max(5, Math.min(15, spread * 0.4, this.rowHeight * 0.26));
    for (const node of nodes) [node.x, node.y] = this.at(node.offset + (node.size || 0) / 2);
    this.nodes = nodes;
  }

  at(offset) {
    const row = Math.min(this.rows - 1, Math.max(0, Math.floor(offset / this.rowBytes)));
    return [this.left + ((offset - row * this.rowBytes) / this.rowBytes) * this.wide, (row + 0.55) * this.rowHeight];
  }

  drawParts({ parts }, inks) {
    const { context } = this;
    for (let row = 0; row < this.rows; row++) {
      context.fillStyle = inks.surface;
      context.fillRect(this.left, (row + 0.55) * this.rowHeight - 1, this.wide, 2);
    }
    for (const { name, begin, free } of parts) {
      if (begin === null) continue;
      const [bx, by_] = this.at(begin);
      context.fillStyle = inks.dim;
      context.fillRect(bx - 1, by_ - this.rowHeight * 0.42, 2, this.rowHeight * 0.84);
      context.textAlign = "left";
      context.fillText(visible(name), bx + 5, Math.max(7, by_ - this.rowHeight * 0.42));
      context.textAlign = "center";
      if (free === null || free <= begin) continue;
      const [fx, fy] = this.at(free - 1);
      context.fillStyle = inks.accent;
      context.beginPath();
      context.moveTo(fx, fy + this.rowHeight * 0.18);
      context.lineTo(fx - 5, fy + this.rowHeight * 0.36);
      context.lineTo(fx + 5, fy + this.rowHeight * 0.36);
      context.fill();
      context.fillText("free", fx, fy + this.rowHeight * 0.36 + 7);
    }
  }

  drawEdges({ nodes, edges }, selected, inks) {
    const { context, radius } = this;
    for (const pass of [0, 1]) {
      for (const [from, to] of edges) {
        const marked = from === selected || to === selected;
        if (marked !== (pass === 1)) continue;
        const a = nodes[from], b = nodes[to];
        context.strokeStyle = context.fillStyle = marked ? inks.accent : inks.dim;
        context.lineWidth = marked ? 2 : 1;
        context.globalAlpha = marked || selected < 0 ? 0.9 : 0.4;
        if (a === b) {
          context.beginPath();
          context.arc(a.x + radius, a.y - radius, radius * 0.7, 0, 2 * Math.PI);
          context.stroke();
          continue;
        }
        const apart = Math.hypot(b.x - a.x, b.y - a.y) || 1, bend = Math.min(40, 10 + apart * 0.12);
        const mx = (a.x + b.x) / 2 + ((b.y - a.y) / apart) * bend, my = (a.y + b.y) / 2 - (Math.abs(b.x - a.x) / apart) * bend;
        const angle = Math.atan2(b.y - my, b.x - mx), ex = b.x - Math.cos(angle) * radius, ey = b.y - Math.sin(angle) * radius;
        context.beginPath();
        context.moveTo(a.x, a.y);
        context.quadraticCurveTo(mx, my, ex, ey);
        context.stroke();
        context.beginPath();
        context.moveTo(ex, ey);
        context.lineTo(ex - 8 * Math.cos(angle - 0.4), ey - 8 * Math.sin(angle - 0.4));
        context.lineTo(ex - 8 * Math.cos(angle + 0.4), ey - 8 * Math.sin(angle + 0.4));
        context.fill();
      }
    }
    context.globalAlpha = 1;
  }

  drawNodes({ nodes }, selected, theme, inks) {
    const { context, radius } = this, fills = OBJECT_FILLS[theme.startsWith("dark") ? "dark" : "light"];
    nodes.forEach((node, n) => {
      context.beginPath();
      context.arc(node.x, node.y, radius, 0, 2 * Math.PI);
      context.fillStyle = node.colour === null ? inks.ground : fills[node.colour] ?? inks.ground;
      context.globalAlpha = node.live === 0 ? 0.45 : 1; // garbage is pale and dashed
      context.fill();
      context.lineWidth = n === selected ? 3 : 1.5;
      context.strokeStyle = n === selected ? inks.accent : inks.text;
      context.setLineDash(node.live === 0 ? [3, 3] : []);
      context.stroke();
      context.setLineDash([]);
      context.globalAlpha = 1;
      if (radius >= 8) {
        context.fillStyle = node.colour === 2 || node.colour === 3 ? "#fff" : "#000";
        context.fillText(node.count === null ? "?" : String(node.count), node.x, node.y);
      }
      if (node.roots) {
        // A root: an arrow from above.
        context.fillStyle = inks.warning;
        context.beginPath();
        context.moveTo(node.x, node.y - radius - 1);
        context.lineTo(node.x - 5, node.y - radius - 10);
        context.lineTo(node.x + 5, node.y - radius - 10);
        context.fill();
      }
    });
  }

  // The object at a place of the page; -1: none.
  nodeAt(clientX, clientY) {
    const box = this.canvas.getBoundingClientRect(), x = clientX - box.left, y = clientY - box.top;
    return this.nodes.findIndex((node) => Math.hypot(node.x - x, node.y - y) <= this.radius + 2);
  }
}
