// Starts the page: theme, controls, list.

const THEMES = ["system", "light", "dark"];

function stored(value) {
  try {
    if (value) localStorage.setItem("rlqr-theme", value);
    return localStorage.getItem("rlqr-theme");
  } catch { // a browser that keeps nothing for files
    return null;
  }
}

function useTheme(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  byId("theme").textContent = `Theme: ${name}`;
}

function startTheme() {
  let chosen = THEMES.includes(stored()) ? stored() : "system";
  useTheme(chosen);
  byId("theme").addEventListener("click", () => {
    chosen = THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length];
    stored(chosen);
    useTheme(chosen);
  });
}

function startControls() {
  const same = (names) => names.map((name) => [name, name]);
  state.backend = Object.keys(data.cells)[0];
  state.system = data.main ?? Object.keys(data.systems)[0];
  state.measure = data.measures[0];
  state.sort = data.baseline === null ? "system-up" : "largest";
  options(byId("backend"), same(Object.keys(data.cells)), state.backend);
  options(byId("system"), Object.entries(data.systems), state.system);
  options(byId("measure"), data.measures.map((key) => [key, measureName(key)]), state.measure);
  options(byId("show"), Object.entries(SHOWS).map(([name, [text]]) => [name, text]), state.show);
  options(byId("sort"), Object.entries(SORTS).map(([name, [text]]) => [name, text]), state.sort);
  for (const name of ["backend", "system", "measure", "show", "sort"]) {
    byId(name).addEventListener("change", (event) => { state[name] = event.target.value; update(false); });
  }
  byId("search").addEventListener("input", (event) => { state.search = event.target.value; update(false); });
  document.querySelector(".controls").addEventListener("submit", (event) => event.preventDefault());
  byId("previous").addEventListener("click", () => turn(-1, 0));
  byId("next").addEventListener("click", () => turn(1, 0));
  document.addEventListener("keydown", pressed);
}

async function start() {
  startTheme();
  data = await part("list");
  startControls();
  update(false);
  recall();
  document.documentElement.dataset.ready = "true";
  // What an opened query needs is unpacked while nobody waits for it.
  const idle = window.requestIdleCallback || ((run) => setTimeout(run, 200));
  idle(() => { part("hits"); part("texts"); part("pages"); });
}

start().catch((error) => {
  const old = typeof DecompressionStream === "undefined";
  byId("count").textContent = old
    ? "This browser is too old for the list of queries: it lacks DecompressionStream."
    : `The list of queries could not be read: ${error.message}`;
  throw error;
});
