// Rank pages by the words of the query in their titles; the changelog comes last.
var Scorer = {
  score: ([page, title, _anchor, _description, score]) => {
    const query = new URLSearchParams(window.location.search).get("q") || "";
    const words = query.toLowerCase().split(/\W+/).filter((word) => word.length > 2);
    const own = title.toLowerCase();
    const found = words.filter((word) => own.includes(word.slice(0, 6)));
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
