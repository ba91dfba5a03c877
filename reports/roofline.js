(function () {
  "use strict";
  // The theme, as on the page of a profile.
  const root = document.documentElement, store = "eprof-theme";
  try { if (/^(dark|light)$/.test(localStorage.getItem(store))) root.dataset.theme = localStorage.getItem(store); } catch (e) { /* some file pages */ }
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    const label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
    button.hidden = false;
    label();
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem(store, root.dataset.theme); } catch (e) { /* only for this view then */ }
      label();
    });
    requestAnimationFrame(() => requestAnimationFrame(() => { root.dataset.ready = "1"; }));
  });
}());
