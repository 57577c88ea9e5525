// Colours and patterns for canvases, read from the style sheet, and the choice of light or dark.
// A pattern or a height repeats what a colour means.

const NAMES = [
  "ink", "muted", "faint", "line", "surface", "raised", "io", "io-track", "wait", "wait-back", "would",
  "compute", "bad", "good", "accent", "focus",
];
const RAMPS = {
  light: ["#eef2f6", "#b5d4e9", "#5aa5d2", "#0072b2", "#04345e"],
  dark: ["#1a2330", "#123f63", "#0072b2", "#56b4e9", "#eaf7ff"],
};
const STEPS = 64;
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set();
let cached = null;

/** Return the present theme: "light" or "dark". */
export function theme() {
  return document.documentElement.dataset.theme ?? "light";
}

function changed() {
  cached = null;
  for (const listener of listeners) listener();
}
system.addEventListener("change", () => {
  const { dataset } = document.documentElement;
  if ("chosen" in dataset) return;
  dataset.theme = system.matches ? "dark" : "light";
  changed();
});

/** Call a function when the theme changes. */
export function onTheme(listener) {
  listeners.add(listener);
}

/** Change to the other theme, and remember it. */
export function toggleTheme() {
  const next = theme() === "dark" ? "light" : "dark";
  Object.assign(document.documentElement.dataset, { theme: next, chosen: "" });
  try {
    localStorage.setItem("penstock-theme", next);
  } catch {
    // storage is disabled: it lasts until the page is closed
  }
  changed();
}

function mixed(stops) {
  const parts = stops.map((stop) => [1, 3, 5].map((k) => parseInt(stop.slice(k, k + 2), 16)));
  return Array.from({ length: STEPS }, (_, step) => {
    const place = (step / (STEPS - 1)) * (parts.length - 1);
    const left = Math.min(Math.floor(place), parts.length - 2);
    const part = place - left;
    const mix = [0, 1, 2].map((k) => Math.round(parts[left][k] * (1 - part) + parts[left + 1][k] * part));
    return `rgb(${mix.join(" ")})`;
  });
}

function hatch(colour, back, { gap = 6, width = 2, falls = false } = {}) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = gap;
  const pen = tile.getContext("2d");
  if (back) {
    pen.fillStyle = back;
    pen.fillRect(0, 0, gap, gap);
  }
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.lineCap = "square";
  if (falls) {
    pen.translate(gap, 0);
    pen.scale(-1, 1);
  }
  for (const shift of [-gap, 0, gap]) {
    pen.beginPath();
    pen.moveTo(shift, gap);
    pen.lineTo(shift + gap, 0);
    pen.stroke();
  }
  return pen.createPattern(tile, "repeat");
}

/** Return the colours, patterns and heat ramp of the present theme. */
export function palette() {
  if (cached !== null) return cached;
  const styles = getComputedStyle(document.documentElement);
  const colours = Object.fromEntries(
    NAMES.map((name) => [name.replace(/-(.)/, (_, c) => c.toUpperCase()), styles.getPropertyValue(`--${name}`).trim()]),
  );
  cached = {
    ...colours,
    font: styles.getPropertyValue("--font"),
    waitHatch: hatch(colours.wait, colours.waitBack),
    wouldHatch: hatch(colours.would, null, { gap: 5, width: 1, falls: true }),
    deadHatch: hatch(colours.faint, null, { gap: 8, width: 1 }),
    ramp: mixed(RAMPS[theme()]),
  };
  return cached;
}

/** Return the colour of a part (0 to 1) of the heat ramp. */
export function heat(part) {
  const ramp = palette().ramp;
  return ramp[Math.max(0, Math.min(STEPS - 1, Math.round(part * (STEPS - 1))))];
}
