// Runs before the first paint, so that a chosen theme never flashes; the rest is in looks.js.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("penstock-theme");
  } catch {
    // storage is switched off: the system's theme it is
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
