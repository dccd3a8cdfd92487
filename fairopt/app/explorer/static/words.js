// Functions that the other parts share: elements, numbers, the axis of alpha. Texts never enter the page as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
  return node;
}

const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// Format a number with `count` significant digits, without trailing zeros.
function digits(value, count = 4) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(2);
  return size >= 10 ** count ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(count)));
}
const percent = (value) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)}%`);
// Measures of `start`: key, title, and the function that formats the number.
const PARTS = ["utilization", "satisfaction"];
const measuresOf = (start) => start.measures.map(([key, title]) => [key, title,
  PARTS.includes(key) ? percent : (value) => (value === null && key.endsWith("_wanting") ? "all met" : digits(value, key === "tasks" ? 4 : 3))]);

// Map alpha from [0, infinity] to [0, 1] by alpha / (1 + alpha), and back.
const asNumber = (alpha) => (alpha === "inf" ? Infinity : Number(alpha));
const place = (alpha) => (asNumber(alpha) === Infinity ? 1 : asNumber(alpha) / (1 + asNumber(alpha)));
const alphaAt = (t) => (t >= 1 ? "inf" : t <= 0 ? 0 : Number((t / (1 - t)).toPrecision(3)));
const alphaText = (alpha) => (asNumber(alpha) === Infinity ? "∞" : digits(asNumber(alpha)));

const short = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

// Colour of band k: that of its user or group (`bars.colours`), or the colour of all other users.
const colour = (bars, k) => `var(--fo-user-${k < bars.bands.length ? bars.colours[k] : "others"})`;
