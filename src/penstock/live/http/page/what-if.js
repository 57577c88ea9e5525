import { h } from "./dom.js";

export class WhatIf {
  constructor({ model }) {
    this.model = model;
    this.element = h("div", { class: "what-if" });
  }

  update() {}
}
