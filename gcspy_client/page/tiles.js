// Draws the tiles of a space upon a canvas: cells in the colours of their codes, unknown ones hatched, separators, links, and the selected one.

class TileMap {
  constructor(canvas, strip = false) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.strip = strip;
    this.layout = null;
    this.selected = -1;
  }

  // Draw a shown stream. Does all of it: ten thousand tiles take about a millisecond.
  draw(stream, palette) {
    const { canvas, context } = this, scale = window.devicePixelRatio || 1;
    const width = Math.max(1, Math.round(canvas.clientWidth * scale)), height = Math.max(1, Math.round(canvas.clientHeight * scale));
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
      this.image = null;
    }
    if (!this.image) {
      this.image = context.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    const { space } = stream, count = space.count;
    const largest = Math.round(24 * scale);
    const layout = this.strip ? stripTiles(count, width, height) : fitTiles(count, width, height, { largest: count < 600 ? 3 * largest : largest, rowWidth: space.row });
    this.layout = layout;
    const codes = stream.codes(), pixels = this.pixels;
    pixels.fill(palette.pixels[CODE.CANVAS]);
    if (layout.perPixel > 1) this.pool(codes, layout, palette.pixels, width);
    else this.fill(codes, layout, palette.pixels, width);
    context.putImageData(this.image, 0, 0);
    this.mark(space, layout, palette);
  }

  pool(codes, layout, colours, width) {
    for (let cell = 0, tile = 0; tile < codes.length; cell++) {
      let most = 0;
      for (const end = Math.min(tile + layout.perPixel, codes.length); tile < end; tile++) most = Math.max(most, codes[tile]);
      this.pixels[Math.floor(cell / layout.columns) * width + (cell % layout.columns)] = colours[most];
    }
  }

  fill(codes, layout, colours, width) {
    const { columns, width: w, height: h } = layout, pixels = this.pixels;
    const gap = Math.min(w, h) >= GRID_FROM ? 1 : 0, canvasColour = colours[CODE.CANVAS];
    for (let tile = 0, row = 0, column = 0; tile < codes.length; tile++) {
      const code = codes[tile], colour = colours[code];
      const left = column * w, top = row * h;
      if (code === CODE.UNKNOWN && gap) {
        for (let y = 0; y < h - gap; y++) {
          for (let x = 0, at = (top + y) * width + left; x < w - gap; x++, at++) pixels[at] = (x + y) % 4 < 2 ? colour : canvasColour;
        }
      } else if (code === CODE.ZERO && w > 4 && h > 4) {
        // Nothing in it: a frame, so that nothing and very little look different without colours, too.
        for (let y = 0, at = top * width + left; y < h - gap; y++, at += width) {
          if (y === 0 || y === h - gap - 1) pixels.fill(colour, at, at + w - gap);
          else pixels[at] = pixels[at + w - gap - 1] = colour;
        }
      } else {
        for (let y = 0, at = top * width + left; y < h - gap; y++, at += width) pixels.fill(colour, at, at + w - gap);
      }
      if (++column === columns) {
        column = 0;
        row++;
      }
    }
  }

  mark(space, layout, palette) {
    const { context } = this, control = space.control.values;
    if (layout.perPixel === 1 && layout.width >= GRID_FROM && layout.height >= GRID_FROM) {
      context.fillStyle = palette.line;
      for (let tile = 0; tile < space.count; tile++) {
        if (!(control[tile] & (CONTROL.SEPARATOR | CONTROL.LINK))) continue;
        const [x, y, w, h] = this.rectangle(tile);
        if (control[tile] & CONTROL.SEPARATOR) context.fillRect(x - 1, y, 1, h);
        if (control[tile] & CONTROL.LINK) context.fillRect(x + w - 1, y + (h >> 1), 3, 1);
      }
    }
    if (this.selected >= 0 && this.selected < space.count) {
      const [x, y, w, h] = this.rectangle(this.selected), scale = window.devicePixelRatio || 1;
      context.lineWidth = 2 * scale;
      context.strokeStyle = palette.css[CODE.CANVAS];
      context.strokeRect(x - 2 * scale, y - 2 * scale, w + 4 * scale, h + 4 * scale);
      context.strokeStyle = palette.line;
      context.strokeRect(x - scale, y - scale, w + 2 * scale, h + 2 * scale);
    }
  }

  rectangle(tile) {
    const { columns, width, height, perPixel } = this.layout, cell = Math.floor(tile / perPixel);
    const gap = Math.min(width, height) >= GRID_FROM ? 1 : 0;
    return [(cell % columns) * width, Math.floor(cell / columns) * height, width - gap, height - gap];
  }

  // The tile at a place of the page; -1: there is none.
  tileAt(clientX, clientY) {
    if (!this.layout || !this.layout.count) return -1;
    const box = this.canvas.getBoundingClientRect(), scale = this.canvas.width / Math.max(1, box.width);
    const column = Math.floor(((clientX - box.left) * scale) / this.layout.width), row = Math.floor(((clientY - box.top) * scale) / this.layout.height);
    if (column < 0 || row < 0 || column >= this.layout.columns) return -1;
    const tile = (row * this.layout.columns + column) * this.layout.perPixel;
    return tile < this.layout.count ? tile : -1;
  }
}
