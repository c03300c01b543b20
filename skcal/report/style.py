"""The style of the HTML report: light, dark, print, phone."""

from skcal._show import style

_RULES = """
.skcal-page { margin: 0; background: #fff; }
& { max-width: 60rem; margin: 0 auto; padding: 1.25rem; }
& header p { margin: 0; color: var(--soft); }
& :is(h1, h2, h3, h4) { line-height: 1.25; color: inherit; }
& header :is(h1, h3) { margin: 0 0 .25rem; font-size: 1.7rem; }
& :is(section, aside) > :is(h2, h4) { margin: 0 0 .5rem; font-size: 1.15rem; }
& section { margin-top: 2rem; }
& .skcal-verdict { margin: 1rem 0 0; font-size: 1.1rem; }
& summary { cursor: pointer; margin: 0 0 .5rem; }
& summary :is(h2, h4) { display: inline; margin: 0; font-size: 1.15rem; }
& .skcal-cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr));
  gap: .75rem; margin: 1.25rem 0; }
& .skcal-cards div { padding: .75rem 1rem; border-radius: .5rem; background: var(--box); }
& .skcal-cards dt { color: var(--soft); font-size: .875rem; font-weight: normal; }
& .skcal-cards dd { margin: 0; color: var(--soft); font-size: .875rem; }
& .skcal-cards b { display: block; color: var(--text); font-size: 1.5rem; line-height: 1.3; }
& aside { padding: .75rem 1rem; border-left: .25rem solid var(--edge);
  background: var(--mind); }
& figure { margin: 1.5rem auto; }
& img { display: block; height: auto; filter: var(--image); }
& .skcal-panels { display: flex; flex-wrap: wrap; justify-content: center; gap: 1rem; }
& .skcal-panels img { flex: 1 1 16rem; max-width: 28rem; min-width: 0; }
& .skcal-panels:has(img:nth-child(4):last-child) img { flex-basis: 20rem; } /* 2 + 2, not 3 + 1 */
& .skcal-panels:has(img:nth-child(5):last-child) img { max-width: 18rem; } /* 3 + 2, alike */
& figcaption { color: var(--soft); font-size: .875rem; }
& .skcal-measures th { width: 30%; font-weight: 600; }
& .skcal-measures td:nth-child(2) { font-weight: 600; text-align: right; white-space: nowrap; }
& .skcal-measures td:last-child { width: 58%; color: var(--soft); }
& .skcal-part th { padding-left: 1.25rem; font-weight: normal; }
& .skcal-part td:nth-child(2) { font-weight: normal; }
& .skcal-long { max-height: 26rem; }
& .skcal-scroll table { overflow-wrap: break-word; }
& .skcal-scroll th { min-width: 4.5rem; max-width: 18rem; overflow-wrap: anywhere; }
& .skcal-scroll thead th { overflow-wrap: break-word; }
& .skcal-scroll tbody th { min-width: 8rem; }
& .skcal-scroll small { display: block; color: var(--soft); }
& .skcal-scroll thead th { position: sticky; top: 0; background: var(--back); }
& .skcal-scroll + ul { margin-top: .75rem; }
& footer { margin-top: 2rem; color: var(--soft); font-size: .875rem; }
@media (max-width: 40rem) {
  & { padding: 1rem; }
  & .skcal-cards { grid-template-columns: 1fr 1fr; }
  & .skcal-measures tr { display: grid; grid-template-columns: 1fr auto; padding: .35rem 0;
    border-bottom: 1px solid var(--line); }
  & .skcal-measures :is(td, th) { width: auto; padding-top: 0; padding-bottom: 0;
    padding-right: 0; border: 0; }
  & .skcal-measures td:last-child { grid-column: 1 / -1; width: auto; font-size: .875rem; }
  & .skcal-part td:last-child { padding-left: 1.25rem; }
}
@media screen and (prefers-color-scheme: dark) {
  .skcal-page { background: #141414; }
}
@media print {
  & { max-width: none; padding: 0; font-size: 9pt; }
  & :is(table, figcaption, footer, .skcal-cards dt, .skcal-cards dd) { font-size: 8pt; }
  & thead th { font-size: 7.5pt; }
  & .skcal-verdict { font-size: 11pt; }
  & .skcal-cards { grid-template-columns: repeat(4, 1fr); }
  & :is(td, th) { padding-top: .15rem; padding-bottom: .15rem; }
  & details::details-content { content-visibility: visible; block-size: auto; }
  & .skcal-scroll { max-height: none; overflow: visible; }
  & .skcal-scroll thead th { position: static; }
  & :is(tr, img, .skcal-cards div, aside) { break-inside: avoid; }
  & :is(h2, h4, summary) { break-after: avoid; }
  & .skcal-panels img { max-width: 7cm; }
}
"""
PAGE_STYLE = style("skcal-report", _RULES, of_page=True)
STYLE = style("skcal-report", _RULES)
