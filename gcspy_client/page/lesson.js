// A lesson: the text of a step, its question with shuffled choices, feedback, a second try, and the score.
// By itself it goes through a recording; in a class it is led. Knows texts and places of events; does not know the session.

class LessonPanel {
  // `host` goes to an event, shows a view, says a text to screen readers, and sends answers to the teacher.
  constructor(root, lesson, host) {
    this.root = root;
    this.lesson = lesson;
    this.host = host;
    this.at = -1;
    this.arrived = new Set();
    this.tries = new Map(); // place of a step to the choices that were taken, in their order
    this.led = null; // { step, attempt, revealed } of the leader of the class
    this.revealed = new Set();
    this.running = false;
    this.build();
  }

  build() {
    this.title = make("h2", { class: "caption", text: this.lesson.title });
    this.place = make("span", { class: "dim" });
    this.bar = make("progress", { max: this.lesson.steps.length, value: 0, "aria-label": T("Steps") });
    this.text = make("div", { class: "prose", tabindex: 0, role: "region", "aria-label": T("Text of the lesson") });
    this.card = make("div", { class: "card", role: "group", "aria-label": T("Question") });
    this.asked = make("p", { class: "asked", id: "asked" });
    this.choices = make("div", { class: "choices", role: "group", "aria-labelledby": "asked" });
    this.told = make("p", { class: "told", role: "status", "aria-live": "polite" });
    this.card.append(this.asked, this.choices, this.told);
    this.note = make("p", { class: "note" });
    this.back = make("button", { type: "button", "aria-keyshortcuts": "Alt+ArrowLeft", title: T("The step before (Alt+Left, P)"), onclick: () => this.go(this.at - 1) }, T("Back"));
    this.next = make("button", { type: "button", class: "primary", "aria-keyshortcuts": "Alt+ArrowRight", title: T("The next step (Alt+Right, N)"), onclick: () => this.go(this.at + 1) }, T("Next"));
    this.score = make("span", { class: "dim score" });
    const head = make("div", { class: "row" }, this.title, this.place);
    this.root.replaceChildren(head, this.bar, this.text, this.card, this.note, make("div", { class: "row foot" }, this.back, this.score, this.next));
  }

  get step() { return this.lesson.steps[this.at]; }
  get question() { return this.step?.question ?? null; }

  isOver(place) {
    const question = this.lesson.steps[place].question, tries = this.tries.get(place) || [];
    if (this.led) return this.revealed.has(place);
    return tries.includes(question.answer) || tries.length >= question.tries;
  }

  get asks() { return this.question !== null && this.arrived.has(this.at) && !this.isOver(this.at); }

  // Place of the last event that may be seen, so that no answer is given away; Infinity: all may.
  get limit() {
    if (this.led || this.at < 0) return Infinity;
    if (this.asks || this.running) return this.step.event;
    if (this.arrived.size === this.lesson.steps.length) return Infinity;
    return Math.max(...[...this.arrived].map((place) => this.lesson.steps[place].event), this.step.event);
  }

  whyNotNext() {
    if (this.led) return T("The leader of the class goes to the next step.");
    if (this.at + 1 >= this.lesson.steps.length) return T("This is the last step.");
    if (this.asks) return T("Answer the question first.");
    return this.running ? T("The recording is running to the event of this step.") : "";
  }

  async go(place) {
    if (this.led || place < 0 || place >= this.lesson.steps.length || (place > this.at && this.whyNotNext())) return;
    this.show(place);
    this.running = !this.arrived.has(place);
    this.refresh();
    const reached = await this.host.goTo(this.step.event, this.running);
    if (this.at !== place || !reached) return;
    this.running = false;
    this.arrived.add(place);
    this.host.look(this.viewAt(place));
    this.refresh();
    if (this.question && !this.isOver(place)) this.host.say(T("Question: {question}", { question: this.question.ask }));
  }

  // The view of a step, or the latest one before it.
  viewAt(place) {
    for (let n = place; n >= 0; n--) if (this.lesson.steps[n].view) return this.lesson.steps[n].view;
    return null;
  }

  show(place) {
    this.at = place;
    const { step } = this;
    this.text.innerHTML = step.html; // made by GCspy from Markdown: no HTML of its author, no pictures, no links (gcspy_client/page/prose.py)
    this.text.scrollTop = 0;
    this.told.textContent = "";
    this.choices.replaceChildren(...(step.question ? step.question.order.map((choice, n) => {
      const key = make("kbd", { "aria-hidden": "true" }, String(n + 1)), mark = make("span", { class: "mark" });
      return make("button", { type: "button", class: "choice", "data-choice": choice, onclick: () => this.answer(choice) }, key, make("span", { text: step.question.choices[choice] }), mark);
    }) : []));
    if (step.view) this.host.look(step.view);
  }

  // A class: go to where its leader is.
  follow(place) {
    const before = this.led;
    this.led = place;
    if (!place) {
      this.refresh();
      return;
    }
    if (place.step !== this.at && place.step < this.lesson.steps.length) this.show(place.step);
    if (place.attempt) this.arrived.add(this.at);
    const asked = place.attempt && !(before && before.step === place.step && before.attempt);
    if (place.revealed) this.revealed.add(this.at);
    this.refresh();
    if (asked && this.question) this.host.say(T("Question: {question}", { question: this.question.ask }));
  }

  mayTry() {
    return !this.led || ((this.tries.get(this.at) || []).length < this.led.attempt && !this.led.revealed);
  }

  answer(choice) {
    const tries = this.tries.get(this.at) || [];
    if (!this.asks || tries.includes(choice) || !this.mayTry()) return;
    this.tries.set(this.at, [...tries, choice]);
    this.host.answered(this.at, this.tries.get(this.at));
    this.refresh();
    if (!this.led && this.isOver(this.at)) this.next.focus();
  }

  answerShown(number) {
    if (this.question && number < this.question.order.length) this.answer(this.question.order[number]);
  }

  refresh() {
    const { step, question } = this, count = this.lesson.steps.length;
    if (!step) return;
    this.place.textContent = T("Step {number} of {count}", { number: this.at + 1, count });
    this.bar.value = this.at + 1;
    const arrived = this.arrived.has(this.at);
    this.card.hidden = !arrived || !(question || step.exercise);
    if (arrived && question) this.showQuestion(question);
    else if (arrived && step.exercise) {
      this.asked.textContent = T("Exercise: {task}", { task: step.exercise.task });
      this.told.className = "told";
      this.told.textContent = T("A page cannot set anything: `gcspy demo` runs the lesson. Go on to see a solution.");
    }
    this.note.textContent = this.running ? T("Running to the next event of the lesson …") : this.led && !arrived ? T("The leader of the class is on the way to this step …") : "";
    const why = this.whyNotNext();
    this.next.disabled = !!why;
    this.next.title = why || T("The next step (Alt+Right, N)");
    this.back.disabled = this.at <= 0 || !!this.led;
    this.score.textContent = this.scoreText();
    this.host.changed();
  }

  showQuestion(question) {
    const tries = this.tries.get(this.at) || [], over = this.isOver(this.at);
    this.asked.textContent = question.ask;
    for (const button of this.choices.children) {
      const choice = Number(button.dataset.choice), right = over && choice === question.answer, taken = tries.includes(choice);
      button.disabled = over || taken || !this.mayTry();
      button.classList.toggle("right", right);
      button.classList.toggle("wrong", taken && !right && (over || !this.led));
      const mark = right ? T("✓ right") : taken ? (over || !this.led ? T("✗ wrong") : T("● your answer")) : "";
      button.querySelector(".mark").textContent = mark;
    }
    let words = "", tone = "";
    if (this.led && !over && tries.length) words = T("Your answer is with the teacher.") + (this.mayTry() ? ` ${T("Answer once more.")}` : "");
    else if (over && !tries.length) words = question.because;
    else if (tries.length) {
      const last = tries[tries.length - 1], own = question.feedback[last] || "", right = last === question.answer;
      tone = right ? "good" : "bad";
      words = [right ? T("Correct.") : T("Not correct."), own, over ? question.because : T("Try once more.")].filter(Boolean).join(" ");
    }
    this.told.className = `told ${tone}`;
    if (this.told.textContent !== words) this.told.textContent = words;
  }

  scoreText() {
    const asked = this.lesson.steps.map((step, place) => [step.question, place]).filter(([question]) => question);
    const done = asked.filter(([, place]) => this.isOver(place));
    if (!done.length) return "";
    const rightAt = (number) => asked.filter(([question, place]) => (this.tries.get(place) || [])[number] === question.answer).length;
    const later = rightAt(1);
    const first = rightAt(0), answered = done.length;
    return later ? T("{first} of {answered} right at the first try, {later} at the second", { first, answered, later }) : T("{first} of {answered} right at the first try", { first, answered });
  }
}
