// Rows of which only the visible ones exist: labels are a few reused elements, the rest is one
// canvas. Arrow keys select a row, Enter opens it, left and right move along it.

import { h, setText } from "./dom.js";
import { Surface } from "./surface.js";

let serial = 0;

export class Rows {
  /**
   * label: the name of the list; heights: smallest and largest of a row; look(id): {text, note, class}
   * of its label; paint(pen, rows, width, active): draw the visible rows [{id, y}]; open(id);
   * along(id, step) and point(id, x): describe what is there.
   */
  constructor({ label, heights, look, paint, open, along = null, point = null }) {
    Object.assign(this, { heights, height: heights[0], look, paintRows: paint, open, along, point });
    this.ids = [];
    this.active = null;
    this.pool = [];
    this.name = `rows-${(serial += 1)}`;
    this.canvas = h("canvas", { class: "rows-canvas", "aria-hidden": "true" });
    this.labels = h("div", { class: "rows-labels" });
    this.view = h("div", { class: "rows-view" }, this.labels, this.canvas);
    this.space = h("div", { class: "rows-space" }, this.view);
    this.element = h(
      "div",
      { class: "rows", tabindex: 0, role: "listbox", "aria-label": label, id: this.name },
      this.space,
    );
    this.surface = new Surface(this.canvas, (pen, width) => this.paint(pen, width));
    this.element.addEventListener("scroll", () => this.surface.request(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("focus", () => {
      if (this.active === null && this.ids.length > 0) this.activate(0);
    });
    this.view.addEventListener("click", (event) => {
      const index = this.indexAt(event);
      if (index === null) return;
      this.activate(index);
      this.open(this.ids[index]);
    });
    this.view.addEventListener("pointermove", (event) => this.hover(event));
    new ResizeObserver(() => this.fit()).observe(this.element);
  }

  /** Show these rows; the selected row stays selected. */
  show(ids) {
    const length = this.ids.length;
    this.ids = ids;
    if (this.active !== null && !ids.includes(this.active)) this.active = null;
    if (ids.length !== length) this.fit();
    this.surface.request();
  }

  fit() {
    const high = this.element.clientHeight;
    // Other pictures on the same time axis end where the scroll bar of these rows begins.
    const bar = this.element.offsetWidth - this.element.clientWidth;
    document.documentElement.style.setProperty("--bar", `${bar}px`);
    // Few rows share the height; many rows scroll.
    const [least, most] = this.heights;
    this.height = Math.max(least, Math.min(most, Math.floor(high / Math.max(this.ids.length, 1))));
    this.element.style.setProperty("--row", `${this.height}px`);
    this.space.style.height = `${Math.max(this.ids.length * this.height, high)}px`;
    this.view.style.height = `${high}px`;
    this.surface.request();
  }

  indexAt(event) {
    const y = event.clientY - this.view.getBoundingClientRect().top + this.element.scrollTop;
    const index = Math.floor(y / this.height);
    return index >= 0 && index < this.ids.length ? index : null;
  }

  hover(event) {
    if (this.point === null) return;
    const index = this.indexAt(event);
    const box = this.canvas.getBoundingClientRect();
    this.point(index === null ? null : this.ids[index], event.clientX - box.left, box.width);
  }

  activate(index) {
    const at = Math.max(0, Math.min(this.ids.length - 1, index));
    this.active = this.ids[at] ?? null;
    const [top, high] = [at * this.height, this.element.clientHeight];
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + this.height > this.element.scrollTop + high) this.element.scrollTop = top + this.height - high;
    this.surface.paint(); // now: the active descendant must exist when it is named
    this.along?.(this.active, 0);
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const now = this.active === null ? -1 : this.ids.indexOf(this.active);
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
    const moves = {
      ArrowDown: now + 1, ArrowUp: now - 1, PageDown: now + page, PageUp: now - page,
      Home: 0, End: this.ids.length - 1,
    };
    if (event.key in moves && this.ids.length > 0) this.activate(moves[event.key]);
    else if (event.key === "Enter" && this.active !== null) this.open(this.active);
    else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && this.active !== null && this.along) {
      this.along(this.active, event.key === "ArrowLeft" ? -1 : 1);
    } else return;
    event.preventDefault();
  }

  /** Return the label element of a visible row, created when first needed. */
  slot(k) {
    while (this.pool.length <= k) {
      const [text, note] = [h("span", { class: "name" }), h("span", { class: "note" })];
      const element = h("div", { class: "row-label", role: "option", id: `${this.name}-${this.pool.length}` }, text, note);
      this.labels.append(element);
      this.pool.push({ element, text, note });
    }
    return this.pool[k];
  }

  paint(pen, width) {
    const top = this.element.scrollTop;
    const first = Math.floor(top / this.height);
    const last = Math.min(this.ids.length, Math.ceil((top + this.element.clientHeight) / this.height));
    const rows = [];
    let described = null;
    for (let index = first; index < last; index += 1) {
      const [id, y] = [this.ids[index], index * this.height - top];
      rows.push({ id, y });
      const { element, text, note } = this.slot(index - first);
      const look = this.look(id);
      setText(text, look.text);
      setText(note, look.note ?? "");
      const name = `row-label ${look.class ?? ""}${id === this.active ? " active" : ""}`;
      if (element.className !== name) element.className = name;
      element.style.transform = `translateY(${y}px)`;
      element.hidden = false;
      element.title = look.title ?? look.text;
      element.setAttribute("aria-selected", String(id === this.active));
      element.setAttribute("aria-posinset", String(index + 1));
      element.setAttribute("aria-setsize", String(this.ids.length));
      if (id === this.active) described = element.id;
    }
    for (let k = Math.max(0, last - first); k < this.pool.length; k += 1) this.pool[k].element.hidden = true;
    if (described === null) this.element.removeAttribute("aria-activedescendant");
    else this.element.setAttribute("aria-activedescendant", described);
    this.paintRows(pen, rows, width, this.active);
  }
}
