// The events of a page: those of a file, in packed chunks, or those received so far. Gives the state of the session right after any of them.

const CHUNK_EVENTS = 64, CHUNK_BYTES = 4 << 20, KEPT_BYTES = 128 << 20, OPEN_CHUNKS = 6;

// A part of the events that can be read without those before it: its first event brings everything, or `state` is what stood before it.
class Chunk {
  constructor(first, state, packed) {
    this.first = first;
    this.state = state;
    this.packed = packed;
    this.events = packed ? null : [];
    this.bytes = 0;
  }

  async open() {
    if (!this.events) {
      const stream = new Blob([this.packed]).stream().pipeThrough(new DecompressionStream("deflate"));
      this.events = splitEvents(new Uint8Array(await new Response(stream).arrayBuffer()));
    }
    return this.events;
  }

  close() {
    if (this.packed) this.events = null;
  }
}

// The bytes of each event, with what stands before it, and the names that follow it.
function splitEvents(bytes) {
  const events = [];
  let start = 0, end = 0, at = 0;
  while (at < bytes.length) {
    const frame = frameAt(bytes, at);
    if (!frame) throw new WireError("a chunk is cut short");
    if (end && frame.type !== FRAME.POSITION && frame.type !== FRAME.TILE_NAMES) {
      events.push(bytes.subarray(start, end));
      start = end;
      end = 0;
    }
    at = frame.end;
    if (end || frame.type === FRAME.EVENT) end = at;
  }
  if (end) events.push(bytes.subarray(start, end));
  return events;
}

// A position that moves through the events; two of them do not disturb each other.
class Cursor {
  constructor(store) {
    this.store = store;
    this.row = -1;
    this.chunk = null;
    this.session = null;
  }

  // The state right after an event. The same object changes with the next call.
  async seek(row) {
    const chunk = this.store.chunkOf(row), events = await this.store.events(chunk);
    if (this.chunk !== chunk || row < this.row || !this.session) {
      this.session = chunk.state ? chunk.state.copy() : new Session();
      this.chunk = chunk;
      this.row = chunk.first - 1;
    }
    while (this.row < row) {
      this.row++;
      this.session.feed(events[this.row - chunk.first]);
    }
    return this.session;
  }
}

class EventStore {
  constructor() {
    this.rows = []; // { number, time, kind, occurrence, missed, left, held, gathered }
    this.dropped = 0; // rows that were given up; the others keep their places
    this.chunks = [];
    this.opened = [];
    this.bytes = 0;
    this.live = new Session();
  }

  get length() { return this.dropped + this.rows.length; }
  row(place) { return this.rows[place - this.dropped]; }

  chunkOf(row) {
    let low = 0, high = this.chunks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.chunks[middle].first <= row) low = middle;
      else high = middle - 1;
    }
    return this.chunks[low];
  }

  async events(chunk) {
    if (chunk.packed) {
      this.opened = [chunk, ...this.opened.filter((one) => one !== chunk)];
      for (const old of this.opened.splice(OPEN_CHUNKS)) old.close();
    }
    return chunk.open();
  }

  addPacked(first, packed) {
    this.chunks.push(new Chunk(first, null, packed));
  }

  // Store an event that was received. Returns the frames that are not about tiles.
  append(bytes) {
    const chunk = this.chunks[this.chunks.length - 1];
    if (!chunk || chunk.events.length >= CHUNK_EVENTS || chunk.bytes > CHUNK_BYTES) {
      const state = this.chunks.length || this.live.spaces.size ? this.live.copy() : null;
      this.chunks.push(new Chunk(this.length, state, null));
    }
    const missed = this.live.missed;
    const others = this.live.feed(bytes);
    const last = this.chunks[this.chunks.length - 1], event = this.live.event;
    last.events.push(bytes);
    last.bytes += bytes.length;
    this.bytes += bytes.length;
    this.rows.push({
      number: this.length + 1, time: event.time, kind: event.kind, occurrence: event.occurrence, missed: Math.max(0, this.live.missed - missed), left: 0,
      sequence: event.sequence,
      held: event.held, gathered: event.gathered,
    });
    while (this.bytes > KEPT_BYTES && this.chunks.length > 2) {
      const old = this.chunks.shift();
      this.bytes -= old.bytes;
      this.rows.splice(0, old.events.length);
      this.dropped += old.events.length;
    }
    return others;
  }
}
