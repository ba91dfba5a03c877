(function () {
  "use strict";
  // Theme first, before anything is painted.
  const root = document.documentElement, store = "eprof-theme";
  try { if (/^(dark|light)$/.test(localStorage.getItem(store))) root.dataset.theme = localStorage.getItem(store); } catch (e) { /* some file pages */ }
  document.addEventListener("DOMContentLoaded", start);
  function start() {
    setUpTheme();
    document.querySelectorAll("table.sortable").forEach(setUpTable);
    requestAnimationFrame(() => requestAnimationFrame(() => { root.dataset.ready = "1"; }));
  }

  function isDark() { return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches; }
  function setUpTheme() {
    const button = document.getElementById("theme"), label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
    button.hidden = false;
    label();
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem(store, root.dataset.theme); } catch (e) { /* some file pages */ }
      label();
    });
  }

  // ---- tables that are sorted by a click on a heading
  function setUpTable(table) {
    const body = table.tBodies[0], heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach((th, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = th.textContent;
      th.textContent = "";
      th.appendChild(button);
      button.addEventListener("click", () => sort(body, heads, th, at));
    });
  }
  function key(row, at) {
    const cell = row.cells[at], value = cell.dataset.value;
    if (value === undefined) return cell.textContent.toLowerCase();
    return value === "" ? null : +value;
  }
  function sort(body, heads, th, at) {
    const rows = Array.from(body.rows), words = rows.some(row => row.cells[at].dataset.value === undefined);
    const up = th.getAttribute("aria-sort") ? th.getAttribute("aria-sort") === "descending" : words, sign = up ? 1 : -1;
    heads.forEach(one => one.removeAttribute("aria-sort"));
    th.setAttribute("aria-sort", up ? "ascending" : "descending");
    const keys = new Map(rows.map(row => [row, key(row, at)]));
    rows.sort((a, b) => {
      const x = keys.get(a), y = keys.get(b);
      if (x === null || y === null) return (x === null) - (y === null);
      return x < y ? -sign : x > y ? sign : 0;
    });
    rows.forEach(row => body.appendChild(row));
  }
})();
