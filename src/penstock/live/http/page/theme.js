// Sets the theme before the first paint, so that the wrong one never flashes; palette.js changes it.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("penstock-theme");
  } catch {
    // storage is disabled: use the system's theme
  }
  const { dataset } = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  if (chosen === "light" || chosen === "dark") Object.assign(dataset, { theme: chosen, chosen: "" });
  else dataset.theme = system;
})();
