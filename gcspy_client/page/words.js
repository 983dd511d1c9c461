// The words of the page in the language of its reader: a catalog of translations by English text. What it does not have stays English.

const WORDS = { language: "en", catalog: {} };

// A text in the reader's language; `values` stand for the names in braces. Each text is written out where it is used: so translators' tools find it.
function T(english, values = null) {
  const text = Object.hasOwn(WORDS.catalog, english) ? WORDS.catalog[english] : english;
  return values ? text.replace(/\{(\w+)\}/g, (whole, name) => (Object.hasOwn(values, name) ? String(values[name]) : whole)) : text;
}

// The languages of the page's facts: the one that it was made in, or the first of the browser's that it has.
function chooseLanguage(facts) {
  const there = facts.words || {}, wanted = facts.language ? [facts.language] : navigator.languages || [];
  const names = wanted.flatMap((one) => [one.replace("-", "_"), one.split(/[-_]/)[0]]);
  WORDS.language = names.find((one) => one === "en" || Object.hasOwn(there, one)) || "en";
  WORDS.catalog = there[WORDS.language] || {};
}

// Put the texts of the document itself into the reader's language.
function translateDocument() {
  document.documentElement.lang = WORDS.language.replace("_", "-");
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT, (node) =>
    (["SCRIPT", "STYLE", "TITLE"].includes(node.parentElement.tagName) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
  while (walker.nextNode()) {
    const node = walker.currentNode, text = node.data.replace(/\s+/g, " ").trim();
    if (Object.hasOwn(WORDS.catalog, text)) node.data = node.data.replace(node.data.trim(), WORDS.catalog[text]);
  }
  for (const name of ["title", "aria-label", "aria-roledescription"]) {
    for (const element of document.querySelectorAll(`body [${name}]`)) {
      const text = element.getAttribute(name);
      if (Object.hasOwn(WORDS.catalog, text)) element.setAttribute(name, WORDS.catalog[text]);
    }
  }
}
