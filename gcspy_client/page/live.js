// A live session: the page as a client of it, over a WebSocket that carries the wire. Follows the leader of a class, and answers.

const MAGIC = [0x47, 0x43, 0x73, 0x70, 0x79, 0x0d, 0x0a, 0x1a];
const PAGE_LABEL = "GCspy page 1\r\n\r\n";
const MOST_RATE = 30, AGAIN_MILLIS = [1000, 2000, 4000, 8000];
const STORED = new Set([FRAME.WELCOME, FRAME.SPACE_DEFINED, FRAME.SPACE_REMOVED, FRAME.EPOCH_END, FRAME.TILE_NAMES, FRAME.STATE, FRAME.MISSED]);

const hexOf = (bytes) => Array.from(new Uint8Array(bytes), (one) => one.toString(16).padStart(2, "0")).join("");
const bytesOf = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (one) => parseInt(one, 16));

// The proof that this page knows the token, which itself is never sent.
async function proofOf(token, nonce) {
  const key = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token));
  const secret = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const label = new TextEncoder().encode(PAGE_LABEL), text = new Uint8Array(label.length + nonce.length);
  text.set(label);
  text.set(nonce, label.length);
  return hexOf(await crypto.subtle.sign("HMAC", secret, text));
}

class Remote {
  constructor(page, person, token) {
    this.page = page;
    this.person = person;
    this.token = token;
    this.following = true;
    this.isPlayback = false;
    this.state = "";
    this.clients = { clients: [], leader: null, controller: null };
    this.tries = 0;
    this.ended = "";
    this.open();
  }

  open() {
    this.parts = []; // frames since the last event
    this.rest = new Uint8Array(0);
    this.greeted = false;
    this.me = 0;
    this.number = 0;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.line = new WebSocket(`${scheme}://${location.host}/session`);
    this.line.binaryType = "arraybuffer";
    this.line.onmessage = (event) => this.receive(event.data).catch((error) => this.fail(error));
    this.line.onclose = () => this.closed();
  }

  fail(error) {
    this.ended = error instanceof WireError ? T("The session sent something wrong: {reason}.", { reason: error.message }) : T("The page failed: {reason}", { reason: error.message });
    this.line.close();
  }

  closed() {
    if (this.ended) {
      this.page.problem(this.ended);
      this.page.showConnection(T("not connected"));
      return;
    }
    const millis = AGAIN_MILLIS[Math.min(this.tries++, AGAIN_MILLIS.length - 1)];
    this.page.showConnection(T("connection lost; trying again in {secs} s", { secs: millis / 1000 }));
    setTimeout(() => this.open(), millis);
  }

  send(type, map = null, space = 0) {
    if (this.line.readyState === WebSocket.OPEN) this.line.send(packFrame(type, map ? packMap(map) : new Uint8Array(0), space));
  }

  async receive(data) {
    if (typeof data !== "string") {
      this.read(new Uint8Array(data));
      return;
    }
    const said = JSON.parse(data);
    if (said.nonce) this.line.send(JSON.stringify({ proof: await proofOf(this.token, bytesOf(said.nonce)) }));
    else if (said.error) {
      this.ended = T("{reason} Load the page again to try once more.", { reason: said.error });
      this.line.close();
    } else if (said.ended) this.ended ||= T("The session ended.");
    else if (said.ready) {
      const preamble = new Uint8Array(12);
      preamble.set(MAGIC);
      preamble[8] = preamble[10] = 1;
      this.line.send(preamble);
      this.send(FRAME.HELLO, { client: "page", control: false, person: this.person, following: this.following });
    }
  }

  read(data) {
    const bytes = new Uint8Array(this.rest.length + data.length);
    bytes.set(this.rest);
    bytes.set(data, this.rest.length);
    let at = 0;
    if (!this.greeted) {
      if (bytes.length < 12) {
        this.rest = bytes;
        return;
      }
      if (MAGIC.some((one, n) => bytes[n] !== one)) throw new WireError("this is not a session of GCspy");
      this.greeted = true;
      at = 12;
    }
    for (let frame; (frame = frameAt(bytes, at)); at = frame.end) this.take(frame);
    this.rest = bytes.slice(at);
    if (this.rest.length > MOST_EVENT_BYTES) throw new WireError("a frame is over the limit");
  }

  take(frame) {
    const inEvent = frame.type >= 0x20 && frame.type <= FRAME.EVENT;
    if (inEvent || STORED.has(frame.type)) this.parts.push(frame.whole.slice());
    if (frame.type === FRAME.EVENT && !this.isPlayback) this.show(null);
    else if (!inEvent) this.hear(frame);
  }

  // An event is complete: store it, and show it while the page follows what is new.
  show(number) {
    const { page } = this, { store } = page;
    const bytes = new Uint8Array(this.parts.reduce((sum, one) => sum + one.length, 0));
    let at = 0;
    for (const part of this.parts) {
      bytes.set(part, at);
      at += part.length;
    }
    this.parts = [];
    // A playback may jump: what is kept are events in their order. Those between two of them were not sent.
    if (number !== null && number <= this.number) page.restart();
    const left = number !== null && store.length ? number - this.number - 1 : 0;
    this.number = number ?? this.number + 1;
    store.append(bytes);
    if (number !== null) Object.assign(store.row(store.length - 1), { number, left });
    if (page.followsLive) page.show(store.length - 1);
    else page.render();
    page.arrived();
  }

  hear(frame) {
    const { page } = this;
    switch (frame.type) {
      case FRAME.WELCOME: {
        const map = readMap(frame.payload);
        this.tries = 0;
        this.me = map.client;
        this.isPlayback = map.mode === "playback";
        page.restart(true);
        page.welcomed(map);
        this.send(FRAME.SUBSCRIBE, { all: true, spaces: [], rate: MOST_RATE });
        break;
      }
      case FRAME.PING:
        this.line.send(packFrame(FRAME.PONG, frame.payload));
        break;
      case FRAME.STATE: {
        const map = readMap(frame.payload);
        this.state = map.state;
        page.showConnection(map.state + (map.reason ? `: ${visible(map.reason)}` : ""));
        page.showPlay();
        break;
      }
      case FRAME.CLIENTS:
        this.clients = readMap(frame.payload);
        page.showFollow();
        break;
      case FRAME.LOOKED:
        if (this.following) page.lookAlong(readMap(frame.payload));
        break;
      case FRAME.POSITION:
        if (this.isPlayback && this.parts.length) this.show(safeNumber(new Reader(frame.payload).u64()));
        break;
      case FRAME.PLAYBACK:
        page.facts.total = readMap(frame.payload).last || 0;
        break;
      case FRAME.ERROR: {
        const map = readMap(frame.payload), words = visible([map.message, map.remedy].filter(Boolean).join(": "));
        if (map.fatal) this.ended = words;
        page.problem(words);
        break;
      }
      case FRAME.GOODBYE:
        this.ended = T("The session ended: {reason}", { reason: visible(readMap(frame.payload).reason || "") });
        break;
    }
  }

  // ------------------------------------------------------------------ what the user does

  // Whether somebody else decides what is shown.
  get isLed() { return this.following && this.clients.leader !== null && this.clients.leader !== this.me; }

  toggle() {
    const { page } = this;
    if (this.isPlayback && !this.isLed) this.send(this.state === "running" ? FRAME.PAUSE : FRAME.RESUME);
    else {
      page.followsLive = !page.followsLive;
      if (page.followsLive) page.show(page.store.length - 1);
    }
    page.showPlay();
  }

  step(by_) {
    if (this.isLed) {
      this.page.say(T("The leader of the class moves. Roam to move by yourself."));
      return null;
    }
    this.page.followsLive = true;
    if (Number.isFinite(by_)) this.send(FRAME.SEEK, by_ < 0 ? { steps: by_ } : { steps: by_ });
    else this.send(FRAME.SEEK, { number: by_ < 0 ? 1 : this.page.facts.total || 1 });
    return null;
  }

  seek(number) {
    if (!this.isLed && number) this.send(FRAME.SEEK, { number });
  }

  follow(following) {
    this.following = following;
    this.page.followsLive = true;
    this.send(FRAME.ATTEND, { person: this.person, following });
    if (!following) this.page.lesson?.follow(null);
    this.page.showFollow();
  }

  answer(step, tries) {
    this.send(FRAME.ATTEND, { person: this.person, following: this.following, step, tries });
  }
}

Object.assign(Page.prototype, {
  // Ask for a name and the token, then join.
  async openSession() {
    const dialog = by("join");
    by("join-why").textContent = T("You see what the leader of the class shows, and are asked what the class is asked.");
    by("token-label").hidden = !this.facts.asksToken;
    by("connection").textContent = T("not connected");
    for (const id of ["follow"]) by(id).addEventListener("click", () => this.remote?.follow(!this.remote.following));
    if (this.facts.asksToken && !globalThis.crypto?.subtle) {
      this.problem(T("This browser gives a page no cryptography here: use https, or an address of this machine."));
      return;
    }
    dialog.addEventListener("close", () => {
      this.remote = new Remote(this, by("person").value.trim(), by("token").value.trim());
      by("token").value = "";
    }, { once: true });
    dialog.showModal();
  },

  // Begin anew: another connection, or a jump of a playback.
  restart(whole = false) {
    const { store } = this;
    store.rows = [];
    store.chunks = [];
    store.dropped = 0;
    store.bytes = 0;
    if (whole) store.live = new Session();
    this.cursor = new Cursor(store);
    this.history.columns = new Map();
    this.history.turn++;
    this.filled = "";
    this.wanted = null;
    this.at = -1;
  },

  welcomed(map) {
    this.facts.kinds = Array.isArray(map.events) ? map.events : [];
    this.followsLive = true;
    by("title").textContent = visible(map.server || this.facts.title);
    by("subtitle").textContent = visible(T("{mode}, live", { mode: map.mode }));
    this.problem("");
    this.chooseTheme(document.documentElement.dataset.theme);
  },

  arrived() {
    if (this.kindsShown !== this.store.length) {
      this.kindsShown = this.store.length;
      if (this.store.length % 16 === 1) this.showKinds();
    }
  },

  showConnection(words) { by("connection").textContent = words; },

  showFollow() {
    const button = by("follow"), { following, clients } = this.remote;
    button.hidden = false;
    button.textContent = following ? T("Roam") : T("Follow");
    button.title = following ? T("Look around by yourself (F)") : T("See what the leader of the class sees (F)");
    const leader = clients.clients.find((one) => one.id === clients.leader), many = clients.clients.filter((one) => one.following).length;
    const who = leader ? visible(leader.person || leader.name) : T("nobody");
    button.setAttribute("aria-label", T("{action}. {who} leads; {many} follow.", { action: button.textContent, who, many }));
    by("subtitle").textContent = T("{who} leads · {many} follow", { who, many });
    this.showPlay();
  },

  // The place of the leader of the class.
  lookAlong(place) {
    const space = this.session?.spaces.get(place.space);
    if (space) {
      this.space = space.id;
      if (place.stream !== undefined && space.streams.has(place.stream)) this.streams.set(space.id, place.stream);
      if (place.key !== undefined && place.key !== null) this.tile.set(space.id, BigInt(place.key));
    }
    if (!this.remote.isPlayback) {
      const row = place.sequence === undefined || place.sequence === null ? -1 : this.store.rows.findIndex((one) => one.sequence === place.sequence);
      this.followsLive = row < 0;
      this.show(row < 0 ? this.store.length - 1 : row + this.store.dropped);
    }
    const lessons = { ...this.facts.lessons, ...this.facts.translations?.[WORDS.language] };
    const lesson = place.lesson && Object.hasOwn(lessons, place.lesson) ? lessons[place.lesson] : null;
    if (place.lesson && !lesson) this.problem(T("The leader is in the lesson “{name}”, whose text this page does not have.", { name: visible(place.lesson) }));
    if (lesson) {
      if (this.lesson?.lesson !== lesson) this.openLesson(lesson);
      this.lesson.follow({ step: place.step || 0, attempt: place.attempt || 0, revealed: !!place.revealed });
    } else if (this.lesson) this.lesson.follow(null);
    this.render();
  },
});
