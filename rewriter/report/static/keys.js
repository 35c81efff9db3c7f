// Opening, closing and moving, by mouse and keyboard.

const rowOf = (query) => byId("rows").querySelector(`tr.query[data-query="${query}"]`);

function close() {
  if (state.open === null) return;
  byId("rows").querySelector("tr.detail")?.remove();
  const opened = rowOf(state.open);
  opened?.classList.remove("opened");
  opened?.querySelector(".open").setAttribute("aria-expanded", "false");
  state.open = null;
}

function toggle(query) {
  const was = state.open;
  close();
  if (was !== query) open(query);
  remember();
}

function open(query) {
  const opened = rowOf(query);
  if (!opened) return;
  state.open = query;
  opened.classList.add("opened");
  opened.querySelector(".open").setAttribute("aria-expanded", "true");
  const detail = detailOf(query);
  opened.after(detail);
  fillHits(query, detail.querySelector(".hits"));
}

// The address names the opened query, so that it can be sent to someone.
function remember() {
  const hash = state.open === null ? "#queries"
    : `#${new URLSearchParams({ query: data.ids[state.open], backend: state.backend, system: state.system })}`;
  history.replaceState(null, "", hash);
}

function recall() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const query = data.ids.indexOf(asked.get("query"));
  if (query < 0) return;
  if (data.cells[asked.get("backend")]) state.backend = byId("backend").value = asked.get("backend");
  if (data.systems[asked.get("system")]) state.system = byId("system").value = asked.get("system");
  update(false);
  state.page = Math.floor(shown.indexOf(query) / PAGE);
  update(true);
  open(query);
  rowOf(query).querySelector(".open").focus();
  rowOf(query).scrollIntoView({ block: "start" });
}

function focusRow(at) {
  const buttons = [...byId("rows").querySelectorAll(".open")];
  const button = buttons[Math.max(0, Math.min(buttons.length - 1, at))];
  if (!button) return;
  button.focus({ preventScroll: true });
  button.closest("tr").scrollIntoView({ block: "nearest" });
}

function move(step) {
  const buttons = [...byId("rows").querySelectorAll(".open")];
  const focused = document.activeElement?.closest("tr.query, tr.detail");
  const row = focused?.classList.contains("detail") ? focused.previousElementSibling : focused;
  const at = row ? buttons.indexOf(row.querySelector(".open")) : -1;
  const to = at < 0 ? 0 : at + step;
  if (to < 0) turn(-1, -1);
  else if (to >= buttons.length) turn(1, 0);
  else focusRow(to);
}

function turn(step, at) {
  const pages = Math.ceil(shown.length / PAGE);
  if (state.page + step < 0 || state.page + step >= pages) return;
  close();
  state.page += step;
  update(true);
  focusRow(at < 0 ? PAGE - 1 : at);
}

const MOVES = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const target = event.target;
  const typing = target.matches("input, select, textarea");
  if (event.key === "/" && !typing) { event.preventDefault(); byId("search").focus(); return; }
  if (target.id === "search" && (event.key === "ArrowDown" || event.key === "Enter")) { event.preventDefault(); focusRow(0); return; }
  if (typing) return;
  if (event.key === "Escape" && state.open !== null) {
    const query = state.open;
    close();
    remember();
    rowOf(query).querySelector(".open").focus();
  } else if (event.key in MOVES && (event.key.length === 1 || target.closest("#rows .open"))) {
    event.preventDefault();
    move(MOVES[event.key]);
  }
}
