(function () {
  "use strict";
  // Theme first, before anything is painted.
  const root = document.documentElement, store = "eprof-theme";
  try { if (/^(dark|light)$/.test(localStorage.getItem(store))) root.dataset.theme = localStorage.getItem(store); } catch (e) { /* some file pages */ }
  document.addEventListener("DOMContentLoaded", start);
  function id(name) { return document.getElementById(name); }
  function start() {
    setUpTheme();
    setUpTable();
    requestAnimationFrame(() => requestAnimationFrame(() => { root.dataset.ready = "1"; }));
  }

  function isDark() { return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches; }
  function setUpTheme() {
    const button = id("theme"), label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
    button.hidden = false;
    label();
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem(store, root.dataset.theme); } catch (e) { /* some file pages */ }
      label();
    });
  }

  // ---- the table of kernels: sort by a column, filter by name
  function setUpTable() {
    const table = id("kernels-table");
    if (!table) return;
    const body = table.tBodies[0], rows = Array.from(body.rows), heads = Array.from(table.tHead.rows[0].cells);
    id("tools").hidden = rows.length < 2;
    heads.forEach((th, at) => {
      if (!th.textContent) return;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = th.textContent;
      th.textContent = "";
      th.appendChild(button);
      button.addEventListener("click", () => sort(body, rows, heads, th, at));
    });
    const nouns = " " + heads[0].textContent.toLowerCase() + "s";
    id("filter").addEventListener("input", () => filter(rows, nouns));
    filter(rows, nouns);
  }
  function key(row, at) {
    const cell = row.cells[at];
    if (at === 0) return cell.dataset.full.toLowerCase();
    return cell.dataset.value === "" ? null : +cell.dataset.value;
  }
  function sort(body, rows, heads, th, at) {
    const up = th.getAttribute("aria-sort") ? th.getAttribute("aria-sort") === "descending" : at === 0, sign = up ? 1 : -1;
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
  function filter(rows, nouns) {
    const wanted = id("filter").value.toLowerCase();
    let shown = 0;
    rows.forEach(row => {
      row.hidden = wanted !== "" && row.cells[0].textContent.toLowerCase().indexOf(wanted) < 0 && key(row, 0).indexOf(wanted) < 0;
      if (!row.hidden) shown += 1;
    });
    id("count").textContent = shown + " of " + rows.length + nouns;
  }
}());
