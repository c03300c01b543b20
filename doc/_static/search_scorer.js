// Rank pages by the words of the query in their titles; the changelog comes last.
var Scorer = {
  score: ([page, title, _anchor, _description, score]) => {
    const query = new URLSearchParams(window.location.search).get("q") || "";
    const words = query.toLowerCase().split(/\W+/).filter((word) => word.length > 2);
    const own = title.toLowerCase().split(/\W+/);
    const same = (word, other) => (word.length < 5 ? word === other : other.startsWith(word.slice(0, 6)));
    const found = words.filter((word) => own.some((other) => same(word, other)));
    return score + 20 * found.length - (/^(changelog|contributing)/.test(page) ? 10 : 0);
  },
  // Sphinx's own numbers
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

// Sphinx lists the pages that hold every word. Where these are few, add those that hold most: the
// scores of single words are summed, and a word counts the more, the fewer pages hold it.
_ready(() => {
  const exact = Search._performSearch;
  Search._performSearch = (query, terms, excluded, ...others) => {
    const results = exact(query, terms, excluded, ...others);
    if (terms.size < 2 || new Set(results.map(([page]) => page)).size > 2) return results;
    const pages = new Map();
    for (const term of terms) {
      const found = Search.performTermsSearch(new Set([term]), excluded);
      const weight = Math.log(Search._index.docnames.length / found.length);
      for (const result of found) {
        const sum = pages.get(result[0]) ?? result.with(4, 0);
        pages.set(result[0], sum.with(4, sum[4] + weight * result[4]));
      }
    }
    const ranked = [...pages.values()].map((page) => page.with(4, Scorer.score(page)));
    return ranked.sort((one, other) => one[4] - other[4]).slice(-20);
  };
});
