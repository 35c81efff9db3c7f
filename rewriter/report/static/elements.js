// Elements from data: text is always set as text, never parsed.

const byId = (id) => document.getElementById(id);

function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [kind, run] of Object.entries(value)) made.addEventListener(kind, run);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

function options(select, pairs, chosen) {
  select.replaceChildren(...pairs.map(([value, text]) => el("option", { value }, text)));
  select.value = chosen;
}

const whole = new Intl.NumberFormat("en-US");
const decimals = (value) => (value === null ? "–" : value.toFixed(3));

function signed(value) {
  if (value === null) return "–";
  const text = Math.abs(value).toFixed(3);
  return (value > 0 ? "+" : value < 0 ? "−" : "") + text;
}

const side = (value) => (value > 1e-9 ? "gain" : value < -1e-9 ? "loss" : "");
