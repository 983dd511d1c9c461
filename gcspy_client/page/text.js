// Values, names, sizes and times as texts, by the rules of gcspy_client/model/text.py. Texts go into the page as text, never as HTML.

function grouped(value) {
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

function shortNumber(value, base = 1000) {
  const units = base === 1000 ? ["", "k", "M", "G", "T", "P", "E"] : ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
  let size = Number(value);
  if (Math.abs(size) < (base === 1000 ? 10000 : 1024)) return base === 1000 ? grouped(value) : `${value} `;
  let step = 0;
  while (Math.abs(size) >= base && step < units.length - 1) {
    size /= base;
    step++;
  }
  return `${size.toFixed(Math.abs(size) >= 100 ? 0 : 1)} ${units[step]}`;
}

function percent(value, top) {
  if (top <= 0) return Number(value) === 0 ? "0 %" : "> 100 %";
  const share = (100 * Number(value)) / Number(top);
  if (share > 0 && share < 0.1) return "< 0.1 %";
  if (share > 99.9 && share < 100) return "> 99.9 %";
  return share === 0 || share === 100 ? `${share} %` : `${share.toFixed(1)} %`;
}

function shortAmount(stream, value) {
  const { prefix, suffix } = stream.schema;
  return stream.isBytes ? `${prefix}${shortNumber(value, 1024)}B` : `${prefix}${shortNumber(value)}${suffix}`;
}

// The value of a tile in full.
function longValue(stream, tile) {
  if (!stream.isKnown(tile)) return T("unknown");
  const { schema } = stream, value = stream.values.values[tile];
  const united = (number) => `${schema.prefix}${grouped(number)}${schema.suffix}`;
  const share = (top) => T("{share}  ({part} of {whole})", { share: percent(value, top), part: schema.prefix + grouped(value), whole: grouped(top) + schema.suffix });
  if (stream.isEnum) return stream.names[Number(value)] ?? (stream.named ? T("unknown") : T("{value} (has no name)", { value }));
  if (schema.presentation === PRESENTATION.PLUS && value > schema.max) return `${united(schema.max)}+`;
  if (schema.presentation === PRESENTATION.PERCENT) return share(schema.max);
  if (stream.tops) return stream.tops.known && !stream.tops.known[tile] ? T("unknown") : share(stream.tops.values[tile]);
  return united(value);
}

function summaryText(stream) {
  if (stream.named) return nameCounts(stream, Array.from(stream.tally()), 3);
  const summary = stream.values.summary;
  if (!summary) return "–";
  if (!summary.covered) return T("unknown");
  const values = summary.values;
  if (stream.isEnum) return nameCounts(stream, values, 5);
  if (values.length === 2) return T("{share}  ({part} of {whole})", { share: percent(values[0], values[1]), part: shortAmount(stream, values[0]), whole: shortAmount(stream, values[1]) });
  return values.length ? shortAmount(stream, values[0]) : "–";
}

// The names that occur, with their tiles: those of an enum in its order, growing ones by number, and the rest together.
function nameCounts(stream, counts, most) {
  let found = counts.map((count, n) => [stream.names[n] ?? String(n), count]).filter(([, count]) => Number(count) > 0);
  if (!found.length) return T("none");
  if (stream.named) found.sort((one, other) => Number(other[1]) - Number(one[1]));
  const rest = found.slice(most);
  found = found.slice(0, most);
  const words = found.map(([name, count]) => `${name} ${grouped(count)}`);
  if (rest.length) words.push(T("{number} others {total}", { number: grouped(rest.length), total: grouped(rest.reduce((sum, one) => sum + Number(one[1]), 0)) }));
  return words.join(", ");
}

function hex(address) {
  return `0x${address.toString(16)}`;
}

function tileName(space, tile) {
  if (space.naming === "strings") return space.texts.get(tile) ?? `${space.tile}${grouped(tile)}`;
  const start = space.key(tile), size = space.naming === "extents" ? space.sizes?.[tile] ?? 0n : space.tileBytes;
  if (!start && !size) return `${space.tile}${grouped(tile)}`;
  return T("{tile}: {start} to {end}", { tile: `${space.tile}${grouped(tile)}`, start: hex(start), end: hex(start + size) });
}

function controlWords(flags, unused) {
  const words = [];
  if (flags & CONTROL.BACKGROUND) words.push(T("background"));
  else if (flags & CONTROL.UNUSED || !(flags & CONTROL.USED)) words.push(unused || T("unused"));
  if (flags & CONTROL.SEPARATOR) words.push(T("separator before"));
  if (flags & CONTROL.LINK) words.push(T("linked to the next"));
  return words.join(", ");
}

function duration(nanos) {
  const amount = Number(nanos);
  if (amount < 1000) return `${amount} ns`;
  for (const [unit, size] of [["µs", 1e3], ["ms", 1e6], ["s", 1e9]]) {
    const value = amount / size;
    if (value < (unit === "s" ? 60 : 999.5)) return `${value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2)} ${unit}`;
  }
  const seconds = Math.floor(amount / 1e9), minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60);
  return hours ? `${hours} h ${String(minutes % 60).padStart(2, "0")} min` : `${minutes} min ${String(seconds % 60).padStart(2, "0")} s`;
}

// Control and direction characters of strangers' texts become visible.
function visible(text) {
  return String(text).slice(0, 4000).replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

// An element with attributes and children; a text becomes a text node.
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "text") element.textContent = visible(value);
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}
