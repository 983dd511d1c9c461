// The page: a recording that is in it, or a live session, as tiles, history graph and timeline, with the lesson beside them.

const by = (id) => document.getElementById(id);
const STEP_MILLIS = 3000, FRAME_MILLIS = 40;
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

class Page {
  constructor(facts) {
    this.facts = facts;
    this.store = new EventStore();
    this.cursor = new Cursor(this.store);
    this.session = null;
    this.at = -1; // place of the shown event
    this.wanted = null;
    this.seeking = null;
    this.space = null; // ids, since spaces come and go
    this.streams = new Map();
    this.tile = new Map(); // key of the selected tile by space
    this.playing = false;
    this.lesson = null;
    this.remote = null; // the connection of a live page
    this.map = new TileMap(by("tiles"));
    this.strips = new Map();
    this.history = new HistoryGraph(by("history"), this.store);
    this.history.onfilled = () => this.drawTime();
    this.timeline = new Timeline(by("timeline"), this.store);
    this.graph = new ObjectGraph(make("canvas", { role: "img", tabindex: 0 }));
    this.flow = new FlowGraph(make("canvas", { role: "img", tabindex: 0 }));
    by("graph").append(this.graph.canvas, this.flow.canvas);
    this.flow.canvas.addEventListener("click", (event) => this.selectTile(this.flow.edgeAt(event.clientX, event.clientY)));
    this.graph.canvas.addEventListener("click", (event) => this.selectObject(this.graph.nodeAt(event.clientX, event.clientY)));
    this.showsGraph = true;
    this.drawn = false;
    this.chooseTheme(facts.theme || null);
    this.connect();
  }

  // ------------------------------------------------------------------ looks

  chooseTheme(theme) {
    const dark = matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark";
    this.theme = theme || dark + (matchMedia("(prefers-contrast: more)").matches ? "-contrast" : "");
    document.documentElement.dataset.theme = this.theme;
    const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue(`--${name}`).trim();
    this.inks = { ground: of("window"), surface: of("raised"), text: of("text"), dim: of("dim"), accent: of("accent"), warning: of("warning") };
    this.kinds = Palettes.of({ namesFrom: null, presentation: PRESENTATION.ENUM, names: Array(Math.max(1, this.facts.kinds.length)).fill("") }, this.theme);
  }

  nextTheme() {
    const all = ["dark", "light", "dark-contrast", "light-contrast"];
    this.chooseTheme(all[(all.indexOf(this.theme) + 1) % all.length]);
    this.say(T("Theme: {name}", { name: this.theme }));
    this.render();
    this.showKinds();
  }

  kindColour(kind) { return this.kinds.css[CODE.LOW + (kind % LEVELS)]; }
  kindName(kind) { return visible(this.facts.kinds[kind]?.name ?? T("kind {number}", { number: kind })); }

  say(text) { by("said").textContent = text; }

  problem(text) {
    by("problem").textContent = text;
    by("problem").hidden = !text;
  }

  // ------------------------------------------------------------------ events

  get limit() { return Math.min(this.store.length - 1, this.lesson ? this.lesson.limit : Infinity); }

  // Show an event. Of requests that come meanwhile only the latest is served. Resolves when it is shown.
  show(place) {
    if (!this.store.length) return Promise.resolve();
    this.wanted = Math.max(this.store.dropped, Math.min(place, this.limit));
    this.seeking ??= this.seek().finally(() => { this.seeking = null; });
    return this.seeking;
  }

  async seek() {
    try {
      while (this.wanted !== null) {
        const place = this.wanted;
        this.wanted = null;
        const session = await this.cursor.seek(place);
        if (this.wanted !== null && this.wanted !== place) continue;
        this.session = session;
        this.at = place;
        this.history.note(place, session);
        this.render();
      }
    } catch (error) {
      this.wanted = null;
      this.problem(error instanceof WireError ? T("An event cannot be read: {reason}.", { reason: error.message }) : T("The page failed: {reason}", { reason: error.message }));
    }
  }

  step(by_) {
    this.stop();
    if (this.remote?.isPlayback) return this.remote.step(by_);
    this.followsLive = by_ === Infinity;
    this.showPlay();
    return this.show(this.at + by_);
  }

  stop() {
    this.playing = false;
    clearTimeout(this.timer);
    this.showPlay();
  }

  toggle() {
    if (this.remote) {
      this.remote.toggle();
      return;
    }
    if (this.playing) {
      this.stop();
      return;
    }
    this.playing = true;
    this.showPlay();
    if (this.at >= this.limit) this.show(this.store.dropped);
    this.schedule();
  }

  schedule() {
    const pace = Number(by("pace").value), next = this.store.row(this.at + 1), now = this.store.row(this.at);
    const apart = next && now ? Math.max(0, Number(next.time - now.time) / 1e6) : 100;
    this.timer = setTimeout(async () => {
      if (!this.playing) return;
      if (this.at >= this.limit) {
        this.stop();
        return;
      }
      await this.show(this.at + 1);
      if (this.playing) this.schedule();
    }, pace ? 1000 / pace : Math.min(apart, 10000));
  }

  // Run to the event of a step, so that what happens is seen; at once where motion is reduced.
  async run(place, animated) {
    this.stop();
    const ahead = place - this.at;
    if (animated && ahead > 1 && !reducedMotion.matches) {
      const frames = Math.min(ahead, STEP_MILLIS / FRAME_MILLIS), millis = Math.min(200, STEP_MILLIS / frames), start = this.at;
      const run = (this.running = {});
      for (let n = 1; n <= frames; n++) {
        await this.show(Math.round(start + (ahead * n) / frames));
        await new Promise((resolve) => setTimeout(resolve, millis));
        if (this.running !== run) return false;
      }
    } else {
      this.running = null;
      await this.show(place);
    }
    return this.at === Math.min(place, this.limit);
  }

  // ------------------------------------------------------------------ what is shown

  get activeSpace() {
    const spaces = this.session?.spaces;
    if (!spaces?.size) return null;
    if (!spaces.has(this.space)) this.space = ([...spaces.values()].find((one) => one.main) ?? spaces.values().next().value).id;
    return spaces.get(this.space);
  }

  streamOf(space) {
    let id = this.streams.get(space.id);
    if (!space.streams.has(id)) id = space.streams.keys().next().value;
    return space.streams.has(id) ? new ShownStream(this.session, space, space.streams.get(id)) : null;
  }

  chooseSpace(id) {
    this.space = id;
    this.render();
    const space = this.activeSpace;
    if (space) this.say(T("Space {name}", { name: visible(space.name) }));
  }

  chooseStream(id) {
    const space = this.activeSpace;
    if (!space || !space.streams.has(id)) return;
    this.streams.set(space.id, id);
    this.render();
    this.say(`${visible(space.streams.get(id).schema.name)}: ${summaryText(this.streamOf(space))}`);
  }

  // The view of a lesson's step: names of a space and a stream, and a tile.
  look(view) {
    const space = view && [...(this.session?.spaces.values() ?? [])].find((one) => one.name === view.space);
    if (!space) return;
    this.space = space.id;
    const stream = [...space.streams.values()].find((one) => one.schema.name === view.stream);
    if (stream) this.streams.set(space.id, stream.schema.id);
    if (view.tile !== null && view.tile < space.count) this.tile.set(space.id, space.key(view.tile));
    this.render();
  }

  selectTile(tile, aloud = true) {
    const space = this.activeSpace;
    if (!space || tile < 0 || tile >= space.count) return;
    this.tile.set(space.id, space.key(tile));
    this.render();
    if (aloud) this.say(`${visible(tileName(space, tile))}. ${[...this.tileRows(space, tile)].map(([name, value]) => `${name}: ${value}`).join(". ")}`);
  }

  selectedTile(space) {
    const key = this.tile.get(space.id);
    return key === undefined ? -1 : space.tileOf(key);
  }

  // ------------------------------------------------------------------ drawing

  render() {
    if (this.drawn) return;
    this.drawn = true;
    requestAnimationFrame(() => {
      this.drawn = false;
      this.draw();
    });
  }

  draw() {
    const space = this.activeSpace;
    if (!space) return;
    const stream = this.streamOf(space);
    if (!stream) return;
    const palette = Palettes.of(stream.schema, this.theme);
    this.drawGraph();
    this.map.selected = this.selectedTile(space);
    this.map.draw(stream, palette);
    by("space-name").textContent = visible(space.name);
    const many = this.map.layout.perPixel > 1 ? T(" · {number} a pixel", { number: this.map.layout.perPixel }) : "";
    by("space-total").textContent = `${visible(stream.schema.name)}: ${visible(summaryText(stream))} · ${T("{number} tiles", { number: grouped(space.count) })}${many}`;
    by("tiles").setAttribute("aria-label", `${visible(space.name)}, ${T("{number} tiles", { number: grouped(space.count) })}, ${visible(stream.schema.name)}: ${visible(summaryText(stream))}`);
    this.drawStrips(space);
    this.drawSide(space, stream, palette);
    this.history.choose(stream);
    by("history-name").textContent = T("History of {space}: {stream}", { space: visible(space.name), stream: visible(stream.schema.name) });
    by("history-note").textContent = T("a line a tile, time runs to the right");
    this.fillHistory();
    this.drawTime();
  }

  get hasGraph() { return FlowGraph.of(this.activeSpace) !== null || ObjectGraph.of(this.session) !== null; }

  // The flow graph of the active space, or the graph of a small heap, above the tiles.
  drawGraph() {
    const flow = FlowGraph.of(this.activeSpace), root = by("graph");
    const shows = this.showsGraph && (flow !== null || ObjectGraph.of(this.session) !== null);
    if (root.hidden === shows) {
      root.hidden = !shows;
      by("tiles").classList.toggle("half", shows);
    }
    by("graph-words").hidden = !shows;
    by("picture").classList.toggle("flow", shows && flow !== null);
    if (!shows) return;
    root.style.minHeight = flow ? `${FlowGraph.leastHeight(flow)}px` : "";
    this.flow.canvas.hidden = !flow;
    this.graph.canvas.hidden = flow !== null;
    by("graph-words").textContent = visible(flow ? this.drawFlow(flow) : this.drawObjects());
  }

  drawFlow(read) {
    const space = this.activeSpace, stream = this.streamOf(space);
    const words = this.flow.draw(read, space, stream, this.selectedTile(space), Palettes.of(stream.schema, this.theme), this.inks);
    this.flow.canvas.setAttribute("aria-label", T("Flow graph: {words}. The tiles below are its edges.", { words }));
    return words;
  }

  drawObjects() {
    const { objects } = ObjectGraph.of(this.session);
    const words = this.graph.draw(this.session, this.selectedTile(objects), this.theme, this.inks);
    this.graph.canvas.setAttribute("aria-label", T("Objects: {words}. A number is how many references there are to an object; dashed is garbage; triangles above are roots.", { words: visible(words) }));
    return words;
  }

  selectObject(place) {
    const spaces = ObjectGraph.of(this.session);
    if (!spaces || place < 0) return;
    this.space = spaces.objects.id;
    this.selectTile(place);
  }

  toggleGraph() {
    this.showsGraph = !this.showsGraph;
    this.say(this.showsGraph ? T("Graph") : T("Tiles alone"));
    this.render();
  }

  drawStrips(active) {
    const others = [...this.session.spaces.values()].filter((space) => space !== active && space.streams.size);
    const parent = by("strips"), ids = new Set(others.map((space) => space.id));
    for (const [id, strip] of this.strips) {
      if (ids.has(id)) continue;
      strip.button.remove();
      this.strips.delete(id);
    }
    for (const space of others) {
      if (!this.strips.has(space.id)) {
        const canvas = make("canvas", { "aria-hidden": "true" }), words = make("span");
        const button = make("button", { type: "button", class: "strip", onclick: () => this.chooseSpace(space.id) }, words, canvas);
        parent.append(button);
        this.strips.set(space.id, { button, words, map: new TileMap(canvas, true) });
      }
      const { button, words, map } = this.strips.get(space.id), stream = this.streamOf(space);
      words.textContent = visible(space.name);
      button.title = button.ariaLabel = `${visible(space.name)}: ${visible(stream.schema.name)} ${visible(summaryText(stream))}`;
      map.draw(stream, Palettes.of(stream.schema, this.theme));
    }
  }

  drawSide(space, stream, palette) {
    const buttons = [...space.streams.values()].map((values) => {
      const one = values.schema.id === stream.schema.id ? stream : new ShownStream(this.session, space, values);
      return [values.schema, summaryText(one), values.sequence !== this.session.event.sequence];
    });
    const root = by("streams"), focused = document.activeElement?.dataset?.stream;
    if (root.dataset.space !== String(space.id) || root.children.length !== buttons.length) {
      root.dataset.space = space.id;
      root.replaceChildren(...buttons.map(([schema]) => make("button", {
        type: "button", class: "stream", role: "radio", "data-stream": schema.id, title: schema.about || null, onclick: () => this.chooseStream(schema.id),
      }, make("span", { text: schema.name }), make("span"))));
    }
    buttons.forEach(([schema, words, stale], n) => {
      const button = root.children[n], chosen = schema.id === stream.schema.id;
      button.setAttribute("aria-checked", chosen);
      button.tabIndex = chosen ? 0 : -1;
      button.lastChild.textContent = visible(words) + (stale ? T(" (older)") : "");
      if (focused && chosen && document.activeElement?.closest("#streams")) button.focus();
    });
    this.drawLegend(space, stream, palette);
    const tile = this.map.selected;
    by("tile-name").textContent = tile < 0 ? T("Tile") : visible(tileName(space, tile));
    by("tile").replaceChildren(tile < 0 ? make("p", { class: "dim" }, T("Click a tile, or use the arrow keys on the map.")) : this.rows(this.tileRows(space, tile)));
    this.drawEvent();
    by("about").textContent = visible([space.about, space.info].filter(Boolean).join(" "));
  }

  *tileRows(space, tile) {
    const control = controlWords(space.control.values[tile], space.unused);
    if (control) yield ["", visible(control)];
    for (const values of space.streams.values()) {
      yield [visible(values.schema.name), visible(longValue(new ShownStream(this.session, space, values), tile))];
    }
  }

  rows(pairs) {
    return make("dl", {}, ...[...pairs].flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
  }

  drawEvent() {
    const { event } = this.session, row = this.store.row(this.at), pairs = [
      [visible(this.kindName(event.kind)), T("occurrence {number}", { number: grouped(event.occurrence) })],
      [T("time"), this.timeOf(row)],
    ];
    if (event.cause) pairs.push([T("cause"), visible(event.cause)]);
    if (event.clock) pairs.push([visible(event.clock[0]), grouped(event.clock[1])]);
    pairs.push([T("gathering took"), duration(event.gathered)]);
    if (event.held) pairs.push([T("held before it"), duration(event.held)]);
    if (row?.missed) pairs.push([T("missed before it"), T("{number} events", { number: grouped(row.missed) })]);
    if (row?.left) pairs.push([T("left out before it"), T("{number} events", { number: grouped(row.left) })]);
    by("event").replaceChildren(this.rows(pairs));
  }

  timeOf(row) {
    const first = this.store.row(this.store.dropped);
    return row && first ? `+${duration(row.time - first.time)}` : "";
  }

  drawLegend(space, stream, palette) {
    const root = by("legend"), key = JSON.stringify([space.id, stream.schema.id, this.theme, String(stream.top), stream.frequent, stream.names.length]);
    const stale = stream.values.sequence !== this.session.event.sequence;
    if (root.dataset.key !== key) {
      root.dataset.key = key;
      const swatch = (code, words) => {
        const box = make("span", { class: "swatch" });
        box.style.background = code === CODE.UNKNOWN
          ? `repeating-linear-gradient(-45deg, ${palette.css[code]} 0 2px, ${palette.css[CODE.CANVAS]} 2px 4px)` : palette.css[code];
        return make("span", {}, box, visible(words));
      };
      const parts = [];
      if (stream.named) {
        stream.frequent.forEach((value, n) => parts.push(swatch(CODE.LOW + n, stream.names[value])));
        if (stream.names.length > stream.frequent.length) parts.push(swatch(CODE.LOW + CATEGORIES, T("others")));
      } else if (stream.isEnum) stream.names.slice(0, 32).forEach((name, n) => parts.push(swatch(CODE.LOW + n, name)));
      else {
        const ramp = make("canvas", { class: "ramp", width: LEVELS, height: 1, role: "img", "aria-label": T("Colours from the least to the greatest value") });
        const context = ramp.getContext("2d"), image = context.createImageData(LEVELS, 1);
        new Uint32Array(image.data.buffer).set(palette.pixels.subarray(CODE.LOW, CODE.HIGH + 1));
        context.putImageData(image, 0, 0);
        const shares = stream.schema.presentation === PRESENTATION.PERCENT || stream.tops;
        const ends = shares ? ["0 %", "100 %"] : [shortAmount(stream, stream.schema.min), shortAmount(stream, stream.top)];
        root.replaceChildren(ramp, make("div", { class: "ends" }, ...ends.map((words) => make("span", { text: words }))));
        if (stream.schema.paint === 1) parts.push(swatch(CODE.ZERO, `${stream.schema.prefix}${stream.schema.zero}${stream.schema.suffix}`));
        parts.push(swatch(CODE.OVERFLOW, stream.schema.threshold ? T("above the threshold") : T("above the maximum")));
      }
      parts.push(swatch(CODE.UNUSED, space.unused || T("unused")), swatch(CODE.UNKNOWN, T("unknown")));
      const swatches = make("div", { class: "swatches" }, ...parts);
      if (stream.isEnum) root.replaceChildren(swatches);
      else root.append(swatches);
      root.append(make("p", { class: "stale" }));
    }
    root.lastChild.textContent = stale
      ? stream.values.sequence ? T("Older than this event: gathered at occurrence {number} of {kind}.", { number: grouped(stream.values.occurrence), kind: this.kindName(stream.values.event) }) : T("Not gathered yet.")
      : "";
  }

  async fillHistory() {
    const last = this.limit, key = `${JSON.stringify(this.history.wanted)} ${last}`;
    if (this.filled === key) return;
    this.filled = key;
    try {
      await this.history.fill(last);
    } catch (error) {
      this.problem(T("The history graph cannot be drawn: {reason}", { reason: error.message }));
    }
  }

  drawTime() {
    const space = this.activeSpace, stream = space && this.streamOf(space);
    if (!stream) return;
    const shown = this.at, limit = this.lesson?.running ? Math.max(shown, 0) : this.limit;
    this.history.draw(Palettes.of(stream.schema, this.theme), shown, limit, T("What comes next is hidden."), this.inks);
    this.timeline.draw(this.history.columns, shown, limit, T("What comes next is hidden."), this.inks, (kind) => this.kindColour(kind));
    const row = this.store.row(shown), known = this.facts.total || this.store.length;
    const words = row ? T("Event {number} of {count} · {kind} · {time}", { number: grouped(row.number), count: grouped(known), kind: this.kindName(this.session.event.kind), time: this.timeOf(row) }) : "";
    by("position").textContent = words;
    const slider = by("timeline");
    slider.setAttribute("aria-valuemax", this.store.length);
    slider.setAttribute("aria-valuenow", shown + 1);
    slider.setAttribute("aria-valuetext", words);
    by("backward").disabled = by("first").disabled = !this.remote?.isPlayback && shown <= this.store.dropped;
    by("forward").disabled = by("last").disabled = !this.remote && shown >= limit;
  }

  showPlay() {
    const { remote } = this, plays = remote ? (remote.isPlayback && !remote.isLed ? remote.state === "running" : this.followsLive) : this.playing;
    by("play").textContent = plays ? T("Stop") : remote && !remote.isPlayback ? T("Live") : T("Play");
    by("play").disabled = !!remote?.isPlayback && remote.isLed;
  }

  showKinds() {
    const often = new Map();
    for (const row of this.store.rows) often.set(row.kind, (often.get(row.kind) || 0) + 1);
    by("kinds").replaceChildren(...[...often.keys()].sort((a, b) => a - b).slice(0, 8).map((kind) => {
      const box = make("span", { class: "swatch" });
      box.style.background = this.kindColour(kind);
      return make("span", {}, box, `${this.kindName(kind)} ${grouped(often.get(kind))}`);
    }));
  }

  // ------------------------------------------------------------------ keys and pointers

  connect() {
    const on = (id, event, run) => by(id).addEventListener(event, run);
    on("first", "click", () => this.step(-Infinity));
    on("backward", "click", () => this.step(-1));
    on("forward", "click", () => this.step(1));
    on("last", "click", () => this.step(Infinity));
    on("play", "click", () => this.toggle());
    on("theme", "click", () => this.nextTheme());
    on("help", "click", () => this.showKeys());
    on("tiles", "click", (event) => this.selectTile(this.map.tileAt(event.clientX, event.clientY)));
    for (const id of ["timeline", "history"]) {
      const drag = (event) => {
        if (event.buttons !== 1) return;
        this.stop();
        this.followsLive = false;
        this.running = null;
        this.goTo(this.timeline.placeAt(event.clientX));
      };
      on(id, "pointerdown", (event) => {
        by(id).setPointerCapture(event.pointerId);
        drag(event);
      });
      on(id, "pointermove", drag);
    }
    for (const dialog of document.querySelectorAll("dialog")) {
      // Not left to the form: a policy without form actions stops it in some browsers.
      dialog.querySelector("form").addEventListener("submit", (event) => {
        event.preventDefault();
        dialog.close();
      });
    }
    document.addEventListener("keydown", (event) => this.press(event));
    new ResizeObserver(() => this.render()).observe(by("picture"));
    matchMedia("(prefers-color-scheme: light)").addEventListener("change", () => {
      this.chooseTheme(null);
      this.render();
    });
  }

  goTo(place) {
    if (this.remote?.isPlayback) this.remote.seek(this.store.row(place)?.number);
    else this.show(place);
  }

  keys() {
    return [
      [T("Space"), T("play or stop")], [T("Left, Right"), T("event before, next event")], [T("Page Up, Page Down"), T("ten events back, ten ahead")],
      [T("Home, End"), T("first event, last event")], ["Tab", T("from part to part; on the map the arrow keys select a tile")],
      [T("[ and ]"), T("space before, next space")], ["S, Shift+S", T("next stream, stream before")],
      ...(this.lesson ? [[T("1 to 6"), T("answer the question")], [T("N or Alt+Right, P or Alt+Left"), T("next step, step before")], ["R", T("read the step again")]] : []),
      ...(this.remote ? [["F", T("follow the leader of the class, or roam")]] : []),
      ...(this.hasGraph ? [["G", T("show or hide the graph")]] : []),
      ["T", T("theme: dark, light, and both with high contrast")], ["?", T("these keys")],
    ];
  }

  showKeys() {
    by("keys").querySelector("dl").replaceChildren(...this.keys().flatMap(([key, words]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, words)]));
    by("keys").showModal();
  }

  press(event) {
    if (document.querySelector("dialog[open]") || ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName) || event.ctrlKey || event.metaKey) return;
    if (event.altKey && !["ArrowLeft", "ArrowRight"].includes(event.key) && !/^[1-6]$/.test(event.key)) return;
    const onMap = event.target === by("tiles"), onStreams = event.target.closest?.("#streams"), onText = event.target.closest?.(".prose");
    const run = this.command(event, onMap, onStreams, onText);
    if (!run) return;
    event.preventDefault();
    run();
  }

  command(event, onMap, onStreams, onText) {
    const { key, altKey } = event, lesson = this.lesson;
    if (lesson && ((altKey && key === "ArrowRight") || key === "n" || key === "N")) return () => lesson.go(lesson.at + 1);
    if (lesson && ((altKey && key === "ArrowLeft") || key === "p" || key === "P")) return () => lesson.go(lesson.at - 1);
    if (altKey && !/^[1-6]$/.test(key)) return null;
    if (lesson && /^[1-6]$/.test(key)) return () => lesson.answerShown(Number(key) - 1);
    if (lesson && (key === "r" || key === "R")) return () => this.say(lesson.text.textContent);
    if (onMap && key.startsWith("Arrow")) return () => this.moveTile(key);
    if (onStreams && ["ArrowUp", "ArrowDown"].includes(key)) return () => this.moveStream(key === "ArrowDown" ? 1 : -1);
    if (onText && ["ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"].includes(key)) return null;
    switch (key) {
      case " ": return event.target.tagName === "BUTTON" ? null : () => this.toggle();
      case "ArrowLeft": return () => this.step(-1);
      case "ArrowRight": return () => this.step(1);
      case "PageUp": return () => this.step(-10);
      case "PageDown": return () => this.step(10);
      case "Home": return () => this.step(-Infinity);
      case "End": return () => this.step(Infinity);
      case "[": return () => this.moveSpace(-1);
      case "]": return () => this.moveSpace(1);
      case "s": return () => this.moveStream(1);
      case "S": return () => this.moveStream(-1);
      case "g": case "G": return this.hasGraph ? () => this.toggleGraph() : null;
      case "f": case "F": return this.remote ? () => this.remote.follow(!this.remote.following) : null;
      case "t": case "T": return () => this.nextTheme();
      case "?": return () => this.showKeys();
      default: return null;
    }
  }

  moveTile(key) {
    const space = this.activeSpace, layout = this.map.layout;
    if (!space || !layout) return;
    const cell = layout.perPixel, by_ = { ArrowLeft: -cell, ArrowRight: cell, ArrowUp: -cell * layout.columns, ArrowDown: cell * layout.columns }[key];
    const from = this.selectedTile(space), to = from < 0 ? 0 : from + by_;
    if (to >= 0 && to < space.count) this.selectTile(to);
  }

  moveStream(by_) {
    const space = this.activeSpace;
    if (!space) return;
    const ids = [...space.streams.keys()], at = ids.indexOf(this.streamOf(space).schema.id);
    this.chooseStream(ids[(at + by_ + ids.length) % ids.length]);
  }

  moveSpace(by_) {
    const ids = [...(this.session?.spaces.keys() ?? [])], at = ids.indexOf(this.activeSpace?.id);
    if (ids.length) this.chooseSpace(ids[(at + by_ + ids.length) % ids.length]);
  }

  // ------------------------------------------------------------------ lessons

  openLesson(lesson) {
    by("lesson").hidden = false;
    document.querySelector("main").classList.add("lesson");
    this.lesson = new LessonPanel(by("lesson"), lesson, {
      goTo: (place, animated) => this.run(place, animated),
      look: (view) => this.look(view),
      say: (text) => this.say(text),
      answered: (step, tries) => this.remote?.answer(step, tries),
      changed: () => this.render(),
    });
  }

  // Open the recording that is in the page.
  async openFile() {
    const { facts, store } = this, packed = Uint8Array.from(atob(by("events").textContent.trim()), (one) => one.charCodeAt(0));
    const { number, time, kind, occurrence, missed, left, held, gathered } = facts.events;
    let now = BigInt(facts.start);
    number.forEach((_, n) => {
      now += BigInt(time[n]);
      store.rows.push({
        number: number[n], time: now, kind: kind[n], occurrence: occurrence[n], missed: missed[n] ?? 0, left: left[n] ?? 0, held: BigInt(held[n]), gathered: BigInt(gathered[n]),
      });
    });
    let offset = 0;
    for (const [first, length] of facts.chunks) {
      store.addPacked(first, packed.subarray(offset, offset + length));
      offset += length;
    }
    this.showKinds();
    if (facts.lesson) {
      this.openLesson(facts.lesson);
      await this.show(0);
      await this.lesson.go(0);
    } else await this.show(store.length - 1 > 0 && facts.shown !== null ? facts.shown : 0);
  }
}

async function begin() {
  const facts = JSON.parse(by("facts").textContent);
  chooseLanguage(facts);
  translateDocument();
  by("title").textContent = visible(facts.title);
  by("subtitle").textContent = visible(facts.subtitle);
  const page = (window.gcspy = new Page(facts));
  try {
    if (facts.live) await page.openSession();
    else await page.openFile();
  } catch (error) {
    page.problem(T("The page failed: {reason}", { reason: error.message }));
  }
  document.documentElement.dataset.ready = "yes";
}
