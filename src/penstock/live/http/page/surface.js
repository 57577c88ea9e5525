// A canvas with the size of its element and the resolution of the screen, drawn at most once per frame.

import { onTheme, palette } from "./palette.js";

export class Surface {
  /** `draw(pen, width, height)` is called in a frame after `request()`. */
  constructor(canvas, draw) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.draw = draw;
    this.width = this.height = 0;
    this.frame = 0;
    new ResizeObserver(() => this.request()).observe(canvas);
    onTheme(() => this.request());
  }

  request() {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.paint());
  }

  paint() {
    this.frame = 0;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === 0 || height === 0) return;
    const scale = devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.canvas.width !== wide || this.canvas.height !== high) {
      this.canvas.width = wide;
      this.canvas.height = high;
    }
    this.pen.setTransform(scale, 0, 0, scale, 0, 0);
    this.pen.clearRect(0, 0, width, height);
    this.pen.font = `11px ${palette().font}`;
    this.width = width;
    this.height = height;
    this.draw(this.pen, width, height);
  }
}
