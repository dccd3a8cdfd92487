// Charts: used parts of capacities per server and resource, and measures and tasks against alpha. Each chart has a
// description in words for screen readers.

// Used parts of capacities, stacked by bands of users. `start` has the names of resources.
function drawBars(view, start, width) {
  const { servers, bands, what, others, heights, there } = view.bars;
  const resources = start.resources;
  const count = servers.length * resources.length;
  const left = 38, top = 10, tall = 190, group = (width - left - 6) / servers.length;
  const fits = Math.max(4, Math.floor(group / 6.4));  // number of letters that fit below a group of bars
  const turned = servers.length > 1 && servers.some((name) => name.length > fits), foot = turned ? 84 : 46;
  const bar = Math.min(46, (group * 0.86) / resources.length);
  const names = [...bands, ...(others ? [`${others.toLocaleString("en-US")} others`] : [])];
  const said = servers.map((name, i) => {
    const used = resources.map((r, j) => (there[i][j] ? `${percent(sum(heights.map((u) => u[i][j])))} of ${r}` : null));
    return `${name}: ${used.filter(Boolean).join(", ")}`;
  });
  const most = bar >= 40 || resources.length === 1 ? 9 : 3, ticks = resources.map((name) => short(name, most));
  const ticked = bar >= 14 && new Set(ticks).size === resources.length;  // otherwise only the note names the resources
  const picture = svg("svg", { viewBox: `0 0 ${width} ${top + tall + foot}`, width, height: top + tall + foot, role: "img",
    "aria-label": `Used parts of capacities. ${short(said.join("; "), 900)}` });
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    const y = top + tall * (1 - part);
    picture.append(svg("line", { x1: left, x2: width - 4, y1: y, y2: y, class: "fo-grid" }));
    picture.append(svg("text", { x: left - 5, y: y + 3.5, class: "fo-tick", "text-anchor": "end" }, `${100 * part}%`));
  }
  servers.forEach((server, i) => {
    const x0 = left + group * i + (group - bar * resources.length) / 2;
    resources.forEach((resource, j) => {
      const x = x0 + bar * j;
      let y = top + tall;
      if (!there[i][j]) return;
      picture.append(svg("rect", { x: x + 1, y: top, width: Math.max(bar - 2, 1), height: tall, class: "fo-empty" }));
      names.forEach((name, k) => {
        const part = heights[k][i][j], high = part * tall;
        if (high < 0.05) return;
        y -= high;
        picture.append(svg("rect", { x: x + 1, y, width: Math.max(bar - 2, 1), height: high, class: "fo-part",
          style: `fill: ${colour(view.bars, k)}` },
        svg("title", {}, `${name}: ${percent(part)} of ${resource} on ${server}`)));
      });
      if (ticked) picture.append(svg("text", { x: x + bar / 2, y: top + tall + 13, class: "fo-tick", "text-anchor": "middle" }, ticks[j]));
    });
    const x = left + group * (i + 0.5), y = top + tall + (ticked ? 29 : 15);
    const every = Math.ceil(11 / group);
    if (i % every) return;
    picture.append(svg("text", turned ? { transform: `translate(${x + 3} ${y - 6}) rotate(-60)`, class: "fo-tick", "text-anchor": "end" }
      : { x, y, class: "fo-name", "text-anchor": "middle" }, svg("title", {}, server), short(server, turned ? 12 : fits)));
  });
  const legend = el("ul", { class: "fo-legend" }, names.map((name, k) =>
    el("li", {}, el("i", { style: `background: ${colour(view.bars, k)}` }), short(name, 34))).reverse());
  const abbreviated = resources.length > 1 && (bar < 40 || !ticked);
  const order = el("p", { class: "fo-note" }, `Bars of a server, from left: ${resources.join(", ")}.`);
  const whose = what ? el("p", { class: "fo-note" }, `Colours: ${what}.`) : null;
  return el("div", {}, picture, abbreviated ? order : null, whose, legend);
}

const sum = (values) => values.reduce((a, b) => a + b, 0);

// Measures against alpha. `points` are pairs [alpha, view] in order of alpha; `here` is the view at the current alpha.
function drawCurves(points, alpha, here, width, measures) {
  const most = largest([...points.map((p) => p[1]), here], (view) => view.measures.min_share);
  const drawn = measures.filter(([key]) => ["utilization", "min_share", "jain"].includes(key));
  const series = drawn.map(([key, label, form], k) => ({
    label, line: { class: `fo-line fo-line-${k}` }, dot: { class: `fo-dot-${k}` },
    text: { class: `fo-label fo-label-${k}` },
    of: (view) => (key === "min_share" && view.measures[key] !== null ? view.measures[key] / most : view.measures[key]),
    said: (view) => form(view.measures[key]),
  }));
  return el("div", {}, drawLines(points, alpha, here, width, series, (part) => `${100 * part}%`, "Measures against alpha"),
    el("p", { class: "fo-note" }, "The smallest share is drawn as a part of its largest value."));
}

// Tasks against alpha, of each user or group with a colour, and the mean tasks of the other users.
function drawTasks(points, alpha, here, width) {
  const { bands, others, what } = here.bars, names = [...bands, ...(others ? [`${others.toLocaleString("en-US")} others, mean`] : [])];
  const share = (k) => (view) => view.bars.tasks[k] / (k < bands.length ? 1 : others);
  const most = Math.max(...names.map((_, k) => largest([...points.map((p) => p[1]), here], share(k))));
  const series = names.map((label, k) => ({
    label: short(label, 15), line: { class: "fo-line", style: `stroke: ${colour(here.bars, k)}; stroke-dasharray: ${["none", "7 3", "2 3"][k % 3]}; stroke-width: ${k < 3 ? 3 : 2}` },
    dot: { style: `fill: ${colour(here.bars, k)}` }, text: { class: "fo-label" }, title: label,
    of: (view) => share(k)(view) / most, said: (view) => digits(share(k)(view)),
  }));
  return el("div", {}, drawLines(points, alpha, here, width, series, (part) => digits(part * most, 3), "Tasks against alpha"),
    what ? el("p", { class: "fo-note" }, `Lines: ${what}.`) : null);
}

const largest = (views, of) => Math.max(1e-300, ...views.map((view) => of(view) || 0));

// Line chart against alpha with a cursor. Each of `series` maps a view to a value from 0 to 1 (`of`), and has its styles.
function drawLines(points, alpha, here, width, series, tick, what) {
  const left = 38, right = 112, top = 10, tall = 190, foot = 38, wide = width - left - right;
  const x = (a) => left + wide * place(a), y = (v) => top + tall * (1 - v);
  const now = series.map((one) => `${one.title || one.label} ${one.said(here)}`);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${top + tall + foot}`, width, height: top + tall + foot, role: "img",
    "aria-label": `${what}. At alpha ${alphaText(alpha)}: ${short(now.join(", "), 900)}.` });
  for (const part of [0, 0.5, 1]) {
    picture.append(svg("line", { x1: left, x2: left + wide, y1: y(part), y2: y(part), class: "fo-grid" }));
    picture.append(svg("text", { x: left - 5, y: y(part) + 3.5, class: "fo-tick", "text-anchor": "end" }, tick(part)));
  }
  for (const mark of wide > 260 ? [0, 0.5, 1, 2, 4, 9, "inf"] : [0, 1, 3, "inf"]) {
    picture.append(svg("text", { x: x(mark), y: top + tall + 15, class: "fo-tick", "text-anchor": "middle" }, alphaText(mark)));
  }
  picture.append(svg("text", { x: left + wide / 2, y: top + tall + 31, class: "fo-name", "text-anchor": "middle" }, "alpha"));
  const ends = [];
  for (const one of series) {
    const known = points.map(([a, view]) => [x(a), one.of(view)]).filter((p) => p[1] !== null);
    if (known.length) {
      picture.append(svg("polyline", { points: known.map(([px, v]) => `${px.toFixed(1)},${y(v).toFixed(1)}`).join(" "), ...one.line },
        svg("title", {}, one.title || one.label)));
    }
    const value = one.of(here);
    if (value !== null) picture.append(svg("circle", { cx: x(alpha), cy: y(value), r: 3.5, ...one.dot }));
    const last = known.length ? known[known.length - 1][1] : value;
    if (last !== null) ends.push({ one, want: y(last) });
  }
  apart(ends, 13, top + 4, top + tall);
  for (const { one, ...at } of ends) {
    picture.append(svg("text", { x: left + wide + 8, y: at.y + 4, ...one.text }, one.label));
  }
  picture.append(svg("line", { x1: x(alpha), x2: x(alpha), y1: top, y2: top + tall, class: "fo-cursor" }));
  return picture;
}

// Place labels in the order of their desired positions, at least `gap` apart.
function apart(labels, gap, low, high) {
  labels.sort((a, b) => a.want - b.want);
  labels.forEach((one, k) => { one.y = Math.max(one.want, low, k ? labels[k - 1].y + gap : low); });
  for (let k = labels.length - 1; k >= 0; k -= 1) {
    labels[k].y = Math.min(labels[k].y, k < labels.length - 1 ? labels[k + 1].y - gap : high);
  }
}
