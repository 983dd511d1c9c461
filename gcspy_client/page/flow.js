// The flow graph of a function: blocks below each other, edges as arrows in the colours of the shown stream, each with its number; thick ones carry a counter.
// Drawn from a space whose tiles are edges, with the streams "From" and "To", by the rules of gcspy_client/model/renderers/flow_graph.py.

const COUNTER = 1; // of what an edge "Carries"; a greater number is the call of a handler
const FLOW = { MOST: 400, PITCH: 20, OUT: 44, LEAVING: 22, LANE: 34, NEAR: 6, SHARES: [0.5, 0.35, 0.65, 0.2, 0.8] };

class FlowGraph extends GraphCanvas {
  constructor(canvas) {
    super(canvas);
    this.ways = [];
  }

  // The ends of the edges of a space; null: its tiles are no edges, or too many.
  static of(space) {
    if (!space) return null;
    const begins = ObjectGraph.column(space, "From"), ends = ObjectGraph.column(space, "To");
    if (!begins.length || begins.length > FLOW.MOST || begins.length !== ends.length) return null;
    const blocks = Math.max(...begins, ...ends) + 1;
    if (blocks < 1 || blocks > FLOW.MOST || [...begins, ...ends].includes(null)) return null;
    return { begins, ends, blocks, carries: ObjectGraph.column(space, "Carries") };
  }

  // So high that the names of blocks can be read.
  static leastHeight({ blocks }) {
    return FLOW.PITCH * blocks;
  }

  // For each span of blocks a lane in which it meets no other, from 0; short ones come first.
  static lanes(spans) {
    const lanes = spans.map(() => 0), used = [];
    const order = spans.map((_, n) => n).sort((a, b) => spans[a][1] - spans[a][0] - (spans[b][1] - spans[b][0]) || a - b);
    for (const n of order) {
      const [low, high] = spans[n];
      let lane = used.findIndex((others) => others.every(([begin, end]) => high < begin || end < low));
      if (lane < 0) lane = used.push([]) - 1;
      used[lane].push([low, high]);
      lanes[n] = lane;
    }
    return lanes;
  }

  // The names of blocks, as the names of edges have them.
  static names(space, { begins, ends, blocks }) {
    const names = Array.from({ length: blocks }, (_, n) => String(n));
    begins.forEach((begin, tile) => {
      const parts = (space.texts.get(tile) ?? "").split(" → ");
      if (parts.length < 2) return;
      if (begin >= 0) names[begin] = parts[0];
      if (ends[tile] >= 0) names[ends[tile]] = parts[1].split(",")[0];
    });
    return names;
  }

  // `read`: what `of` returned for the space.
  draw(read, space, stream, selected, palette, inks) {
    const { context } = this;
    this.place(read, ...this.begin());
    FlowGraph.names(space, read).forEach((name, block) => {
      const [x, y, wide, high] = this.box(block);
      context.fillStyle = inks.surface;
      context.fillRect(x, y, wide, high);
      context.strokeStyle = inks.dim;
      context.lineWidth = 1;
      context.strokeRect(x, y, wide, high);
      context.fillStyle = inks.text;
      if (high >= 9) context.fillText(visible(name).slice(0, 12), x + wide / 2, y + high / 2);
    });
    const codes = stream.codes(), counted = read.carries.filter((one) => one === COUNTER).length;
    this.ways.forEach((way, tile) => this.drawWay(way, palette.css[codes[tile]], read.carries[tile] ? 4 : 2, tile === selected, inks));
    context.textAlign = "left";
    context.fillStyle = inks.text;
    if (!stream.isEnum) {
      this.ways.forEach((way, tile) => {
        const text = stream.isKnown(tile) ? shortNumber(stream.values.values[tile]).trim() : "?", [x, y] = this.label(way, context.measureText(text).width);
        context.fillText(text, x, y);
      });
    }
    return T("{edges} edges between {blocks} blocks; {counted} carry a counter", { edges: read.begins.length, blocks: read.blocks, counted });
  }

  place({ begins, ends, blocks }, width, height) {
    this.width = width;
    this.pitch = height / blocks;
    const spans = begins.map((begin, n) => [begin, ends[n]]);
    this.ways = spans.map(() => null);
    for (const side of [1, -1]) {
      const turning = spans.flatMap(([begin, end], n) => (begin >= 0 && end >= 0 && (side > 0 ? end > begin + 1 : end <= begin) ? [n] : []));
      const lanes = FlowGraph.lanes(turning.map((n) => [Math.min(...spans[n]), Math.max(...spans[n])]));
      const step = Math.min(FLOW.LANE, (width / 2 - 60 - FLOW.OUT) / (Math.max(0, ...lanes) + 1));
      turning.forEach((n, at) => (this.ways[n] = this.turning(...spans[n], side, lanes[at], step)));
    }
    const straight = new Map();
    spans.forEach(([begin, end], n) => {
      if (this.ways[n]) return;
      const key = `${begin} ${end}`, among = straight.get(key) ?? 0;
      straight.set(key, among + 1);
      this.ways[n] = this.straight(begin, end, among);
    });
  }

  box(block) {
    const wide = Math.min(70, this.width / 6), high = Math.max(3, Math.min(this.pitch * 0.6, 24));
    return [this.width / 2 - wide / 2, (block + 0.5) * this.pitch - high / 2, wide, high];
  }

  // Through a lane at the right (1) or the left (-1).
  turning(begin, end, side, lane, step) {
    const [left, top, wide, high] = this.box(begin), [, other] = this.box(end);
    const edge = side > 0 ? left + wide : left, x = edge + side * (12 + FLOW.OUT + step * lane);
    const from = top + high * (side > 0 ? 0.75 : 0.25), to = other + high * (side > 0 ? 0.25 : 0.75);
    return { corners: [[edge, from], [x, from], [x, to], [edge, to]], text: [x + 4 * side, (from + to) / 2], side };
  }

  // Down to the next block, from outside, or out.
  straight(begin, end, among) {
    if (begin < 0) {
      const [left, top, , high] = this.box(Math.max(end, 0)), y = top + high / 2;
      return { corners: [[left - FLOW.OUT, y], [left, y]], text: [left - FLOW.OUT - 4, y], side: -1 };
    }
    const [left, top, wide, high] = this.box(begin);
    if (end < 0) {
      const y = top + high * 0.75, at = left + wide + FLOW.LEAVING;
      return { corners: [[left + wide, y], [at, y]], text: [at + 4, y], side: 1 };
    }
    const x = left + wide / 2 + 12 * among, y = this.box(end)[1];
    return { corners: [[x, top + high], [x, y]], text: [x + 5, (top + high + y) / 2], side: 1 };
  }

  // Where the number of an edge begins: at its middle, or beside it where no edge crosses the number.
  label(way, wide) {
    const [x, middle] = way.text, left = way.side > 0 ? x : x - wide;
    if (way.corners.length < 4) return [left, middle];
    const [from, to] = [way.corners[1][1], way.corners[2][1]];
    const crossed = (y) => this.ways.some(({ corners }) => corners.slice(1).some(([bx, by_], n) => {
      const [ax, ay] = corners[n];
      return Math.min(ax, bx) < left + wide && Math.max(ax, bx) > left && Math.min(ay, by_) < y + 8 && Math.max(ay, by_) > y - 8;
    }));
    const free = FLOW.SHARES.map((share) => from + (to - from) * share).find((y) => !crossed(y));
    return [left, free ?? middle];
  }

  drawWay({ corners }, colour, thick, marked, inks) {
    const { context } = this, [[bx, by_], [x, y]] = corners.slice(-2), size = 5 + thick;
    if (marked) this.stroke(corners, inks.accent, thick + 4);
    this.stroke(corners, colour, thick);
    context.fillStyle = colour;
    context.beginPath();
    context.moveTo(x, y);
    if (bx === x) {
      context.lineTo(x - size / 2, y - size);
      context.lineTo(x + size / 2, y - size);
    } else {
      const back = bx < x ? -size : size;
      context.lineTo(x + back, y - size / 2);
      context.lineTo(x + back, y + size / 2);
    }
    context.fill();
  }

  stroke(corners, colour, thick) {
    const { context } = this;
    context.strokeStyle = colour;
    context.lineWidth = thick;
    context.beginPath();
    corners.forEach(([x, y], n) => (n ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.stroke();
  }

  // The edge near a place of the page; -1: none.
  edgeAt(clientX, clientY) {
    const bounds = this.canvas.getBoundingClientRect(), x = clientX - bounds.left, y = clientY - bounds.top;
    const far = ({ corners }) => Math.min(...corners.slice(1).map(([bx, by_], n) => {
      const [ax, ay] = corners[n];
      return Math.hypot(x - Math.min(Math.max(x, Math.min(ax, bx)), Math.max(ax, bx)), y - Math.min(Math.max(y, Math.min(ay, by_)), Math.max(ay, by_)));
    }));
    const apart = this.ways.map(far), least = Math.min(...apart);
    return least <= FLOW.NEAR ? apart.indexOf(least) : -1;
  }
}
