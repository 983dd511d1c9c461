// The history graph of one stream: each event is a line of very small tiles, in the order of their keys; time runs to the right.
// Filled in turns of a few milliseconds, so that the page stays alive. Knows the store and codes; does not know who points at it.

const MOST_BINS = 2048, TURN_MILLIS = 12;

class HistoryGraph {
  constructor(canvas, store) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.store = store;
    this.columns = new Map(); // place of an event to { codes, bases, total }
    this.wanted = null;
    this.turn = 0;
    this.onfilled = () => {};
  }

  // Show another stream, or the same with other places for names.
  choose(stream) {
    const wanted = { space: stream.space.id, stream: stream.schema.id, frequent: stream.frequent };
    if (JSON.stringify(wanted) === JSON.stringify(this.wanted)) return;
    this.wanted = wanted;
    this.columns = new Map();
    this.turn++;
  }

  column(session) {
    const space = session.spaces.get(this.wanted.space), values = space?.streams.get(this.wanted.stream);
    if (!values || !values.sequence) return { codes: new Uint8Array(0), bases: null, total: null };
    const stream = new ShownStream(session, space, values, this.wanted.frequent);
    let codes = stream.codes(), bases = space.naming === "extents" ? space.bases : null;
    if (codes.length > MOST_BINS) {
      const pooled = new Uint8Array(MOST_BINS);
      codes.forEach((code, tile) => {
        const bin = Math.floor((tile * MOST_BINS) / codes.length);
        if (code > pooled[bin]) pooled[bin] = code;
      });
      codes = pooled;
      bases = null;
    }
    // A stream that was not gathered at this event says nothing new about it.
    const fresh = values.sequence === session.event.sequence, summary = values.summary;
    const total = fresh && summary && summary.covered && summary.values.length && !stream.isEnum ? Number(summary.values[0]) : null;
    return { codes, bases, total };
  }

  note(place, session) {
    if (this.wanted) this.columns.set(place, this.column(session));
  }

  // Fill what is missing up to a place, a few milliseconds at a time.
  async fill(last) {
    const turn = ++this.turn, cursor = new Cursor(this.store);
    let began = performance.now();
    for (let place = this.store.dropped; place <= last; place++) {
      if (this.columns.has(place) || place < this.store.dropped) continue;
      const session = await cursor.seek(place);
      if (turn !== this.turn) return;
      this.columns.set(place, this.column(session));
      if (performance.now() - began > TURN_MILLIS) {
        this.onfilled();
        await new Promise((resolve) => setTimeout(resolve));
        if (turn !== this.turn) return;
        began = performance.now();
      }
    }
    this.onfilled();
  }

  // The line of each tile of each column: by key where tiles have extents, otherwise by number.
  lines() {
    let most = 0, keys = null;
    const known = new Set();
    for (const { codes, bases } of this.columns.values()) {
      most = Math.max(most, codes.length);
      if (bases && !known.has(bases)) {
        known.add(bases);
        keys = keys || new Set();
        for (const base of bases) keys.add(base);
      }
    }
    if (!keys) return { height: most, lineOf: () => null };
    const order = new Map([...keys].sort((one, other) => (one < other ? -1 : 1)).map((key, n) => [key, n]));
    const made = new Map([...known].map((bases) => [bases, Uint32Array.from(bases, (base) => order.get(base))]));
    return { height: order.size, lineOf: (bases) => made.get(bases) ?? null };
  }

  draw(palette, shown, limit, words, inks) {
    const { canvas, context, store } = this, scale = window.devicePixelRatio || 1;
    const width = Math.max(1, Math.round(canvas.clientWidth * scale)), height = Math.max(1, Math.round(canvas.clientHeight * scale));
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    const key = [this.turn, this.columns.size, store.length, store.dropped, limit, width, height].join(), { image } = this;
    if (!image || this.drawnKey !== key || this.drawnPalette !== palette) {
      this.image = this.picture(palette, limit, width, height);
      this.drawnKey = key;
      this.drawnPalette = palette;
    }
    context.putImageData(this.image, 0, 0);
    drawPlace(context, width, height, store, shown, limit, words, inks, scale);
  }

  // All lines, of which only the place of the shown event changes from one event to the next.
  picture(palette, limit, width, height) {
    const { context, store } = this;
    const image = context.createImageData(width, height), pixels = new Uint32Array(image.data.buffer);
    const codes = new Uint8Array(width * height);
    const { height: tall, lineOf } = this.lines();
    const first = store.dropped, count = store.length - first;
    for (let place = first; place < store.length && place <= limit; place++) {
      const column = this.columns.get(place);
      if (!column || !tall) continue;
      const left = Math.floor(((place - first) * width) / count), right = Math.max(left + 1, Math.floor(((place - first + 1) * width) / count));
      const lines = lineOf(column.bases);
      for (let tile = 0; tile < column.codes.length; tile++) {
        const code = column.codes[tile], line = lines ? lines[tile] : tile;
        const top = Math.floor((line * height) / tall), bottom = Math.max(top + 1, Math.floor(((line + 1) * height) / tall));
        for (let y = top; y < bottom; y++) {
          for (let x = left, at = y * width + left; x < right; x++, at++) if (code > codes[at]) codes[at] = code;
        }
      }
    }
    for (let at = 0; at < codes.length; at++) pixels[at] = palette.pixels[codes[at]];
    return image;
  }
}

// The line of the shown event, and the curtain over what may not be seen yet.
function drawPlace(context, width, height, store, shown, limit, words, inks, scale) {
  const first = store.dropped, count = Math.max(1, store.length - first);
  if (limit < store.length - 1) {
    const left = Math.ceil(((limit - first + 1) * width) / count);
    context.fillStyle = inks.surface;
    context.fillRect(left, 0, width - left, height);
    context.fillStyle = inks.dim;
    context.font = `${12 * scale}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    if (width - left > context.measureText(words).width + 16 * scale) context.fillText(words, left + 8 * scale, height / 2);
  }
  const x = Math.round(((shown - first + 0.5) * width) / count);
  context.fillStyle = inks.ground;
  context.fillRect(x - 2 * scale, 0, 4 * scale, height);
  context.fillStyle = inks.accent;
  context.fillRect(x - scale, 0, 2 * scale, height);
}
