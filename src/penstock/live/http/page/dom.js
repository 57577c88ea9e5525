// Creates elements from names and text only: a job's name is never parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

/** Return an HTML element; strings among the children become text. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Return an SVG element. */
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Set an element's text if it differs, so that an unchanged page does no layout. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Return a card: a titled part of a view, with controls beside its title. */
export function card(title, attributes, beside, ...content) {
  const id = `card-${title.toLowerCase().replace(/[^a-z]+/g, "-")}`;
  return h(
    "section",
    { ...attributes, class: `card ${attributes.class ?? ""}`, "aria-labelledby": id },
    h("header", { class: "card-head" }, h("h2", { id }, title), h("div", { class: "beside" }, beside)),
    ...content,
  );
}

/** Return a table; a row is a list of cells, each a string, a node or {text, class}. */
export function table(caption, heads, rows, attributes = {}) {
  const cell = (value, tag = "td", more = {}) => {
    if (value !== null && typeof value === "object" && !(value instanceof Node)) {
      return h(tag, { ...more, class: value.class ?? null, title: value.title ?? null }, value.text);
    }
    return h(tag, more, value ?? "");
  };
  return h(
    "table",
    attributes,
    h("caption", { class: "unseen" }, caption),
    h("thead", {}, h("tr", {}, heads.map((head) => cell(head, "th", { scope: "col" })))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((value) => cell(value))))),
  );
}

/** Return a small bar for a part (0 to 1); the number beside it gives the same value. */
export function gauge(part, kind = "") {
  const inner = h("span", {});
  inner.style.width = `${100 * Math.max(0, Math.min(1, part))}%`;
  return h("span", { class: `gauge ${kind}`, "aria-hidden": "true" }, inner);
}

/** The content of a picture as a table, rebuilt while it is open. */
export class AsTable {
  constructor(what, make) {
    this.make = make;
    this.body = h("div", { class: "as-table-body" });
    this.element = h("details", { class: "as-table" }, h("summary", {}, `${what} as a table`), this.body);
    this.element.addEventListener("toggle", () => this.refresh());
  }

  refresh() {
    if (this.element.open) this.body.replaceChildren(this.make());
  }
}
