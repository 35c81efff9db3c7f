// The data behind the page: unpacked once, when it is first needed.

async function unpack(id) {
  const text = atob(byId(id).textContent);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  byId(id).textContent = "";
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

const parts = {};
const part = (name) => (parts[name] ||= unpack(`data-${name}`));

let data = null; // of data-list
const state = { backend: "", system: "", measure: "", show: "all", sort: "", search: "", page: 0, open: null };

const cell = (system) => data.cells[state.backend][system] || null;
const string = (number) => (number < 0 ? null : data.strings[number]);

function value(system, query) {
  const found = system === null ? null : cell(system);
  return found ? found.values[state.measure][query] : null;
}

function change(query) {
  const before = value(data.baseline, query), after = value(state.system, query);
  return before === null || after === null ? null : after - before;
}

// The texts that the search looks in, for the chosen backend and system.
let hay = null, hayOf = "";

function haystack() {
  const of = `${state.backend} ${state.system}`;
  if (hayOf !== of) {
    const found = cell(state.system);
    hay = data.ids.map((id, query) =>
      fold(`${id}\n${string(data.query[query])}\n${(found && string(found.rewrite[query])) || ""}`));
    hayOf = of;
  }
  return hay;
}
