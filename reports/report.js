(function () {
  "use strict";
  // Theme first, before anything is painted.
  const root = document.documentElement, store = "eprof-theme", ROW = 28, NARROW = "\u202f";
  try { if (/^(dark|light)$/.test(localStorage.getItem(store))) root.dataset.theme = localStorage.getItem(store); } catch (e) { /* some file pages */ }
  document.addEventListener("DOMContentLoaded", start);

  // ---- numbers, digit for digit as eprof/words/numbers.py writes them
  let PREFIX = { "-15": "f", "-12": "p", "-9": "n", "-6": "µ", "-3": "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E" };
  function digits(x) { let p = x.toExponential(2).split("e"); return [p[0].replace(".", ""), +p[1]]; }
  function grouped(s) { return s.length < 5 ? s : s.replace(/\B(?=(\d{3})+$)/g, NARROW); }
  function placed(d, p) {
    if (p >= 2) return grouped(d + "0".repeat(p - 2));
    return p >= 0 ? d.slice(0, p + 1) + "." + d.slice(p + 1) : "0." + "0".repeat(-p - 1) + d;
  }
  function quantity(x, unit) {
    if (x === 0) return unit ? "0" + NARROW + unit : "0";
    let sign = x < 0 ? "−" : "", a = Math.abs(x), tail = unit ? NARROW + unit : "";
    if ((unit === "" || unit === "B") && a === Math.floor(a) && a < 1000) return sign + a + tail;
    let d = digits(a), p = Math.max(-15, Math.min(unit === "s" ? 0 : 18, 3 * Math.floor(d[1] / 3))), u = PREFIX[p] + unit;
    return sign + placed(d[0], d[1] - p) + (u ? NARROW + u : "");
  }
  function plain(x) {
    if (x === 0) return "0";
    let d = digits(Math.abs(x));
    return d[1] < -4 || d[1] > 5 ? quantity(x, "") : (x < 0 ? "−" : "") + placed(d[0], d[1]);
  }
  function percent(x) {
    let s = Math.abs(x) * 100, t;
    if (s === 0) t = "0";
    else if (s < 0.05) return "<" + NARROW + "0.1" + NARROW + "%";
    else if (s >= 99.95 && s < 99.999) t = ">" + NARROW + "99.9";
    else t = s < 9.95 || (s > 99 && s < 99.95) ? s.toFixed(1) : grouped(s.toFixed(0));
    return (x < 0 ? "−" : "") + t + NARROW + "%";
  }
  function written(kind, unit, x) {
    return kind === "whole" ? grouped(String(x)) : kind === "plain" ? plain(x) : kind === "share" ? percent(x) : quantity(x, unit);
  }

  // ---- small tools
  function heads() { return document.querySelectorAll("#kernels-table thead th"); }
  function id(name) { return document.getElementById(name); }
  function el(tag, cls, text) {
    let e = document.createElement(tag);
    if (cls) e.className = cls;
    if (text !== undefined) e.textContent = text;
    return e;
  }
  function svg(tag, attributes) {
    let e = document.createElementNS(document.querySelector("svg").namespaceURI, tag);
    for (let key in attributes) e.setAttribute(key, attributes[key]);
    return e;
  }

  let D, count, measure, order, shown, chosen = 0, sortKey, sortUp = false, leave = false, query = "";
  let box, body, from = -1, scale = 1, running = [];

  function start() {
    D = JSON.parse(id("data").textContent);
    setUpTheme();
    if (D.names) setUpTable();
    if (D.what) setUpSliders();
    if (D.dots) document.querySelectorAll("[data-plot]").forEach(drawDots);
    requestAnimationFrame(() => requestAnimationFrame(() => { root.dataset.ready = "1"; }));
  }

  // ---- theme
  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }
  function setUpTheme() {
    let button = id("theme");
    function label() { button.textContent = isDark() ? "Light" : "Dark"; button.title = button.textContent + " theme"; }
    button.hidden = false;
    label();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem(store, root.dataset.theme); } catch (e) { /* only for this view then */ }
      label();
    });
  }

  // ---- numbers of a kernel
  function pick(column, k) { return typeof column === "number" ? column : column[k]; }
  function mark(key, k) { return key === "above" ? mark("computation", k) | mark("data", k) : pick(D.marks[key] || 0, k); }
  function over(a, b) { return a === null || !b ? null : a / b; }
  // A number of a kernel; power, constant energy and what is above it are worked out where they are not sent.
  function number(key, k) {
    const column = D.numbers[key], n = other => number(other, k);
    if (column) return column[k];
    if (key === "power") return over(n("total"), n("time"));
    if (key === "power_above") return over(n("above"), n("time"));
    if (key === "constant") return n("time") === null || D.watts === null ? null : n("time") * D.watts;
    if (key === "above") return n("computation") === null && n("data") === null ? null : n("computation") + n("data");
    return null;
  }
  function main() { return leave ? "above" : measure; }
  // Where constant power is left out, it is so in all that is made of energy.
  const ABOVE = " above constant power";
  function left(key) { return leave && /^(callees|power|perflop)$/.test(key) ? key + "_above" : key; }
  function wholeAmount() { return D.whole[main()]; }
  function value(key, k) {
    if (key === measure) return number(main(), k);
    if (key === "share") return over(number(main(), k), wholeAmount()[0]);
    return number(left(key), k);
  }
  function marksOf(key, k) {
    if (key === measure) return mark(main(), k);
    if (key === "share") return mark(main(), k) | wholeAmount()[1];
    if (key === "sum") return wholeAmount()[1];
    return mark(left(key), k);
  }
  function set(words, bits) { return Array.from(words).filter((_, i) => bits & (1 << i)); }
  function spoken(bits) { return set(D.meanings, bits).join(", "); }
  // Text with its marks, as badges.written does.
  function fill(node, text, bits, bound) {
    if (text === null) {
      node.appendChild(el("span", "unknown", "–")).title = spoken(bits) || "not known";
      return;
    }
    if (bound && bits & 1) {
      node.appendChild(el("span", "", "≥" + NARROW)).title = "at least";
      bits &= ~1;
    }
    node.append(text);
    if (bits) node.appendChild(el("sup", "", set("!~s?", bits).join(""))).title = spoken(bits);
  }
  function device(k) { return D.devices ? D.devices[D.device[k]] : ""; }
  // As eprof/page/packed.py wrote it: the label itself, or which template arguments it has.
  function label(k) {
    if (typeof D.labels[k] === "string") return D.labels[k];
    let [, name, rest] = /^(?:void )?([^<(]*)[<(]?([^]*)/.exec(D.names[k]), inside = rest.split(", ");
    return D.labels[k].length ? name + "<" + D.labels[k].map(place => inside[place]).join(", ") + ">" : name;
  }
  function countOf(word, k) { return D.counts[word.name][k]; }
  function energyOf(word, k) {
    if (D.energies[word.name]) return D.energies[word.name][k];
    let n = countOf(word, k);
    return n === 0 ? 0 : n === null || word.price === null ? null : n * word.price;
  }
  function groupsOf(k) {
    let sums = {};
    if (measure !== "total") return [["plain", value(measure, k) || 0]];
    D.words.forEach(word => { sums[word.group] = (sums[word.group] || 0) + (energyOf(word, k) || 0); });
    if (!leave) sums.constant = number("constant", k) || 0;
    return D.groups.filter(group => sums[group] > 0).map(group => [group, sums[group]]);
  }

  // A column as eprof/page/packed.py wrote it.
  function unpacked(all) {
    for (const key in all) {
      const [width, figures, powers, exceptions] = all[key];
      all[key] = Array.from(powers, (power, k) => power === "!" ? null : k in exceptions ? exceptions[k]
        : +(figures[k * width] + "." + figures.slice(k * width + 1, (k + 1) * width) + "e" + (power.charCodeAt(0) - 78)));
    }
  }

  // ---- the table: a window of rows between two spacers
  function setUpTable() {
    leave = "above" in id("one-facts").dataset;
    [D.numbers, D.counts, D.energies].forEach(unpacked);
    D.numbers.launches = D.launches;
    D.columns = D.columns.map(([key, kind, unit, bound], i) => ({ key, kind, unit, bound, label: heads()[i].textContent }));
    D.words = D.words.map(([name, label, group, unit, price, counted, mask]) => ({
      name, label, group, unit, price, counted, mask, family: unit === "byte" ? "data" : "computation"
    }));
    D.names = D.names.reduce((all, part, i) => { if (i % 2) all.push(D.heads[D.names[i - 1]] + part); return all; }, []);
    count = D.names.length; measure = sortKey = D.measure;
    order = D.order || Array.from({ length: count }, (_, i) => i);
    chosen = order[0];
    box = id("scroll"); body = document.querySelector("#kernels-table tbody");
    heads().forEach(th => {
      let button = el("button", "", th.textContent), key = th.dataset.key;
      button.type = "button";
      if (key === "sum") return;
      th.textContent = "";
      th.appendChild(button);
      button.addEventListener("click", () => {
        sortUp = sortKey === key ? !sortUp : key === "name" || key === "device";
        sortKey = key;
        refresh(true);
      });
    });
    setUpTools();
    box.addEventListener("scroll", () => { draw(false); });
    box.addEventListener("keydown", onKey);
    document.addEventListener("click", onClick);
    addEventListener("hashchange", followLink);
    addEventListener("beforeprint", () => { box.scrollTop = 0; draw(true); });
    addEventListener("resize", () => { draw(false); });
    refresh(false);
    markChosen();
    followLink();
  }
  function setUpTools() {
    if (!id("tools")) return;
    id("tools").hidden = false;
    let timer = 0;
    id("filter").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(filter, 60); });
    function leaveOut() { leave = id("leave").checked; refresh(true); if (D.whole.total) show(chosen); }
    if (id("leave")) id("leave").addEventListener("change", leaveOut);
    if (id("leave") && id("leave").checked) leaveOut();
    id("copy").addEventListener("click", copy);
  }
  function filter() { query = id("filter").value.toLowerCase(); refresh(true); }
  function raw(key, k, i) {
    return key === "name" ? D.names[k] : key === "device" ? device(k) : key === "sum" ? over(running[i], wholeAmount()[0]) : value(key, k);
  }
  function refresh(rewind) {
    let keys = {}, up = sortUp ? 1 : -1;
    shown = order.filter(k => !query || D.names[k].toLowerCase().indexOf(query) >= 0);
    shown.forEach(k => { keys[k] = raw(sortKey, k); });
    shown.sort((a, b) => {
      let x = keys[a], y = keys[b];
      if (x === null || y === null) return (x === null) - (y === null) || a - b;
      return x < y ? -up : x > y ? up : a - b;
    });
    let sum = 0;
    scale = 0;
    running = shown.map(k => { sum += number(main(), k) || 0; return sum; });
    order.forEach(k => { scale = Math.max(scale, number(main(), k) || 0); });
    heads().forEach(th => {
      if (th.dataset.key === sortKey) th.setAttribute("aria-sort", sortUp ? "ascending" : "descending");
      else th.removeAttribute("aria-sort");
    });
    id("kernels-table").setAttribute("aria-rowcount", shown.length + 1);
    if (rewind) box.scrollTop = 0;
    status(sum);
    draw(true);
  }
  function status(sum) {
    let node = id("count"), all = wholeAmount(), unit = { total: "J", time: "s", dram: "B", instructions: "" }[measure];
    if (!node) return;
    node.textContent = grouped(String(shown.length)) + " of " + grouped(String(count)) + " " + D.columns[0].label.toLowerCase() + "s";
    if (all[0] === null) return;
    let bits = shown.reduce((bits, k) => bits | mark(main(), k), 0);
    if (shown.length === count) bits |= all[1];
    node.append(", ");
    fill(node, quantity(sum, unit), bits, true);
    node.append((measure === "instructions" ? " instructions" : "") + " (" + percent(over(sum, all[0]) || 0) + ")");
  }
  function spacer(rows) {
    let tr = el("tr", "gap"), td = tr.appendChild(el("td"));
    tr.setAttribute("aria-hidden", "true");
    td.colSpan = D.columns.length;
    td.style.height = rows * ROW + "px";
    return tr;
  }
  function draw(anew) {
    let first = Math.max(0, Math.min(Math.floor(box.scrollTop / ROW) - 10, shown.length - 40));
    if (!anew && first === from) return;
    from = first;
    let rows = document.createDocumentFragment(), last = Math.min(shown.length, first + 40), held = body.contains(document.activeElement);
    if (first > 0) rows.appendChild(spacer(first));
    for (let i = first; i < last; i++) rows.appendChild(row(i));
    if (last < shown.length) rows.appendChild(spacer(shown.length - last));
    if (!shown.length) {
      let none = rows.appendChild(el("tr")).appendChild(el("td", "k-name muted", "No name has this in it."));
      none.colSpan = D.columns.length;
    }
    body.textContent = "";
    body.appendChild(rows);
    if (held) focusChosen();
  }
  function row(i) {
    let k = shown[i], tr = el("tr");
    tr.setAttribute("aria-rowindex", i + 2);
    if (k === chosen) tr.setAttribute("aria-current", "true");
    D.columns.forEach(column => {
      if (column.kind === "name") {
        let th = el("th", "k-name"), button = th.appendChild(el("button", "name", label(k)));
        th.scope = "row"; button.type = "button"; button.title = D.names[k]; button.dataset.kernel = k;
        button.tabIndex = k === chosen ? 0 : -1;
        tr.appendChild(th);
      } else tr.appendChild(cell(column, k, i));
    });
    return tr;
  }
  function cell(column, k, i) {
    let td = el("td", "k-" + column.kind), key = column.key, share = column.kind === "share" || column.kind === "sum";
    const x = raw(key, k, i);
    if (key === "device") td.textContent = x;
    else fill(td, x === null ? null : written(share ? "share" : column.kind, column.unit, x), marksOf(key, k), !share && column.bound);
    if (column.kind === "main") td.appendChild(mini(k));
    return td;
  }
  function mini(k) {
    let node = svg("svg", { "class": "mini", width: 60, height: 8, "aria-hidden": "true" }), at = 0;
    groupsOf(k).forEach(part => {
      let width = scale ? 100 * part[1] / scale : 0;
      node.appendChild(svg("rect", { "class": "c-" + part[0], x: at.toFixed(2) + "%", width: width.toFixed(2) + "%" }));
      at += width;
    });
    return node;
  }

  // ---- choosing a kernel
  function onClick(event) {
    const near = event.target.closest("[data-kernel],[data-filter],#kernels-table tbody tr");
    const button = near && (near.tagName === "TR" ? near.querySelector("[data-kernel]") : near);
    if (!button) return;
    if (button.dataset.filter !== undefined) return filterFor(button.dataset.filter);
    choose(+button.dataset.kernel);
    if (!box.contains(near)) id("kernel").scrollIntoView();
  }
  function filterFor(text) {
    id("filter").value = text;
    filter();
    id("table").scrollIntoView();
    id("filter").focus({ preventScroll: true });
  }
  function onKey(event) {
    let step = { ArrowDown: 1, ArrowUp: -1, PageDown: 14, PageUp: -14, Home: -count, End: count }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("thead") || !shown.length) return;
    event.preventDefault();
    let at = shown.indexOf(chosen);
    at = at < 0 ? 0 : Math.max(0, Math.min(shown.length - 1, at + step));
    choose(shown[at]);
    let above = at * ROW, below = above + 2 * ROW - box.clientHeight;
    if (box.scrollTop > above) box.scrollTop = above;
    else if (box.scrollTop < below) box.scrollTop = below;
    draw(true);
    focusChosen();
  }
  function focusChosen() {
    let button = body.querySelector("[aria-current] button");
    if (button) button.focus({ preventScroll: true }); else box.focus({ preventScroll: true });
  }
  function choose(k) {
    chosen = k;
    show(k);
    draw(true);
    markChosen();
    const link = () => "#kernel=" + encodeURIComponent(D.names[k]) + (D.devices ? "&device=" + encodeURIComponent(device(k)) : "");
    try { history.replaceState(null, "", link()); } catch (e) { /* the page still works without a link */ }
  }
  function markChosen() {
    document.querySelectorAll(".row [data-kernel],.dot").forEach(button => {
      if (+button.dataset.kernel === chosen) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    });
  }
  function followLink() {
    let wanted = "";
    try { wanted = decodeURIComponent(location.hash); } catch (e) { return; }
    const at = order.find(k => wanted === "#kernel=" + D.names[k] || wanted === "#kernel=" + D.names[k] + "&device=" + device(k));
    if (at === undefined) return;
    choose(at);
    id("kernel").scrollIntoView();
  }

  // ---- one kernel
  const FAMILIES = [["computation", "Instructions", "instruction", "instructions"], ["data", "Bytes", "byte", "bytes"]];
  function show(k) {
    const facts = id("one-facts"), panels = id("one-panels"), joules = {}, n = key => number(key, k);
    id("one-name").textContent = D.names[k];
    id("one-device").textContent = device(k);
    facts.textContent = panels.textContent = "";
    function fact(label, key, kind, unit, bound, x) {
      if (x === null) return;
      const div = facts.appendChild(el("div")), bits = mark(key, k) | (key === "constant" && mark("total", k));
      div.appendChild(el("dt", "", label));
      fill(div.appendChild(el("dd")), written(kind, unit, x), bits, bound);
    }
    const key = leave ? "above" : "total";
    fact("Energy" + (leave ? ABOVE : ""), key, "q", "J", true, n(key));
    if (!leave) {
      fact("Constant power", "constant", "share", "", false, over(n("constant"), n("total")));
      fact("Mean power", "power", "q", "W", true, n("power"));
      fact("Energy per flop", "perflop", "q", "J", true, over(n("perflop"), 1e12));
    }
    fact("Time", "time", "q", "s", true, n("time"));
    fact("Calls", "launches", "whole", "", true, n("launches"));
    fact("Flop per DRAM byte", "intensity", "plain", "", false, n("intensity"));
    FAMILIES.forEach(family => drawPanel(k, family, joules, panels));
    const [group, most] = Object.entries(joules).reduce((best, each) => each[1] > best[1] ? each : best, ["", 0]);
    id("one-message").textContent = !most ? "" : "Most above constant power: " + D.groupLabels[group] + ", " +
      quantity(most, "J") + " of " + quantity(n("computation") + n("data"), "J") + ".";
  }
  function linesOf(k, family) {
    let whole = 0;
    D.words.forEach(word => { if (word.counted && word.unit === family[2]) whole += countOf(word, k) || 0; });
    return D.words.filter(word => word.family === family[0] && pick(D.countMarks[word.name], k) >= 0).map(word => {
      const n = countOf(word, k), e = energyOf(word, k);
      return {
        word: word, n: n, e: e, bits: n === 0 ? 0 : pick(D.countMarks[word.name], k),
        ofCount: word.counted ? over(n, whole) : null, ofEnergy: over(e, number(family[0], k))
      };
    });
  }
  function drawPanel(k, family, joules, panels) {
    const lines = linesOf(k, family), free = l => measure === "total" && l.n && l.e === 0, some = lines.filter(l => (l.n || l.e) && !free(l)), energy = number(family[0], k);
    if (!lines.length) return;
    let top = 0.0001;
    some.forEach(l => {
      top = Math.max(top, l.ofCount, l.ofEnergy);
      joules[l.word.group] = (joules[l.word.group] || 0) + (l.e || 0);
    });
    const panel = panels.appendChild(el("div", "panel")), head = panel.appendChild(el("h3", "", family[1]));
    const bits = energy === null ? 0 : mark(family[0], k);
    if (energy !== null) fill(head, quantity(energy, "J"), bits, true, head.append(" – "));
    some.forEach(l => panel.appendChild(meter(l, 100 / top, family, bits)));
    [["At no price of their own: ", free], ["Counted, and none: ", l => l.n === 0 && !l.e], ["Not counted: ", l => l.n === null && !l.e]].forEach(([what, is]) => {
      const labels = lines.filter(is).map(l => l.word.label + (is === free ? " (" + amountOf(l) + ")" : ""));
      if (labels.length) panel.appendChild(el("p", "none", what + labels.join(", ") + "."));
    });
  }
  function amountOf(l) { return quantity(l.n, { byte: "B", flop: "flop" }[l.word.unit] || ""); }
  function meter(l, by, family, bits) {
    const line = el("div", "meter"), label = line.appendChild(el("span", "label", l.word.label)), small = label.appendChild(el("small"));
    const priced = measure === "total", share = l.ofEnergy === null ? null : percent(l.ofEnergy), ofCount = percent(l.ofCount || 0);
    const amount = l.n === null ? null : amountOf(l), counting = l.bits & l.word.mask & ~1;
    let own = l.e === null || l.e || l.bits & 1 ? l.bits : 0;
    if (D.metered && l.e !== null && own & 1) own = own & ~1 | 2;
    const node = svg("svg", {
      "class": "bar", height: 18, role: "img",
      "aria-label": l.word.label + ": " + (priced ? (share || "an unknown share") + " of the energy, " : "") + ofCount + " of the " + family[3]
    });
    const bar = (cls, x) => { if (x) node.appendChild(svg("rect", { "class": cls, width: (by * x).toFixed(2) + "%" })); };
    bar("c-" + l.word.group + " edge", priced ? l.ofEnergy : l.ofCount);
    if (priced) bar("outline", l.ofCount);
    line.appendChild(node);
    const first = line.appendChild(el("span", "num")), second = line.appendChild(el("span", "num share"));
    if (l.n === null) small.textContent = "not counted";
    else if (priced) {
      fill(small, amount, counting, true);
      const unpriced = l.e === null && l.bits & 1;
      if (l.ofCount !== null) small.append(" · " + ofCount + (unpriced ? "" : " of the count"));
      if (unpriced) small.append(" · no price");
    }
    if (priced) fill(first, l.e === null ? null : quantity(l.e, "J"), own, true);
    else fill(first, amount, counting, true);
    if (priced) fill(second, share, own | (share ? bits : 0), false);
    else fill(second, l.ofCount === null ? null : ofCount, counting, false);
    return line;
  }

  // ---- what if, and the dots of the kernels that the page does not draw
  function setUpSliders() {
    const box = id("sliders"), w = D.what, whole = w.constant + w.dram + w.cycles + w.other;
    function say() {
      const [power, bytes, time] = Array.from(box.querySelectorAll("input"), input => {
        input.nextElementSibling.textContent = percent(input.value / 100);
        return input.value / 100;
      });
      const e = (w.constant * power + w.cycles) * time + w.dram * bytes + w.other, line = box.lastElementChild;
      line.textContent = "Modelled: ";
      fill(line, quantity(e, "J"), w.marks | 2, true);
      line.append(Math.abs(e / whole - 1) < 5e-4 ? ", as it is." : ", " + percent(Math.abs(e / whole - 1)) + (e < whole ? " less." : " more."));
    }
    box.hidden = false;
    box.addEventListener("input", say);
    say();
  }
  function drawDots(area) {
    const [x, y] = [area.dataset.x, area.dataset.y].map(range => range.split(" ").map(Math.log));
    const path = svg("path", { "class": "many" }), wide = svg("svg", { width: "100%", height: area.getAttribute("height") - 32, y: 8, viewBox: "0 0 100 100", preserveAspectRatio: "none" });
    let d = "";
    order.forEach(k => {
      const n = key => number(key, k), flops = over(n("total"), over(n("perflop"), 1e12)), at = n("intensity");
      const v = { flop_per_s: over(flops, n("time")), flop_per_j: over(1e12, n("perflop")), power_w: n("power") }[area.dataset.plot];
      const left = at && v && (Math.log(at) - x[0]) / (x[1] - x[0]), up = left && (Math.log(v) - y[0]) / (y[1] - y[0]);
      if (left > 0 && left < 1 && up > 0 && up < 1) d += "M" + (100 * left).toFixed(1) + " " + (100 - 100 * up).toFixed(1) + "h0";
    });
    path.setAttribute("d", d);
    path.setAttribute("vector-effect", "non-scaling-stroke");
    wide.append(path);
    area.prepend(wide);
  }

  // ---- copy
  function quoted(x) {
    let text = x === null ? "" : String(x);
    if (typeof x === "string" && /^[=+\-@\t\r]/.test(text)) text = "'" + text;
    return '"' + text.split('"').join('""') + '"';
  }
  function csv() {
    const named = c => c.label + (left(c.key) !== c.key || leave && c.key === measure ? ABOVE : "");
    let head = D.columns.map(c => quoted(named(c) + (c.unit ? " (" + c.unit + ")" : ""))).concat(quoted("Marks"));
    let lines = shown.map((k, i) => {
      const cells = D.columns.map(c => raw(c.key, k, i)).map(x => quoted(typeof x === "number" ? +x.toPrecision(4) : x));
      return cells.concat(quoted(spoken(mark(main(), k)))).join(",");
    });
    return [head.join(",")].concat(lines).join("\r\n") + "\r\n";
  }
  function copy() {
    let text = csv(), button = id("copy");
    const said = words => { button.textContent = words; setTimeout(() => { button.textContent = "Copy as CSV"; }, 1600); };
    const byHand = () => {
      id("csv").hidden = false;
      id("csv").value = text;
      id("csv").select();
      said("Press Ctrl+C");
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => said("Copied"), byHand);
    else byHand();
  }
}());
