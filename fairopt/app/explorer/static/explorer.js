// The explorer: the state, questions about it, and the page. `model` is the interface to the host: `get("start")`,
// `get("host")` and `send({id, question})`; replies arrive as "msg:custom".

// SLOW: milliseconds without an answer after which the nearest known answer is shown. REST: milliseconds without a change
// of the state after which background questions are sent.
const SLOW = 60, REST = 150;

function render({ model, el: host }) {
  const start = model.get("start"), still = model.get("host") === "page";
  const ask = asker(model, (count) => root.setAttribute("data-asked", later ? "later" : String(count)));
  const shownMeasures = measuresOf(start);
  const kinds = new Map(start.mechanisms.map((m) => [m.name, m]));
  const titles = new Map(start.mechanisms.map((m) => [m.name, m.title]));
  const hasAlpha = (name) => Boolean(kinds.get(name) && kinds.get(name).alpha);
  let good = start.state, wanted = good, shown = null, took = 0, drawings = 0, sliding = false, bridged = null, later = 0, synced = null;
  const past = [], future = [], paths = new Map(), pins = { A: null, B: null };

  // Elements of the page.
  const root = el("section", { class: "fo-explorer", "aria-label": `Explorer of ${start.source}` });
  const status = el("p", { class: "fo-status", role: "status" });
  const proof = el("p", { class: "fo-proof" }), several = el("p", { class: "fo-several" }), notes = el("p", { class: "fo-note" });
  const mechanism = el("select", { "data-key": "mechanism", onchange: () => go({ ...wanted, mechanism: mechanism.value }) },
    start.mechanisms.map((m) => el("option", { value: m.name }, m.title)));
  const slider = el("input", { type: "range", min: 0, max: 1, step: 0.0025, "aria-label": "alpha, from 0 to infinity", "data-role": "slider",
    oninput: () => { const first = !sliding; sliding = true; go({ ...wanted, alpha: near(alphaAt(Number(slider.value))) }, first); },
    onchange: () => { sliding = false; } });
  const number = el("input", { "data-key": "alpha", size: 7, "aria-label": "alpha as a number, or inf", inputmode: "decimal", autocomplete: "off",
    onchange: () => go({ ...wanted, alpha: near(number.value.trim()) }) });
  const button = (text, act, more = {}) => el("button", { type: "button", onclick: act, ...more }, text);
  const undo = button("Undo", () => step(past, future)), redo = button("Redo", () => step(future, past));
  const pinA = button("Pin as A", () => pin("A")), pinB = button("Pin as B", () => pin("B"));
  const levels = el("select", { "data-key": "weights", disabled: still, onchange: () => edit("weights", levels.value) },
    el("option", { value: "each" }, "for each user"), el("option", { value: "shared" }, "shared in its group"));
  const bars = el("div", { class: "fo-figure" }), curves = el("div", { class: "fo-figure" }), gets = el("div", { class: "fo-figure" });
  const users = userTable(start, edit, still), side = sideTable(titles, shownMeasures), more = moreTable();
  const compared = el("div", { class: "fo-compared" });
  const code = el("div", { class: "fo-code", hidden: true });
  const labelled = (text, ...nodes) => el("label", { class: "fo-labelled" }, text, ...nodes);
  const alphaPart = el("div", { class: "fo-alpha" }, labelled("alpha ", number), slider);
  root.append(
    el("header", {}, el("h2", {}, start.source), el("div", { class: "fo-controls" }, labelled("mechanism ", mechanism), alphaPart),
      el("div", { class: "fo-controls fo-buttons" }, undo, redo, pinA, pinB, button("Copy as Python", copy), button("Save cluster file", save),
        start.grouped ? labelled("weight of a group ", levels) : null)),
    status, proof, several, notes, code,
    still ? el("p", { class: "fo-note" }, "This page is a file: alpha and mechanism move, tables do not. To edit: fairopt explore FILE.") : el("span"),
    el("div", { class: "fo-grid2" },
      el("div", {}, el("h3", {}, "What is used, by whom"), bars), el("div", {}, el("h3", {}, "Efficiency and fairness against alpha"), curves, el("h3", {}, "Who gets what against alpha"), gets)),
    compared, users.node, el("div", { class: "fo-grid2" }, serverTable(start, edit, still), more.node), side.node,
    placement(start, edit, still, () => { synced = null; sync(wanted); }) || el("span"),
    el("p", { class: "fo-note" }, "Share: a user's tasks as a part of what the whole cluster could run of them alone (dominant share). Jain's index: 1 where all weighted shares are equal."));
  root.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !(event.target.matches && event.target.matches("input:not([type])"))) {
      event.preventDefault();
      if (event.shiftKey) step(future, past); else step(past, future);
    }
  });
  // Without this attribute JupyterLab takes keys in the explorer as its shortcuts: an `a` on the slider inserts a cell.
  root.addEventListener("focusin", (event) => event.target.setAttribute("data-lm-suppress-shortcuts", "true"));
  host.replaceChildren(root);

  // A page in a file has answers for `start.alphas` only.
  function near(alpha) {
    if (!still || Number.isNaN(asNumber(alpha))) return alpha;
    return start.alphas.reduce((a, b) => (Math.abs(place(b) - place(alpha)) < Math.abs(place(a) - place(alpha)) ? b : a));
  }

  function edit(key, value) {
    const edits = { ...wanted.edits };
    const input = root.querySelector(`[data-key="${key}"]`);
    const base = input && input.getAttribute("data-base");
    if (input && (String(value) === base || String(value) === rounded(base))) delete edits[key]; else edits[key] = value;
    clear(key);
    go({ ...wanted, edits });
  }

  function step(from, to) {
    if (!from.length) return;
    to.push(wanted);
    root.querySelectorAll("[data-key]").forEach((node) => clear(node.getAttribute("data-key")));
    go(from.pop(), false, true);
  }

  // Change to another state. If the answer takes long, the known view at the nearest alpha is shown until it arrives.
  function go(next, remember = true, kept = false) {
    if (JSON.stringify(next) === JSON.stringify(wanted) && shown) { sync(next); return; }
    if (remember) past.push(wanted);
    if (remember && !kept) future.length = 0;
    if (String(next.alpha) !== String(wanted.alpha)) clear("alpha");
    wanted = next;
    rest();
    sync(wanted);
    const path = paths.get(line(next)), exact = path && path.get(String(next.alpha));
    if (exact) { ask.forget(); ask.must({ ask: "now", state: next }, () => {}); adopt(next, exact); return; }
    const bridge = () => {
      if (wanted !== next || !path || !path.size || Number.isNaN(asNumber(next.alpha))) return;
      const nearest = [...path.keys()].reduce((a, b) => (Math.abs(place(b) - place(next.alpha)) < Math.abs(place(a) - place(next.alpha)) ? b : a));
      bridged = next;
      paint(path.get(nearest), next, `the nearest answer known, at alpha ${alphaText(nearest)}`);
    };
    root.classList.add("busy");
    const began = performance.now(), timer = took > SLOW ? bridge() : setTimeout(bridge, SLOW);
    ask.state({ ask: "answer", state: next }, (reply) => {
      took = performance.now() - began;
      clearTimeout(timer);
      if (reply.error) refuse(reply, next); else if (wanted === next) adopt(next, reply);
      else {  // the state has changed since; this answer is shown unless a view at the nearest alpha is shown already
        good = next;
        if (bridged !== wanted && line(next) === line(wanted)) { shown = { state: next, view: reply }; paint(reply, next); }
      }
    });
  }

  // Show the message on an invalid input beside its field, and return to the last valid state, keeping other changes.
  function refuse(reply, asked) {
    if (past.length) past.pop();
    synced = null;
    say(reply.where, reply.error);
    const wrong = root.querySelector("[aria-invalid]"), text = wrong && wrong.value;
    const next = without(reply.where, asked);
    if (JSON.stringify(next) !== JSON.stringify(good)) go(next, false, true);
    else {
      ask.forget();
      wanted = good;
      root.classList.remove("busy");
      if (shown) { paint(shown.view, good); queue(); } else sync(good);
      status.textContent = `Not taken: ${reply.error}`;
    }
    if (wrong) wrong.value = text;
  }

  // The wanted state without the invalid edit `where`; if `where` was not edited, without all new edits.
  function without(where, asked) {
    if (where === "alpha") return { ...wanted, alpha: asked.alpha === wanted.alpha ? good.alpha : wanted.alpha };
    if (where === "mechanism") return { ...wanted, mechanism: asked.mechanism === wanted.mechanism ? good.mechanism : wanted.mechanism };
    const changed = Object.keys(asked.edits).filter((key) => asked.edits[key] !== good.edits[key]);
    if (!changed.length) return good;
    const edits = { ...wanted.edits };
    for (const key of changed.includes(where) ? [where] : changed) {
      if (wanted.edits[key] !== asked.edits[key]) continue;
      if (key in good.edits) edits[key] = good.edits[key]; else delete edits[key];
    }
    return { ...wanted, edits };
  }

  function say(where, text) {
    const parts = where.split("/");
    let node = null;
    for (let k = parts.length; k > 0 && !node; k -= 1) {
      const key = parts.slice(0, k).join("/");
      node = root.querySelector(`[data-key="${key}"], [data-section="${key}"]`);
    }
    if (!node) return;
    if (node.matches("[data-section]")) { node.textContent = text; return; }
    const id = `fo-error-${where.replaceAll("/", "-")}`;
    clear(node.getAttribute("data-key"));
    node.setAttribute("aria-invalid", "true");
    node.setAttribute("aria-describedby", id);
    node.after(el("span", { class: "fo-error", id, role: "alert" }, text));
  }

  function clear(key) {
    root.querySelectorAll("[data-section]").forEach((node) => { node.textContent = ""; });
    const node = root.querySelector(`[data-key="${key}"]`);
    if (!node || !node.hasAttribute("aria-invalid")) return;
    synced = null;
    node.removeAttribute("aria-invalid");
    node.removeAttribute("aria-describedby");
    if (node.nextSibling && node.nextSibling.classList) node.nextSibling.remove();
  }

  // Set the fields to the values of the state; an invalid field keeps its text, so that it can be corrected.
  function sync(state) {
    mechanism.value = state.mechanism;
    number.value = number.hasAttribute("aria-invalid") ? number.value : state.alpha === "inf" ? "∞" : String(state.alpha);
    if (!Number.isNaN(asNumber(state.alpha)) && !sliding) slider.value = String(place(state.alpha));
    slider.setAttribute("aria-valuetext", `alpha ${alphaText(state.alpha)}`);
    alphaPart.classList.toggle("fo-off", !hasAlpha(state.mechanism));
    slider.disabled = number.disabled = !hasAlpha(state.mechanism);
    levels.value = state.edits.weights || "each";
    undo.disabled = !past.length;
    redo.disabled = !future.length;
    if (synced === state.edits) return;  // a large cluster has thousands of fields
    synced = state.edits;
    root.querySelectorAll("input[data-base]").forEach((node) => {
      const key = node.getAttribute("data-key"), base = node.getAttribute("data-base");
      const value = key in state.edits ? state.edits[key] : node.type === "checkbox" ? base : rounded(base);
      if (node.type === "checkbox") node.checked = value === true || value === "true";
      else if (!node.hasAttribute("aria-invalid") && node.value !== String(value)) node.value = String(value);
      node.classList.toggle("fo-edited", key in state.edits);
    });
  }

  const rest = () => { clearTimeout(later); later = 0; };
  const room = (node, most) => Math.max(300, Math.min(node.clientWidth || 520, most));
  const line = (state) => JSON.stringify([state.mechanism, state.edits]);

  function adopt(state, view) {
    good = state;
    root.classList.remove("busy");
    shown = { state, view };
    paint(view, state);
    rest();
    later = setTimeout(() => { later = 0; queue(); }, drawings > 1 ? REST : 0);
  }

  // Send background questions while the slider rests: answers at other alphas, the comparison of mechanisms, other
  // equilibria. alpha = 0 comes last, since its first answer takes longest, and the next move would wait for it.
  function queue() {
    const state = good, path = paths.get(line(state)) || new Map();
    if (!paths.has(line(state))) { paths.set(line(state), path); if (paths.size > 8) paths.delete(paths.keys().next().value); }
    const mine = () => line(good) === line(state);
    if (state.mechanism === "alphapf-vds") {
      ask.aside({ ask: "several", state }, (reply) => { if (good === state) several.textContent = [shown.view.equilibrium, reply.text].filter(Boolean).join(" "); });
    }
    const coarse = hasAlpha(state.mechanism) ? start.alphas.map((a, k) => [k === 0 ? 4 : k % 8 === 0 ? 0 : k % 4 === 0 ? 1 : k % 2 === 0 ? 2 : 3, a]).sort((p, q) => p[0] - q[0]) : [];
    const along = ([, alpha]) => {
      if (path.has(String(alpha))) return;
      ask.aside({ ask: "answer", state: { ...state, alpha } }, (reply) => {
        if (reply.error) return;
        path.set(String(alpha), reply);
        if (mine()) drawPath();
      });
    };
    coarse.filter(([level]) => level === 0).forEach(along);  // shown while an answer at a nearby alpha takes long
    for (const name of start.side) {
      ask.aside({ ask: "row", mechanism: name, state }, (row) => side.show(name, row));
    }
    ask.aside({ ask: "more", state }, (reply) => { if (good === state) more.show(reply); });
    coarse.filter(([level]) => level > 0).forEach(along);
  }

  function drawPath(wide = room(curves, 640)) {
    if (!shown || !hasAlpha(shown.state.mechanism)) { for (const node of [curves, gets]) node.replaceChildren(el("p", { class: "fo-note" }, "This mechanism has no alpha.")); return; }
    const path = paths.get(line(shown.state)) || new Map();
    const points = [...path].sort((p, q) => asNumber(p[0]) - asNumber(q[0]));
    curves.replaceChildren(drawCurves(points, shown.state.alpha, shown.view, wide, shownMeasures));
    gets.replaceChildren(drawTasks(points, shown.state.alpha, shown.view, wide));
  }

  function paint(view, state, instead = "") {
    const wide = [room(bars, 760), room(curves, 640)];  // read before any change, so that the page is laid out once
    bars.replaceChildren(drawBars(view, start, wide[0]));
    drawPath(wide[1]);
    users.show(view, Object.keys(state.edits).filter((key) => key.startsWith("users/")).map((key) => Number(key.split("/")[1])));
    sync(wanted);
    const m = view.measures;
    status.textContent = `${view.mechanism}: ${shownMeasures.slice(0, 4).map(([key, label, form]) => `${label} ${form(m[key])}`).join(", ")}${instead ? ` (${instead})` : ""}`;
    proof.textContent = view.certificate;
    proof.classList.toggle("fo-flagged", view.flagged);
    several.textContent = view.equilibrium;
    notes.textContent = [view.pooled ? "Solved for all servers as one: what nobody could place." : "", ...view.notes].filter(Boolean).join(" ");
    more.show(null);
    drawPins();
    drawings += 1;
    root.setAttribute("data-drawings", String(drawings));
  }

  const described = ({ state }) => `${titles.get(state.mechanism) || state.mechanism}${hasAlpha(state.mechanism) ? `, alpha ${alphaText(state.alpha)}` : ""}${Object.keys(state.edits).length ? `, ${Object.keys(state.edits).length} edits` : ""}`;

  function pin(letter) {
    if (!shown) return;
    pins[letter] = { ...shown, label: `${letter}: ${described(shown)}` };
    drawPins();
    status.textContent = `Pinned as ${letter}: ${described(shown)}`;
  }

  function drawPins() {
    if (!pins.A && !pins.B) return;
    const now = shown && { ...shown, label: `now: ${described(shown)}` };
    compared.replaceChildren(comparison(pins.A || now, pins.B || now, start));
  }

  function copy() {
    ask.must({ ask: "python", state: good }, ({ text, error }) => {
      if (error) { status.textContent = error; return; }
      code.hidden = false;
      code.replaceChildren(el("pre", { tabindex: 0, "aria-label": "Python code" }, text), button("Close", () => { code.hidden = true; }));
      const copied = () => { status.textContent = "Copied as Python."; };
      if (navigator.clipboard) navigator.clipboard.writeText(text).then(copied, () => { status.textContent = "Here is the Python code; the browser did not allow to copy it."; });
    });
  }

  function save() {
    ask.must({ ask: "file", state: good }, ({ text, error }) => {
      if (error) { status.textContent = error; return; }
      const link = el("a", { href: URL.createObjectURL(new Blob([text], { type: "application/toml" })), download: "cluster.toml" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
      status.textContent = "Saved as cluster.toml.";
    });
  }

  if (start.now) side.show("running", { mechanism: "running", ...start.now });
  for (const name of start.side) side.show(name, null);
  let width = 0;
  const resized = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(() => {
    if (shown && Math.abs(root.clientWidth - width) > 20) { width = root.clientWidth; bars.replaceChildren(drawBars(shown.view, start, room(bars, 760))); drawPath(); }
  });
  if (resized) resized.observe(root);
  const first = good;
  wanted = null;
  wanted = { ...first, alpha: NaN };
  go({ ...first }, false);
  return () => { if (resized) resized.disconnect(); rest(); ask.forget(); };
}
