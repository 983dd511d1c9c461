// The part of msgpack that the wire uses (protocol/SPEC.md 3.5): maps with text keys, lists, texts, integers, floats, booleans, nil.
// A text, list or map that claims to be longer than its bytes is refused before anything is allocated.

class MapReader {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
  }

  take(count) {
    if (count > this.bytes.length - this.at) throw new WireError("a map is cut short");
    this.at += count;
    return this.at - count;
  }

  value(depth = 0) {
    if (depth > 32) throw new WireError("a map is nested too deeply");
    const first = this.bytes[this.take(1)];
    if (first < 0x80) return first;
    if (first >= 0xe0) return first - 256;
    if (first < 0x90) return this.map(first & 15, depth);
    if (first < 0xa0) return this.list(first & 15, depth);
    if (first < 0xc0) return this.text(first & 31);
    switch (first) {
      case 0xc0: return null;
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xca: return this.view.getFloat32(this.take(4));
      case 0xcb: return this.view.getFloat64(this.take(8));
      case 0xcc: return this.bytes[this.take(1)];
      case 0xcd: return this.view.getUint16(this.take(2));
      case 0xce: return this.view.getUint32(this.take(4));
      case 0xcf: return safeNumber(this.view.getBigUint64(this.take(8)));
      case 0xd0: return this.view.getInt8(this.take(1));
      case 0xd1: return this.view.getInt16(this.take(2));
      case 0xd2: return this.view.getInt32(this.take(4));
      case 0xd3: return safeNumber(this.view.getBigInt64(this.take(8)));
      case 0xd9: return this.text(this.bytes[this.take(1)]);
      case 0xda: return this.text(this.view.getUint16(this.take(2)));
      case 0xdb: return this.text(this.view.getUint32(this.take(4)));
      case 0xdc: return this.list(this.view.getUint16(this.take(2)), depth);
      case 0xdd: return this.list(this.view.getUint32(this.take(4)), depth);
      case 0xde: return this.map(this.view.getUint16(this.take(2)), depth);
      case 0xdf: return this.map(this.view.getUint32(this.take(4)), depth);
      default: throw new WireError(`a map has a value of the type ${first}`);
    }
  }

  text(length) {
    const start = this.take(length);
    return new TextDecoder().decode(this.bytes.subarray(start, start + length));
  }

  list(length, depth) {
    if (length > this.bytes.length - this.at) throw new WireError("a list is cut short");
    return Array.from({ length }, () => this.value(depth + 1));
  }

  map(length, depth) {
    if (2 * length > this.bytes.length - this.at) throw new WireError("a map is cut short");
    const found = Object.create(null);
    for (let n = 0; n < length; n++) {
      const key = this.value(depth + 1);
      if (typeof key !== "string") throw new WireError("a key of a map is not a text");
      found[key] = this.value(depth + 1);
    }
    return found;
  }
}

// An integer that a number holds exactly stays a number; a larger one is a BigInt.
function safeNumber(big) {
  const number = Number(big);
  return Number.isSafeInteger(number) ? number : big;
}

function readMap(bytes) {
  if (!bytes.length) return Object.create(null);
  const found = new MapReader(bytes).value();
  if (found === null || typeof found !== "object" || Array.isArray(found)) throw new WireError("a payload is not a map");
  return found;
}

// A map as msgpack: what a page sends has texts, whole numbers, floats, booleans, lists, maps and null.
function packMap(value) {
  const bytes = [];
  const number = (first, size, count) => {
    bytes.push(first);
    for (let n = size - 1; n >= 0; n--) bytes.push(Math.floor(count / 2 ** (8 * n)) & 255);
  };
  const pack = (one) => {
    if (one === null) bytes.push(0xc0);
    else if (one === true || one === false) bytes.push(one ? 0xc3 : 0xc2);
    else if (typeof one === "number" && Number.isInteger(one) && one >= 0) {
      if (one < 128) bytes.push(one);
      else if (one < 2 ** 32) number(0xce, 4, one);
      else number(0xcf, 8, one);
    } else if (typeof one === "number" && Number.isInteger(one) && one >= -32) bytes.push(one + 256);
    else if (typeof one === "number") {
      const view = new DataView(new ArrayBuffer(8));
      view.setFloat64(0, one);
      bytes.push(0xcb, ...new Uint8Array(view.buffer));
    } else if (typeof one === "string") {
      const text = new TextEncoder().encode(one);
      number(0xda, 2, text.length);
      bytes.push(...text);
    } else if (Array.isArray(one)) {
      number(0xdc, 2, one.length);
      one.forEach(pack);
    } else {
      const entries = Object.entries(one);
      number(0xde, 2, entries.length);
      for (const [key, each] of entries) {
        pack(key);
        pack(each);
      }
    }
  };
  pack(value);
  return Uint8Array.from(bytes);
}
