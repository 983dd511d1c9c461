// Values of a stream to paint codes, by the rules of gcspy_client/model/codes.py. Knows values; does not know colours or places.

const FREQUENT = new Map();

// A stream as it is shown: one whose values are numbers of names has the names that are known now, and places for the most frequent.
class ShownStream {
  constructor(session, space, values, frequent = null) {
    const schema = values.schema;
    this.schema = schema;
    this.space = space;
    this.values = values;
    this.named = schema.namesFrom !== null;
    this.isEnum = this.named || schema.presentation === PRESENTATION.ENUM;
    this.tops = schema.presentation === PRESENTATION.PERCENT_VAR ? space.streams.get(schema.maxStream) || null : null;
    const source = this.named ? session.spaces.get(schema.namesFrom) : null;
    this.names = source ? Array.from({ length: source.count }, (_, n) => source.texts.get(n) ?? `#${n}`) : schema.names;
    this.frequent = [];
    if (this.named) this.frequent = frequent || this.mostFrequent();
    this.top = schema.presentation === PRESENTATION.MAX_VAR ? this.greatest() : schema.max;
    this.isBytes = ["b", "byte", "bytes"].includes(schema.suffix.trim().toLowerCase());
  }

  counts(tile) {
    return (this.space.control.values[tile] & (CONTROL.USED | CONTROL.UNUSED | CONTROL.BACKGROUND)) === CONTROL.USED && this.isKnown(tile);
  }

  isKnown(tile) {
    return !this.values.known || this.values.known[tile] === 1;
  }

  tally() {
    const counts = new Float64Array(this.names.length);
    for (let tile = 0; tile < this.space.count; tile++) {
      const value = Number(this.values.values[tile]);
      if (this.space.control.values[tile] & CONTROL.USED && this.isKnown(tile) && value >= 0 && value < counts.length) counts[value]++;
    }
    return counts;
  }

  // The values that most tiles have; earlier choices keep their places as long as they are frequent enough (gcspy_protocol/streams/named_stream.py).
  mostFrequent() {
    const counts = this.tally(), { paint, zero, id } = this.schema, key = `${this.space.id}/${id}`;
    if (paint === 1 && zero >= 0 && zero < counts.length) counts[zero] = 0;
    const most = Array.from(counts.keys()).filter((n) => counts[n] > 0).sort((a, b) => counts[b] - counts[a] || a - b).slice(0, CATEGORIES);
    const places = (FREQUENT.get(key) || []).filter((value) => value < counts.length);
    for (const value of most) {
      if (places.includes(value)) continue;
      if (places.length < CATEGORIES) {
        places.push(value);
        continue;
      }
      const weakest = places.reduce((least, one, n) => (counts[one] < counts[places[least]] ? n : least), 0);
      if (counts[value] > 2 * counts[places[weakest]]) places[weakest] = value;
    }
    FREQUENT.set(key, places);
    return places;
  }

  greatest() {
    let best = null;
    for (let tile = 0; tile < this.space.count; tile++) {
      if (!this.counts(tile)) continue;
      const value = this.values.values[tile];
      if (best === null || value > best) best = value;
    }
    return best === null ? this.schema.min : Math.max(Number(best), Number(this.schema.min));
  }

  // The paint code of every tile.
  codes() {
    const { space, values } = this, count = space.count, codes = new Uint8Array(count);
    const control = space.control.values, known = values.known, numbers = values.values;
    const level = this.leveller();
    const flags = CONTROL.USED | CONTROL.UNUSED | CONTROL.BACKGROUND;
    for (let tile = 0; tile < count; tile++) {
      const flag = control[tile] & flags;
      if (flag === CONTROL.USED) codes[tile] = known && !known[tile] ? CODE.UNKNOWN : level(numbers[tile], tile);
      else codes[tile] = flag & CONTROL.BACKGROUND ? CODE.BACKGROUND : CODE.UNUSED;
    }
    return codes;
  }

  leveller() {
    const { schema } = this, zero = schema.paint === 1 ? Number(schema.zero) : null;
    let level;
    if (this.named) {
      const place = new Map(this.frequent.map((value, n) => [value, CODE.LOW + n]));
      level = (value) => (value < 0 || value >= this.names.length ? CODE.UNKNOWN : place.get(value) ?? CODE.LOW + CATEGORIES);
    } else if (this.isEnum) {
      level = (value) => (value >= 0 && value < schema.names.length ? CODE.LOW + (value % LEVELS) : CODE.OVERFLOW);
    } else if (this.tops) {
      const { values: tops, known } = this.tops;
      level = (value, tile) => {
        if (known && !known[tile]) return CODE.UNKNOWN;
        const top = Number(tops[tile]);
        if (value > top) return CODE.OVERFLOW;
        if (value === top && top > 0) return CODE.HIGH;
        return CODE.LOW + Math.floor(Math.min(Math.max((value / Math.max(top, 1)) * (LEVELS - 1), 0), LEVELS - 2));
      };
    } else {
      const low = Number(schema.min), high = Number(this.top), scale = (LEVELS - 1) / Math.max(high - low, 1);
      level = (value) => {
        if (value > high) return CODE.OVERFLOW;
        if (low < high && value === high) return CODE.HIGH;
        return CODE.LOW + Math.floor(Math.min(Math.max((value - low) * scale, 0), LEVELS - 2));
      };
    }
    const whole = zero === null ? level : (value, tile) => (value === zero ? CODE.ZERO : level(value, tile));
    return this.schema.type.endsWith("8") ? (value, tile) => whole(Number(value), tile) : whole;
  }
}
