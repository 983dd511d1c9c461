// Where tiles lie in a picture, by the rules of gcspy_client/model/layout.py: rows of cells as large as fit, or several tiles a pixel.

const GRID_FROM = 3;

// Returns { columns, rows, width, height, perPixel } of the cells of `count` tiles in a picture of some device pixels.
function fitTiles(count, width, height, { largest = 24, rowWidth = null } = {}) {
  width = Math.max(1, width);
  height = Math.max(1, height);
  if (!count) return { count, columns: 1, rows: 0, width: 1, height: 1, perPixel: 1 };
  if (rowWidth && rowWidth <= width && Math.ceil(count / rowWidth) <= height) {
    const rows = Math.ceil(count / rowWidth), size = Math.max(1, Math.min(Math.floor(width / rowWidth), Math.floor(height / rows), largest));
    return { count, columns: rowWidth, rows, width: size, height: size, perPixel: 1 };
  }
  if (count > width * height) {
    const perPixel = Math.ceil(count / (width * height));
    return { count, columns: width, rows: Math.ceil(count / (perPixel * width)), width: 1, height: 1, perPixel };
  }
  let best = { count, columns: width, rows: Math.ceil(count / width), width: 1, height: 1, perPixel: 1 }, covered = 1;
  const most = Math.min(largest, width, Math.floor(Math.sqrt(Math.floor((width * height) / count))) + 1);
  for (let cell = 1; cell <= most; cell++) {
    const columns = Math.floor(width / cell), rows = Math.ceil(count / columns);
    const tall = Math.min(Math.floor(height / rows), Math.max(2, Math.floor((cell * 3) / 2)), largest);
    if (tall < Math.floor((cell * 2) / 3) || tall < 1) continue;
    const area = cell * tall * (1 - (0.04 * Math.abs(tall - cell)) / cell);
    if (area >= covered) {
      covered = area;
      best = { count, columns: Math.min(columns, count), rows, width: cell, height: tall, perPixel: 1 };
    }
  }
  return best;
}

// All tiles in a strip of little height: one row of cells as wide as it is, where they fit.
function stripTiles(count, width, height) {
  if (!count || count * GRID_FROM > width) return fitTiles(count, width, height);
  return { count, columns: count, rows: 1, width: Math.min(Math.floor(width / count), 4 * Math.max(1, height)), height: Math.max(1, height), perPixel: 1 };
}
