// The timeline: a mark for each event in the colour and height of its kind, gaps where events are not here, and the total of the shown stream.

class Timeline {
  constructor(canvas, store) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.store = store;
  }

  placeAt(clientX) {
    const box = this.canvas.getBoundingClientRect(), first = this.store.dropped, count = this.store.length - first;
    return first + Math.min(count - 1, Math.max(0, Math.floor(((clientX - box.left) * count) / Math.max(1, box.width))));
  }

  draw(columns, shown, limit, words, inks, kindColour) {
    const { canvas, context, store } = this, scale = window.devicePixelRatio || 1;
    const width = (canvas.width = Math.max(1, Math.round(canvas.clientWidth * scale)));
    const height = (canvas.height = Math.max(1, Math.round(canvas.clientHeight * scale)));
    const first = store.dropped, count = store.length - first;
    context.fillStyle = inks.ground;
    context.fillRect(0, 0, width, height);
    if (!count) return;
    const left = (place) => ((place - first) * width) / count, marks = 12 * scale, base = height - marks - 2 * scale;
    // Marks: rarer kinds are drawn last, so that they are not hidden where events are denser than pixels.
    const often = new Map();
    for (const row of store.rows) often.set(row.kind, (often.get(row.kind) || 0) + 1);
    for (const [kind] of [...often].sort((one, other) => other[1] - one[1])) {
      context.fillStyle = kindColour(kind);
      for (let place = first; place < store.length && place <= limit; place++) {
        if (store.row(place).kind === kind) context.fillRect(left(place), height - marks, Math.max(scale, width / count - (width / count > 4 ? scale : 0)), marks);
      }
    }
    for (let place = first; place < store.length && place <= limit; place++) {
      const { missed, left: omitted } = store.row(place);
      if (!missed && !omitted) continue;
      context.fillStyle = missed ? inks.warning : inks.dim;
      context.fillRect(left(place), height - marks - (missed ? 4 : 2) * scale, Math.max(scale, width / count / 3), (missed ? 4 : 1) * scale);
    }
    this.plot(columns, left, width / count, base, limit, inks, scale);
    drawPlace(context, width, height, store, shown, limit, words, inks, scale);
  }

  plot(columns, left, step, base, limit, inks, scale) {
    let low = 0, high = 0;
    for (const { total } of columns.values()) {
      if (total !== null) [low, high] = [Math.min(low, total), Math.max(high, total)];
    }
    if (high === low) return;
    const { context, store } = this;
    context.strokeStyle = inks.text;
    context.lineWidth = 1.5 * scale;
    context.lineJoin = "round";
    context.beginPath();
    let drawn = false;
    for (let place = store.dropped; place < store.length && place <= limit; place++) {
      const total = columns.get(place)?.total ?? null;
      if (total === null) {
        drawn = false; // unknown, not gathered, or not read yet: no line
        continue;
      }
      const x = left(place) + step / 2, y = 3 * scale + (base - 4 * scale) * (1 - (total - low) / (high - low));
      if (drawn) context.lineTo(x, y);
      else context.moveTo(x, y);
      drawn = true;
    }
    context.stroke();
  }
}
