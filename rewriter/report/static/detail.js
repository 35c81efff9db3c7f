// One opened query: its texts, the hits of the baseline and of the system side by side.

function detailOf(query) {
  const others = compared();
  return el("tr", { class: "detail", "data-of": query },
    el("td", { colspan: columns().length },
      el("div", { class: "inner" }, about(query), everySystem(query), texts(query, others),
        el("div", { class: "hits", "data-busy": "true" }, el("p", { class: "note" }, "Reading the hits …")))));
}

const compared = () => (data.baseline === null || state.system === data.baseline ? [state.system] : [data.baseline, state.system]);

function about(query) {
  return el("p", { class: "about" }, el("code", null, data.ids[query]), ` ${string(data.origin[query])} query, ${state.backend}`);
}

function everySystem(query) {
  const measures = data.measures;
  const line = ([system, label]) => {
    const found = cell(system);
    if (!found || found.text[query] < 0) return null;
    const numbers = measures.map((key) => el("td", { class: "num" }, decimals(found.values[key][query])));
    const rankText = found.rank[query] || "–";
    return el("tr", { class: system === state.system ? "chosen" : null },
      el("th", { scope: "row" }, label), ...numbers, el("td", { class: "num" }, String(rankText)));
  };
  const head = ["System", ...measures.map(measureName), "Rank"].map((text, at) => el("th", { scope: "col", class: at ? "num" : null }, text));
  const table = el("table", { class: "plain small" }, el("thead", null, el("tr", null, ...head)),
    el("tbody", null, ...Object.entries(data.systems).map(line)));
  return el("details", { class: "every" }, el("summary", null, "All systems on this query"),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "All systems on this query" }, table));
}

const measureName = (key) => data.names[key];

function texts(query, systems) {
  const raw = string(data.query[query]);
  const found = cell(state.system);
  const rewrite = found ? string(found.rewrite[query]) : null;
  const sides = rewrite === null ? null : compare(raw, rewrite);
  const before = el("div", { class: "text" }, el("h4", null, "Raw query", sides ? el("span", null, " struck: not in the rewrite") : ""),
    el("p", { class: "said", dir: "auto" }, ...(sides ? marked(sides[0], "del") : [raw])));
  if (systems.length === 1 && rewrite === null) return el("div", { class: "pair" }, before);
  const after = el("div", { class: "text" },
    el("h4", null, data.systems[state.system], sides ? el("span", null, " underlined: not in the query") : ""),
    ...(sides ? [el("p", { class: "said", dir: "auto" }, ...marked(sides[1], "ins"))] : [noRewrite(query, found)]),
    sent(query, found, rewrite), aside(query, found));
  return el("div", { class: "pair" }, before, after);
}

function noRewrite(query, found) {
  if (!found || found.text[query] < 0) return el("p", { class: "note" }, "This query was not evaluated with this system.");
  const reason = string(found.failure[query]);
  return el("p", { class: "note" }, reason === null
    ? "Sent as it is."
    : `No rewrite (${reason.replaceAll("_", " ")}): the raw query was sent.`);
}

function sent(query, found, rewrite) {
  const text = found ? string(found.text[query]) : null;
  if (rewrite === null || text === null || text === rewrite) return null;
  return el("p", { class: "sent" }, el("b", null, "Sent: "), text);
}

function aside(query, found) {
  if (!found) return null;
  const error = string(found.error[query]);
  if (error !== null) return el("p", { class: "note" }, `The search failed: ${error}`);
  if (!found.samples) return null;
  return el("p", { class: "note" }, `The first of ${found.samples} sampled rewrites, with its hits; the values are means over all of them.`);
}

// Fills in the hits once they are unpacked; nothing happens if the query was closed meanwhile.
async function fillHits(query, place) {
  const [hits, documents, pages] = await Promise.all([part("hits"), part("texts"), part("pages")]);
  if (!place.isConnected) return;
  const judged = new Map();
  for (let at = 0; at < hits.judged[query].length; at += 2) judged.set(hits.judged[query][at], hits.judged[query][at + 1]);
  const lists = compared().map((system) => ({ system, found: hits.cells[state.backend][system] }))
    .map(({ system, found }) => ({ system, ids: found ? found.hits[query] : [], scores: found ? found.scores[query] : [] }));
  const source = { hits, documents, pages: pages.pages, judged, written: hits.source[query] };
  place.replaceChildren(judgedLine(source, lists), el("div", { class: "pair" }, ...lists.map((list, at) =>
    hitList(list, lists.length > 1 ? lists[1 - at] : null, at, source))));
  delete place.dataset.busy;
}

function judgedLine(source, lists) {
  if (!source.judged.size) return el("p", { class: "note" }, "No relevant document of this query is known here.");
  const items = [...source.judged].map(([number, grade]) => {
    const ranks = lists.map((list) => `${data.systems[list.system]}: ${place(list, number)}`);
    return el("li", null, el("b", null, titleOf(source, number)), ` grade ${grade}; ${ranks.join(", ")}`);
  });
  return el("div", { class: "judged" }, el("h4", null, items.length > 1 ? "Relevant documents" : "Relevant document"), el("ul", null, ...items));
}

function place(list, number) {
  const at = list.ids.indexOf(number);
  return at < 0 ? `not in the first ${list.ids.length}` : `rank ${at + 1}`;
}

const titleOf = (source, number) => source.documents.titles[number] || source.hits.ids[number];

function hitList(list, other, at, source) {
  const label = data.systems[list.system];
  const items = list.ids.map((number, rankAt) => hit(number, rankAt + 1, list, other, at, source));
  return el("div", { class: "column" }, el("h4", null, `Hits: ${label}`),
    items.length ? heads(other, at) : null, items.length ? el("ol", null, ...items) : el("p", { class: "note" }, "No hits."));
}

function badge(number, grade, source) {
  const words = [number === source.written ? "source" : "", grade ? `relevant, grade ${grade}` : ""];
  const text = words.filter(Boolean).join(", ");
  return text ? el("span", { class: "badge" }, text) : "";
}

function heads(other, at) {
  const moved = other ? (at ? "was" : "becomes") : "";
  return el("div", { class: "heads", "aria-hidden": "true" }, ...["", "Document", "Score", moved].map((text) => el("span", null, text)));
}

function hit(number, rankHere, list, other, at, source) {
  const id = source.hits.ids[number], title = titleOf(source, number), grade = source.judged.get(number);
  const text = source.documents.texts[number] || "";
  const picture = source.pages[number];
  return el("li", { class: grade || number === source.written ? "found" : null },
    el("span", { class: "rank" }, String(rankHere)),
    el("div", { class: "document" },
      el("p", { class: "name" }, el("b", null, title), badge(number, grade, source),
        title === id ? "" : el("code", null, id)),
      picture ? el("img", { src: `data:image/webp;base64,${picture}`, alt: `Page ${title}`, loading: "lazy" }) : null,
      text ? passage(text) : null),
    el("span", { class: "score" }, String(list.scores[rankHere - 1])),
    other ? movement(number, rankHere, other, at) : null);
}

const SHORT = 180;

function passage(text) {
  if (text.length <= SHORT) return el("p", { class: "passage", dir: "auto" }, text);
  const shownText = `${text.slice(0, SHORT).replace(/\s+\S*$/, "")} …`;
  return el("details", { class: "passage" }, el("summary", { dir: "auto" }, shownText), el("p", { dir: "auto" }, text));
}

// On the right: where the baseline had it. On the left: where the system has it.
function movement(number, rankHere, other, at) {
  const found = other.ids.indexOf(number) + 1;
  if (!found) return el("span", { class: `move ${at ? "new" : "gone"}` }, at ? "new" : "gone");
  const up = at ? found - rankHere : rankHere - found;
  const arrow = up > 0 ? "↑" : up < 0 ? "↓" : "=";
  const said = at ? `was rank ${found}` : `becomes rank ${found}`;
  return el("span", { class: `move ${at ? side(up) : ""}` },
    el("span", { "aria-hidden": "true" }, at ? `${arrow} ${found}` : `→ ${found}`), el("span", { class: "hide" }, said));
}
