// The list of queries: what is shown, in which order, one page at a time.

const PAGE = 50;

const SORTS = {
  largest: ["Largest change", (q) => absent(change(q), Math.abs), true],
  gain: ["Largest gain", change, true],
  loss: ["Largest loss", change, false],
  "system-down": ["System, best first", (q) => value(state.system, q), true],
  "system-up": ["System, worst first", (q) => value(state.system, q), false],
  "base-down": ["Baseline, best first", (q) => value(data.baseline, q), true],
  "base-up": ["Baseline, worst first", (q) => value(data.baseline, q), false],
  "rank-up": ["Rank of the relevant document", (q) => rank(state.system, q), false],
  "rank-down": ["Rank, lowest first", (q) => rank(state.system, q), true],
  query: ["Query, A to Z", null, false],
  "query-down": ["Query, Z to A", null, true],
  given: ["As in the collection", (q) => q, false],
};

// Column → its text, and the two sorts that its heading switches between.
const COLUMNS = {
  query: [() => "Query", "query", "query-down"],
  base: [() => data.systems[data.baseline], "base-down", "base-up"],
  system: [() => data.systems[state.system], "system-down", "system-up"],
  change: [() => "Change", "gain", "loss"],
  rank: [() => "Rank of relevant", "rank-up", "rank-down"],
};

const SHOWS = {
  all: ["all queries", () => true],
  better: ["better", (q) => change(q) > 1e-9],
  worse: ["worse", (q) => change(q) !== null && change(q) < -1e-9],
  equal: ["equal", (q) => change(q) !== null && Math.abs(change(q)) <= 1e-9],
  failed: ["fallbacks", (q) => cell(state.system)?.failure[q] >= 0],
  missed: ["no relevant hit", (q) => cell(state.system)?.text[q] >= 0 && value(state.system, q) !== null && !cell(state.system).rank[q]],
  excluded: ["in no mean", (q) => value(state.system, q) === null],
};

const absent = (number, then) => (number === null ? null : then(number));
const rank = (system, query) => (system === null ? null : cell(system)?.rank[query]) || null;

let shown = []; // numbers of the queries, in order
const collator = new Intl.Collator();
let alphabetical = null; // query → place; sorted once

function places() {
  if (!alphabetical) {
    const order = data.ids.map((_, q) => q);
    order.sort((a, b) => collator.compare(string(data.query[a]), string(data.query[b])));
    alphabetical = new Int32Array(order.length);
    order.forEach((q, place) => { alphabetical[q] = place; });
  }
  return alphabetical;
}

function select() {
  const words = fold(state.search).split(/\s+/).filter(Boolean);
  const texts = words.length ? haystack() : null;
  const fits = SHOWS[state.show][1];
  shown = data.ids.map((_, q) => q).filter((q) => fits(q) && (!texts || words.every((w) => texts[q].includes(w))));
  const [, key, down] = SORTS[state.sort];
  const keys = key ? data.ids.map((_, q) => key(q)) : places();
  const far = down ? -Infinity : Infinity; // what has no value comes last
  shown.sort((a, b) => {
    const x = keys[a] ?? far, y = keys[b] ?? far;
    return x === y ? a - b : (x < y) === down ? 1 : -1;
  });
}

function update(keepPage) {
  select();
  const pages = Math.max(1, Math.ceil(shown.length / PAGE));
  state.page = keepPage ? Math.min(state.page, pages - 1) : 0;
  if (!keepPage && state.open !== null) { state.open = null; remember(); }
  drawHeads();
  byId("rows").replaceChildren(...shown.slice(state.page * PAGE, (state.page + 1) * PAGE).map(row));
  if (!shown.length) byId("rows").append(el("tr", { class: "none" }, el("td", { colspan: columns().length }, "No query fits.")));
  byId("count").textContent = shown.length === data.ids.length
    ? `${whole.format(shown.length)} queries`
    : `${whole.format(shown.length)} of ${whole.format(data.ids.length)} queries`;
  byId("page").textContent = `Page ${state.page + 1} of ${pages}`;
  byId("previous").disabled = state.page === 0;
  byId("next").disabled = state.page >= pages - 1;
  byId("pager").hidden = pages === 1;
  byId("list").hidden = false;
}

function columns() {
  const compared = data.baseline !== null && state.system !== data.baseline;
  return Object.keys(COLUMNS).filter((name) => compared || (name !== "base" && name !== "change"));
}

function drawHeads() {
  byId("heads").replaceChildren(...columns().map((name) => {
    const [text, first, second] = COLUMNS[name];
    const sorted = state.sort === first || state.sort === second;
    const direction = !sorted ? "none" : SORTS[state.sort][2] ? "descending" : "ascending";
    const turn = () => sortBy(state.sort === first ? second : first);
    const button = el("button", { type: "button", on: { click: turn } }, text());
    return el("th", { scope: "col", class: `c-${name}`, "aria-sort": direction, "data-column": name }, button);
  }));
}

function sortBy(name) {
  const focused = document.activeElement?.closest("#heads th")?.dataset.column;
  state.sort = byId("sort").value = name;
  update(false);
  if (focused) byId("heads").querySelector(`[data-column="${focused}"] button`)?.focus();
}

function row(query) {
  const made = el("tr", { class: "query", "data-query": query }, ...columns().map((name) => {
    const shownCell = CELLS[name](query);
    return el("td", { class: `c-${name}`, "data-label": name === "query" ? null : COLUMNS[name][0]() }, ...shownCell);
  }));
  return made;
}

const CELLS = {
  query: (q) => [
    el("button", { type: "button", class: "open", "aria-expanded": "false", on: { click: () => toggle(q) } },
      el("span", { class: "id" }, data.ids[q]),
      el("span", { class: "text" }, string(data.query[q]))),
  ],
  base: (q) => [decimals(value(data.baseline, q))],
  system: (q) => [decimals(value(state.system, q)), fallen(q) ? el("span", { class: "fallback" }, "fallback") : ""],
  change: (q) => {
    const moved = change(q);
    const bar = el("span", { class: `bar ${side(moved)}`, "aria-hidden": "true" });
    bar.style.setProperty("--share", Math.min(1, Math.abs(moved || 0)));
    return [bar, el("b", { class: side(moved) }, signed(moved))];
  },
  rank: (q) => [ranks(q)],
};

const fallen = (q) => cell(state.system)?.failure[q] >= 0;

function ranks(q) {
  const now = rank(state.system, q) || "–";
  if (data.baseline === null || state.system === data.baseline) return String(now);
  return `${rank(data.baseline, q) || "–"} → ${now}`;
}
