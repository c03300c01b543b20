// Print the first three pages that the search of a built site finds for each query.
// node search.js FOLDER '["query", …]'
const fs = require("fs");
const vm = require("vm");
const [folder, queries] = [process.argv[2], JSON.parse(process.argv[3])];
const nothing = () => null;
const ready = [];
const browser = {
  document: {
    documentElement: { dataset: { content_root: "./" } },
    addEventListener: nothing,
    getElementById: nothing,
    querySelector: nothing,
  },
  localStorage: { setItem: nothing, getItem: nothing },
  location: { search: "" },
  DOCUMENTATION_OPTIONS: {},
  SPHINX_HIGHLIGHT_ENABLED: false,
  URLSearchParams,
  _ready: (call) => ready.push(call),
  _: (text) => text,
};
browser.window = browser;
vm.createContext(browser);
for (const file of ["_static/language_data.js", "_static/searchtools.js", "searchindex.js"])
  vm.runInContext(fs.readFileSync(`${folder}/${file}`, "utf8"), browser);
const start = vm.runInContext("Search.init", browser); // it needs the page
ready.filter((call) => call !== start).forEach((call) => call());
const pages = queries.map((query) => {
  browser.location.search = `?q=${encodeURIComponent(query)}`;
  const call = `Search._performSearch(...Search._parseQuery(${JSON.stringify(query)}))`;
  const results = vm.runInContext(call, browser).reverse(); // the best is the last
  return [...new Set(results.map(([page]) => page))].slice(0, 3);
});
console.log(JSON.stringify(pages));
