// The wire as a client reads it (protocol/SPEC.md 3 to 7): frames to the state of a session. Knows bytes; does not know pictures or sockets.
// Every length is compared with a limit before memory is allocated, and an event is applied only when its checksum is right.

class WireError extends Error {}

const FRAME = {
  HELLO: 0x01, WELCOME: 0x02, ERROR: 0x03, GOODBYE: 0x04, PING: 0x05, PONG: 0x06, CHALLENGE: 0x07, PROOF: 0x08,
  SPACE_DEFINED: 0x10, SPACE_REMOVED: 0x11, EPOCH_END: 0x12, TILE_NAMES: 0x13,
  TILES: 0x20, STREAM_KEY: 0x21, STREAM_DELTA: 0x22, SUMMARY: 0x23, SPACE_INFO: 0x24, NEW_NAMES: 0x25, EVENT: 0x2f,
  STATE: 0x31, CLIENTS: 0x33, MISSED: 0x34, PLAYBACK: 0x35, TIMELINE: 0x36, POSITION: 0x37, LOOKED: 0x3b,
  PAUSE: 0x41, RESUME: 0x42, STEP: 0x43, SUBSCRIBE: 0x44, TAKE_CONTROL: 0x45, TILE_NAMES_REQUEST: 0x48, SEEK: 0x4a, ATTEND: 0x57,
};
const HEADER_BYTES = 28;
const CONTROL_STREAM = 0xffff;
const MOST_PAYLOAD = 64 << 20, MOST_TILES = 1 << 24, MOST_SPACES = 1024, MOST_STREAMS = 512, MOST_EVENT_BYTES = 128 << 20;
const PRESENTATION = { PLAIN: 0, PLUS: 1, MAX_VAR: 2, PERCENT: 3, PERCENT_VAR: 4, ENUM: 5 };
const CONTROL = { USED: 1, BACKGROUND: 2, UNUSED: 4, SEPARATOR: 8, LINK: 16 };
const ARRAYS = {
  i1: Int8Array, u1: Uint8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array, u4: Uint32Array, i8: BigInt64Array, u8: BigUint64Array,
};
const TYPES = [, "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"];

const CRC_TABLE = (() => {
  // Eight tables, so that eight bytes take one turn of the loop.
  const tables = [new Uint32Array(256)];
  for (let n = 0; n < 256; n++) {
    let crc = n;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
    tables[0][n] = crc;
  }
  for (let t = 1; t < 8; t++) {
    tables.push(tables[t - 1].map((crc) => (crc >>> 8) ^ tables[0][crc & 255]));
  }
  return tables;
})();

function crc32(bytes, crc = 0) {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = CRC_TABLE;
  crc = ~crc;
  let at = 0;
  for (const end = bytes.length - 7; at < end; at += 8) {
    crc ^= bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
    crc = t7[crc & 255] ^ t6[(crc >>> 8) & 255] ^ t5[(crc >>> 16) & 255] ^ t4[crc >>> 24]
      ^ t3[bytes[at + 4]] ^ t2[bytes[at + 5]] ^ t1[bytes[at + 6]] ^ t0[bytes[at + 7]];
  }
  for (; at < bytes.length; at++) crc = (crc >>> 8) ^ t0[(crc ^ bytes[at]) & 255];
  return ~crc >>> 0;
}

// A whole frame without its payload's meaning: header and payload, as views of the same bytes.
function frameAt(bytes, at) {
  if (bytes.length - at < HEADER_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, HEADER_BYTES);
  const length = view.getUint32(0, true);
  if (length > MOST_PAYLOAD) throw new WireError(`a frame of ${length} bytes is over the limit`);
  if (bytes.length - at < HEADER_BYTES + length) return null;
  const flags = view.getUint8(5);
  if (flags & 1) throw new WireError("a frame is compressed, which this page did not ask for");
  return {
    type: view.getUint8(4), space: view.getUint16(6, true), stream: view.getUint16(8, true),
    sequence: safeNumber(view.getBigUint64(12, true)), time: view.getBigUint64(20, true),
    whole: bytes.subarray(at, at + HEADER_BYTES + length),
    payload: bytes.subarray(at + HEADER_BYTES, at + HEADER_BYTES + length),
    end: at + HEADER_BYTES + length,
  };
}

function packFrame(type, payload, space = 0) {
  const bytes = new Uint8Array(HEADER_BYTES + payload.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, payload.length, true);
  view.setUint8(4, type);
  view.setUint16(6, space, true);
  bytes.set(payload, HEADER_BYTES);
  return bytes;
}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
  }
  skip(count) {
    if (!(count <= this.bytes.length - this.at)) throw new WireError("a payload is cut short");
    this.at += count;
    return this.at - count;
  }
  u16() { return this.view.getUint16(this.skip(2), true); }
  u8() { return this.view.getUint8(this.skip(1)); }
  u32() { return this.view.getUint32(this.skip(4), true); }
  u64() { return this.view.getBigUint64(this.skip(8), true); }
  i64() { return this.view.getBigInt64(this.skip(8), true); }
  // A copy: what follows a payload need not be aligned.
  array(Type, count) {
    const bytes = count * Type.BYTES_PER_ELEMENT;
    const start = this.skip(bytes);
    const copy = this.bytes.slice(start, start + bytes);
    return new Type(copy.buffer, 0, count);
  }
  rest() { return this.bytes.subarray(this.at); }
}

function bitmap(bytes, count) {
  const known = new Uint8Array(count);
  for (let n = 0; n < count; n++) known[n] = (bytes[n >> 3] >> (n & 7)) & 1;
  return known;
}

function streamSchema(map) {
  if (!ARRAYS[map.type] || typeof map.id !== "number" || typeof map.name !== "string") throw new WireError("a stream is not defined rightly");
  return {
    id: map.id, name: map.name, about: map.about || "", type: map.type, min: map.min || 0, max: map.max ?? 0, zero: map.zero || 0,
    fallback: map.default || 0, prefix: map.prefix || "", suffix: map.suffix || "", presentation: map.presentation || 0, paint: map.paint || 0,
    maxStream: map.max_stream ?? null, names: Array.isArray(map.enum) ? map.enum : [], colour: map.colour ?? null, order: Number(map.order || 0),
    accumulates: !!map.accumulates, namesFrom: map.names_from ?? null, threshold: !!map.threshold || map.presentation === PRESENTATION.PLUS,
  };
}

// Values of one stream: an array, which of them are known (null: all), and the stamp of the event at which they were gathered.
class Values {
  constructor(schema, count, fallback, known) {
    this.schema = schema;
    this.values = new ARRAYS[schema.type](count).fill(schema.type.endsWith("8") ? BigInt(fallback) : fallback);
    this.known = known ? null : new Uint8Array(count);
    this.sequence = 0;
    this.time = 0n;
    this.event = 0;
    this.occurrence = 0;
    this.summary = null;
  }
  copy() {
    const other = Object.assign(Object.create(Values.prototype), this);
    other.values = this.values.slice();
    other.known = this.known && this.known.slice();
    return other;
  }
}

class Space {
  constructor(id, map) {
    const streams = Array.isArray(map.streams) ? map.streams.map(streamSchema) : [];
    if (streams.length > MOST_STREAMS) throw new WireError("a space has too many streams");
    this.id = id;
    this.name = String(map.name);
    this.tile = map.tile ?? "Tile ";
    this.unused = map.unused ?? "unused";
    this.naming = map.naming;
    this.main = !!map.main;
    this.row = map.row ?? null;
    this.about = map.about || "";
    this.info = "";
    this.count = 0;
    this.base = 0n;
    this.tileBytes = 0n;
    this.bases = null;
    this.sizes = null;
    this.texts = new Map();
    this.generation = 0; // grows when tiles move: what was worked out by number has to be worked out again
    this.control = new Values({ type: "u1" }, 0, CONTROL.USED, true);
    streams.sort((one, other) => one.order - other.order || one.id - other.id);
    this.streams = new Map(streams.map((schema) => [schema.id, new Values(schema, 0, schema.fallback, false)]));
  }

  copy() {
    const other = Object.assign(Object.create(Space.prototype), this);
    other.texts = new Map(this.texts);
    other.control = this.control.copy();
    other.streams = new Map([...this.streams].map(([id, values]) => [id, values.copy()]));
    return other;
  }

  resize(reader) {
    const count = reader.u32(), runs = reader.u32(), named = reader.u32(), naming = reader.u8();
    reader.skip(3);
    if (count > MOST_TILES) throw new WireError(`a space has ${count} tiles, which is over the limit of this page`);
    const base = reader.u64(), tileBytes = reader.u64();
    const olds = reader.array(Uint32Array, runs), news = reader.array(Uint32Array, runs), lengths = reader.array(Uint32Array, runs);
    for (let n = 0, last = 0; n < runs; n++) {
      if (olds[n] + lengths[n] > this.count || news[n] + lengths[n] > count || news[n] < last) throw new WireError("tiles move to where there are none");
      last = news[n] + lengths[n];
    }
    const kept = (make, before) => {
      const after = make(count);
      for (let n = 0; n < runs; n++) after.set(before.subarray(olds[n], olds[n] + lengths[n]), news[n]);
      return after;
    };
    const resized = (values, fallback, isControl) => {
      const before = values.known ?? new Uint8Array(values.values.length).fill(1);
      values.known = isControl ? null : kept((length) => new Uint8Array(length), before);
      const Type = values.values.constructor;
      values.values = kept((length) => new Type(length).fill(fallback), values.values);
      if (values.known && values.known.every((one) => one)) values.known = count ? null : values.known;
    };
    resized(this.control, CONTROL.USED, true);
    for (const values of this.streams.values()) {
      resized(values, values.schema.type.endsWith("8") ? BigInt(values.schema.fallback) : values.schema.fallback, false);
    }
    if (naming === 1) this.extend(reader, count, named, runs, olds, news, lengths);
    const texts = new Map();
    for (let n = 0; n < runs; n++) {
      for (let k = 0; k < lengths[n]; k++) {
        if (this.texts.has(olds[n] + k)) texts.set(news[n] + k, this.texts.get(olds[n] + k));
      }
    }
    this.texts = texts;
    this.count = count;
    this.base = base;
    this.tileBytes = tileBytes;
    this.generation++;
  }

  extend(reader, count, named, runs, olds, news, lengths) {
    const deltas = reader.array(BigUint64Array, named), sizes = reader.array(BigUint64Array, named);
    const isNew = new Uint8Array(count).fill(1);
    const bases = new BigUint64Array(count), extents = new BigUint64Array(count);
    for (let n = 0; n < runs; n++) {
      isNew.fill(0, news[n], news[n] + lengths[n]);
      if (this.bases) {
        bases.set(this.bases.subarray(olds[n], olds[n] + lengths[n]), news[n]);
        extents.set(this.sizes.subarray(olds[n], olds[n] + lengths[n]), news[n]);
      }
    }
    let end = 0n, next = 0;
    for (let tile = 0; tile < count; tile++) {
      if (!isNew[tile]) continue;
      if (next >= named) throw new WireError("a new tile has no extent");
      bases[tile] = BigInt.asUintN(64, end + deltas[next]);
      extents[tile] = sizes[next++];
      end = BigInt.asUintN(64, bases[tile] + extents[tile]);
    }
    this.bases = bases;
    this.sizes = extents;
  }

  // The stable key of a tile: its address, or its number.
  key(tile) {
    if (this.naming === "extents" && this.bases) return this.bases[tile];
    return this.naming === "uniform" ? this.base + BigInt(tile) * this.tileBytes : BigInt(tile);
  }

  tileOf(key) {
    if (this.naming === "extents") return this.bases ? this.bases.indexOf(key) : -1;
    if (this.naming === "uniform") {
      const tile = this.tileBytes ? Number((key - this.base) / this.tileBytes) : -1;
      return tile >= 0 && tile < this.count ? tile : -1;
    }
    return key < BigInt(this.count) ? Number(key) : -1;
  }
}

// The state of a session after what was fed so far. `feed` takes whole frames.
class Session {
  constructor() {
    this.welcome = null;
    this.spaces = new Map();
    this.epoch = 0;
    this.state = "running";
    this.reason = "";
    this.event = null;
    this.missed = 0;
  }

  copy() {
    const other = Object.assign(new Session(), this);
    other.spaces = new Map([...this.spaces].map(([id, space]) => [id, space.copy()]));
    return other;
  }

  // Apply the bytes of one event and of what stands before it. Returns the frames that are not about tiles.
  feed(bytes) {
    const others = [];
    let pending = [], at = 0;
    while (at < bytes.length) {
      const frame = frameAt(bytes, at);
      if (frame === null) throw new WireError("an event is cut short");
      at = frame.end;
      if (frame.type >= 0x20 && frame.type < 0x2f) pending.push(frame);
      else if (frame.type === FRAME.EVENT) {
        this.apply(pending, frame);
        pending = [];
      } else {
        this.note(frame);
        others.push(frame);
      }
    }
    return others;
  }

  note(frame) {
    switch (frame.type) {
      case FRAME.WELCOME:
        this.welcome = readMap(frame.payload);
        break;
      case FRAME.SPACE_DEFINED:
        if (this.spaces.size >= MOST_SPACES) throw new WireError("there are too many spaces");
        this.spaces.set(frame.space, new Space(frame.space, readMap(frame.payload)));
        break;
      case FRAME.SPACE_REMOVED:
        this.spaces.delete(frame.space);
        break;
      case FRAME.EPOCH_END:
        this.epoch = readMap(frame.payload).epoch;
        break;
      case FRAME.STATE: {
        const map = readMap(frame.payload);
        this.state = map.state;
        this.reason = map.reason || "";
        break;
      }
      case FRAME.MISSED:
        this.missed = readMap(frame.payload).total || 0;
        break;
      case FRAME.TILE_NAMES:
        this.name(frame);
        break;
    }
  }

  name(frame) {
    const space = this.spaces.get(frame.space), map = readMap(frame.payload);
    if (space && Array.isArray(map.names)) map.names.forEach((text, n) => space.texts.set((map.first || 0) + n, String(text)));
  }

  apply(frames, end) {
    const reader = new Reader(end.payload);
    const crc = reader.u32();
    const crcs = new DataView(new ArrayBuffer(4 * frames.length));
    frames.forEach((frame, n) => crcs.setUint32(4 * n, crc32(frame.whole), true));
    const rest = new Uint8Array(end.whole.length - 4);
    rest.set(end.whole.subarray(0, HEADER_BYTES));
    rest.set(end.whole.subarray(HEADER_BYTES + 4), HEADER_BYTES);
    if (crc32(rest, crc32(new Uint8Array(crcs.buffer))) !== crc) throw new WireError("the checksum of an event is wrong");
    for (const frame of frames) this.change(frame);
    const kind = reader.u16(), flags = reader.u16();
    reader.skip(8);
    const occurrence = safeNumber(reader.u64()), gathered = reader.u64(), held = reader.u64();
    const more = readMap(reader.rest());
    this.event = {
      kind, occurrence, gathered, held, sequence: end.sequence, time: end.time, cached: !!(flags & 2), cause: more.cause || "",
      clock: more.clock ? [more.clock, more.clock_value] : null,
    };
  }

  change(frame) {
    const space = this.spaces.get(frame.space);
    if (!space) throw new WireError(`values of space ${frame.space}, which is not defined`);
    const reader = new Reader(frame.payload);
    const values = frame.stream === CONTROL_STREAM ? space.control : space.streams.get(frame.stream);
    switch (frame.type) {
      case FRAME.TILES:
        space.resize(reader);
        break;
      case FRAME.NEW_NAMES:
        this.name(frame);
        break;
      case FRAME.SPACE_INFO:
        space.info = String(readMap(frame.payload).text || "");
        break;
      case FRAME.SUMMARY: {
        if (!values || values === space.control) break;
        const covered = reader.u32(), count = reader.u32();
        values.summary = { covered, values: Array.from(reader.array(BigInt64Array, count), safeNumber), sequence: frame.sequence };
        break;
      }
      case FRAME.STREAM_KEY:
      case FRAME.STREAM_DELTA:
        if (!values) throw new WireError(`values of stream ${frame.stream}, which is not defined`);
        this.gather(frame, space, values, reader);
        break;
    }
  }

  gather(frame, space, values, reader) {
    const event = reader.u16(), type = TYPES[reader.u8()], flags = reader.u8(), count = reader.u32(), occurrence = safeNumber(reader.u64());
    if (type !== values.schema.type) throw new WireError("values are of another type than their stream");
    if (count !== space.count) throw new WireError(`${count} values for ${space.count} tiles`);
    if (frame.type === FRAME.STREAM_KEY) {
      const known = flags & 1 ? bitmap(reader.array(Uint8Array, Math.ceil(count / 8)), count) : null;
      values.values = reader.array(ARRAYS[type], count);
      values.known = known;
    } else this.shift(values, reader, count, flags);
    Object.assign(values, { sequence: frame.sequence, time: frame.time, event, occurrence });
  }

  shift(values, reader, count, flags) {
    const base = safeNumber(reader.u64()), changed = reader.u32(), gaps = reader.u32();
    if (base !== values.sequence) throw new WireError("changed values are relative to values that are not here");
    if (changed > count) throw new WireError("more values changed than there are");
    const steps = reader.array(Uint16Array, gaps);
    const known = flags & 1 ? reader.array(Uint8Array, Math.ceil(changed / 8)) : null;
    const news = reader.array(values.values.constructor, changed);
    if (known && !values.known) values.known = new Uint8Array(count).fill(1);
    let tile = -1, n = 0;
    for (const gap of steps) {
      if (gap === 0xffff) {
        tile += 65535;
        continue;
      }
      tile += gap + 1;
      if (tile >= count || n >= changed) throw new WireError("a value changed where there is no tile");
      values.values[tile] = news[n];
      if (values.known) values.known[tile] = known ? (known[n >> 3] >> (n & 7)) & 1 : 1;
      n++;
    }
    if (n !== changed) throw new WireError("fewer values changed than were announced");
  }
}
