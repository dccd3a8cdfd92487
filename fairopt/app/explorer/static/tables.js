// Tables. An editable field has a key (`users/3/weight`), and calls `change(key, value)` with the typed value.

const MOST_ROWS = 200;

function field(key, value, label, change, locked, size = 6) {
  return el("td", { class: "fo-cell" }, el("input", { "data-key": key, "data-base": String(value), value: rounded(value), size,
    "aria-label": label, inputmode: "decimal", autocomplete: "off", disabled: locked,
    onchange: (event) => change(key, event.target.value.trim()) }));
}

// A number of the cluster is shown with six digits; a typed number is shown as it was typed.
const rounded = (value) => (value === "" || !Number.isFinite(Number(value)) ? String(value) : String(Number(Number(value).toPrecision(6))));

function toggle(key, label, change, locked, on = true) {
  return el("input", { type: "checkbox", "data-key": key, "data-base": String(on), checked: on, "aria-label": label, disabled: locked,
    onchange: (event) => change(key, event.target.checked) });
}

const heads = (...names) => el("thead", {}, el("tr", {}, names.flat().map((name) => el("th", { scope: "col" }, name))));
const caption = (text, section) => el("caption", {}, text, el("span", { class: "fo-error", "data-section": section }));
const scrolled = (label, table) => el("div", { class: "fo-scroll", tabindex: 0, role: "region", "aria-label": label }, table);

// One row per user: switch, demands, rates if there are any, weight and task limit, and then the allocation.
function userTable(start, change, locked) {
  const body = el("tbody"), groups = el("tbody"), { running, held: holds, rates } = start;
  const table = el("table", { class: "fo-table" }, caption("Users", "users"),
    heads("user", start.resources.map((r) => `${r} a task`), rates ? "work of a task" : [], "weight", "task limit", running ? ["running", "next one held by"] : [], running ? "entitled" : "tasks", "share", running ? "entitled limited by" : "limited by"), body, groups);
  const rows = new Map();
  function row(n) {
    if (rows.has(n)) return rows.get(n);
    const user = start.users[n], cells = [0, 1].map(() => el("td", { class: "fo-number" })).concat(el("td"));
    const made = el("tr", {},
      el("th", { scope: "row" }, el("label", {}, toggle(`users/${n}/on`, `${user.name} takes part`, change, locked), el("i", { class: "fo-swatch" }), short(user.name, 40))),
      user.demand.map((d, r) => field(`users/${n}/demand/${r}`, d, `${start.resources[r]} a task of ${user.name}`, change, locked)),
      rates ? el("td", { class: "fo-why" }, rates[n]) : null,
      field(`users/${n}/weight`, user.weight, `weight of ${user.name}`, change, locked),
      field(`users/${n}/max_tasks`, user.max_tasks, `task limit of ${user.name}, empty for none`, change, locked),
      running ? [el("td", { class: "fo-number" }, digits(running[n])), el("td", { class: "fo-why" }, holds[n])] : null, cells);
    rows.set(n, { made, cells, swatch: made.querySelector(".fo-swatch") });
    return rows.get(n);
  }
  let listed = "";
  function show(view, touched) {
    const { of, band, tasks, share, held } = view.users;
    const all = start.users.length <= MOST_ROWS ? start.users.map((_, n) => n) : [...new Set([...of, ...touched])].sort((a, b) => a - b);
    if (String(all) !== listed) {
      const focus = document.activeElement && body.contains(document.activeElement) ? document.activeElement : null;
      body.replaceChildren(...all.map((n) => row(n).made));
      if (focus && body.contains(focus)) focus.focus();
      listed = String(all);
    }
    const at = new Map(of.map((n, k) => [n, k]));
    for (const n of all) {
      const { made, cells, swatch } = row(n), k = at.get(n);
      made.classList.toggle("fo-off", k === undefined);
      const values = k === undefined ? ["–", "–", "–"] : [digits(tasks[k]), percent(share[k]), held[k]];
      values.forEach((text, c) => { if (cells[c].textContent !== text) cells[c].textContent = text; });
      const style = k === undefined ? "" : `background: ${colour(view.bars, band[k])}`;
      if (swatch.getAttribute("style") !== style) swatch.setAttribute("style", style);
    }
    groups.replaceChildren(...view.users.groups.map((g) => el("tr", {},
      el("th", { scope: "row", colspan: start.resources.length + (running ? 5 : 3) + (rates ? 1 : 0) }, `${g.users.toLocaleString("en-US")} more users`),
      el("td", { class: "fo-number" }, digits(g.tasks)), el("td", { class: "fo-number" }, `${percent(g.least)} to ${percent(g.most)}`), el("td", {}, g.held))));
  }
  return { node: scrolled("Users", table), show };
}

// One row per entry of identical servers: switch, count, capacities.
function serverTable(start, change, locked) {
  const rows = start.servers.slice(0, MOST_ROWS).map((server, e) => el("tr", {},
    el("th", { scope: "row" }, el("label", {}, toggle(`servers/${e}/on`, `${server.name} is used`, change, locked), short(server.name, 40))),
    field(`servers/${e}/count`, server.count, `how many of ${server.name}`, change, locked, 5),
    server.capacity.map((c, r) => field(`servers/${e}/capacity/${r}`, c, `${start.resources[r]} of ${server.name}`, change, locked, 8))));
  const left = start.servers.length - rows.length;
  const table = el("table", { class: "fo-table" }, caption("Servers", "servers"), heads("server", "count", start.resources), el("tbody", {}, rows),
    left > 0 ? el("tfoot", {}, el("tr", {}, el("td", { colspan: 9 }, `${left.toLocaleString("en-US")} more kinds of servers, not shown`))) : null);
  return scrolled("Servers", table);
}

// Placement constraints, built when the section is opened.
function placement(start, change, locked, sync) {
  if (!start.placement) return null;
  const box = el("details", { class: "fo-placement", ontoggle: () => {
    if (!box.open || box.querySelector("table")) return;
    const may = (n, e) => (start.eligible ? start.eligible[n][e] === "1" : true);
    const rows = start.users.map((user, n) => el("tr", {}, el("th", { scope: "row" }, short(user.name, 30)),
      start.servers.map((server, e) => el("td", {}, toggle(`users/${n}/eligible/${e}`, `${user.name} may run on ${server.name}`, change, locked, may(n, e))))));
    box.append(scrolled("Placement", el("table", { class: "fo-table" }, heads("user", start.servers.map((s) => short(s.name, 14))), el("tbody", {}, rows))));
    sync();
  } }, el("summary", {}, "Placement: who may run where"));
  return box;
}

// Comparison of mechanisms; rows arrive one by one.
function sideTable(titles, measures) {
  const rows = new Map();
  const body = el("tbody");
  const table = el("table", { class: "fo-table" }, el("caption", {}, "Mechanisms side by side"), heads("mechanism", measures.map((m) => m[1])), body);
  const note = el("p", { class: "fo-note", hidden: true }, "* solved for all servers as one: what nobody could place");
  function show(name, row) {
    if (!rows.has(name)) { rows.set(name, el("tr")); body.append(rows.get(name)); }
    const cells = !row ? measures.map(() => el("td", { class: "fo-number" }, "…"))
      : row.status || row.error ? [el("td", { colspan: measures.length, class: "fo-why" }, short(row.status || row.error, 120))]
        : measures.map(([key, , form]) => el("td", { class: "fo-number" }, form(row[key])));
    if (row && row.pooled) note.hidden = false;
    rows.get(name).replaceChildren(el("th", { scope: "row" }, (row && row.mechanism) || titles.get(name) || name, row && row.pooled ? " *" : ""), ...cells);
  }
  return { node: el("div", {}, scrolled("Mechanisms side by side", table), note), show };
}

// Table of gains from 1% more of a resource; `show(null)` greys it out until the next reply arrives.
function moreTable() {
  const body = el("tbody"), note = el("p", { class: "fo-note" }, "…");
  const table = el("table", { class: "fo-table" }, el("caption", {}, "1% more of a resource: who gains"), heads("on", "more", "tasks", "who gains most"), body);
  const node = el("div", { class: "fo-more" }, scrolled("1% more of a resource: who gains", table), note);
  function show(reply) {
    node.classList.toggle("fo-off", !reply);
    if (!reply) return;
    note.textContent = reply.error || reply.note;
    body.replaceChildren(...(reply.rows || []).map(([where, what, tasks, who]) => el("tr", {},
      el("th", { scope: "row" }, short(where, 30)), el("td", {}, what), el("td", { class: "fo-number" }, `${tasks > 0 ? "+" : ""}${digits(tasks, 3)}`), el("td", { class: "fo-why" }, who))));
  }
  return { node, show };
}

// Comparison of two states: measures, and the users whose tasks differ most.
function comparison(first, second, start) {
  const rows = measuresOf(start).map(([key, label, form]) => {
    const [a, b] = [first.view.measures[key], second.view.measures[key]];
    return [label, form(a), form(b), a && b !== null ? `${b >= a ? "+" : "−"}${Math.abs(100 * (b / a - 1)).toFixed(1)}%` : "–"];
  });
  const tasks = (pin) => new Map(pin.view.users.of.map((n, k) => [n, pin.view.users.tasks[k]]));
  const [before, after] = [tasks(first), tasks(second)];
  const changed = [...new Set([...before.keys(), ...after.keys()])].map((n) => {
    const [a, b] = [before.get(n) ?? 0, after.get(n) ?? 0];
    return { n, a, b, by: Math.abs(b - a) / Math.max(a, b, 1e-12) };
  }).filter((one) => one.by > 1e-4).sort((p, q) => q.by - p.by).slice(0, 10);
  const users = changed.map(({ n, a, b }) => [`${short(start.users[n].name, 34)}: tasks`, digits(a), digits(b), a ? `${b >= a ? "+" : "−"}${Math.abs(100 * (b / a - 1)).toFixed(1)}%` : "new"]);
  const line = ([label, ...cells]) => el("tr", {}, el("th", { scope: "row" }, label), cells.map((text) => el("td", { class: "fo-number" }, text)));
  return scrolled("Two states compared", el("table", { class: "fo-table" }, el("caption", {}, "Two states compared"),
    heads("", first.label, second.label, "change"), el("tbody", {}, rows.map(line), users.map(line))));
}
