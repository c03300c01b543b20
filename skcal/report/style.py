"""The style of the HTML report: light, dark, print, phone."""

STYLE = """<style>
.skcal-page { margin: 0; background: #fff; }
.skcal-report { --text: #1c1c1c; --soft: #595959; --line: #dcdcdc; --back: #fff; --box: #f4f6f8;
  --mind: #fdf3e7; --edge: #d55e00; --image: none;
  max-width: 60rem; margin: 0 auto; padding: 1.25rem; box-sizing: border-box;
  color: var(--text); background: var(--back);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: anywhere; }
.skcal-report header p { margin: 0; color: var(--soft); }
.skcal-report :is(h1, h2, h3, h4) { line-height: 1.25; color: inherit; }
.skcal-report header :is(h1, h3) { margin: 0 0 .25rem; font-size: 1.7rem; }
.skcal-report :is(section, aside) > :is(h2, h4) { margin: 0 0 .5rem; font-size: 1.15rem; }
.skcal-report section { margin-top: 2rem; }
.skcal-cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr));
  gap: .75rem; margin: 1.25rem 0; }
.skcal-cards div { padding: .75rem 1rem; border-radius: .5rem; background: var(--box); }
.skcal-cards dt { color: var(--soft); font-size: .875rem; font-weight: normal; }
.skcal-cards dd { margin: 0; color: var(--soft); font-size: .875rem; }
.skcal-cards b { display: block; color: var(--text); font-size: 1.5rem; line-height: 1.3; }
.skcal-report aside { padding: .75rem 1rem; border-left: .25rem solid var(--edge);
  background: var(--mind); }
.skcal-report ul { margin: 0; padding-left: 1.1rem; }
.skcal-report li { margin: .2rem 0; }
.skcal-report figure { margin: 1.5rem auto; }
.skcal-report img { display: block; height: auto; filter: var(--image); }
.skcal-panels { display: flex; flex-wrap: wrap; justify-content: center; gap: 1rem; }
.skcal-panels img { flex: 1 1 16rem; max-width: 28rem; min-width: 0; }
.skcal-report figcaption { color: var(--soft); font-size: .875rem; }
.skcal-report table { width: 100%; border-collapse: collapse; color: inherit; font-size: .9375rem;
  font-variant-numeric: tabular-nums; }
.skcal-report :is(td, th) { padding: .3rem .75rem .3rem 0; text-align: left; vertical-align: top;
  font-weight: normal; border-bottom: 1px solid var(--line); background: none; }
.skcal-report thead th { color: var(--soft); font-size: .8125rem; vertical-align: bottom; }
.skcal-measures th { width: 30%; font-weight: 600; }
.skcal-measures td:nth-child(2) { font-weight: 600; text-align: right; white-space: nowrap; }
.skcal-measures td:last-child { width: 58%; color: var(--soft); }
.skcal-report .skcal-part th { padding-left: 1.25rem; font-weight: normal; }
.skcal-report .skcal-part td:nth-child(2) { font-weight: normal; }
.skcal-scroll { overflow: auto; }
.skcal-long { max-height: 26rem; }
.skcal-report .skcal-scroll table { overflow-wrap: break-word; }
.skcal-scroll th { min-width: 4.5rem; max-width: 18rem; overflow-wrap: anywhere; }
.skcal-scroll tbody th { min-width: 8rem; }
.skcal-scroll small { display: block; color: var(--soft); }
.skcal-scroll thead th { position: sticky; top: 0; background: var(--back); }
.skcal-scroll + ul { margin-top: .75rem; }
.skcal-report footer { margin-top: 2rem; color: var(--soft); font-size: .875rem; }
@media (max-width: 40rem) {
  .skcal-report { padding: 1rem; }
  .skcal-cards { grid-template-columns: 1fr 1fr; }
  .skcal-measures tr { display: grid; grid-template-columns: 1fr auto; padding: .35rem 0;
    border-bottom: 1px solid var(--line); }
  .skcal-report .skcal-measures :is(td, th) { width: auto; padding-top: 0; padding-bottom: 0;
    padding-right: 0; border: 0; }
  .skcal-report .skcal-measures td:last-child { grid-column: 1 / -1; font-size: .875rem; }
  .skcal-report .skcal-part td:last-child { padding-left: 1.25rem; }
}
@media screen and (prefers-color-scheme: dark) {
  .skcal-page { background: #141414; }
  .skcal-report { --text: #ececec; --soft: #b3b3b3; --line: #3a3a3a; --back: #141414;
    --box: #222; --mind: #2b2118; --image: invert(.92) hue-rotate(180deg); }
}
@media print {
  .skcal-report { max-width: none; padding: 0; font-size: 10pt; }
  .skcal-report .skcal-scroll { max-height: none; overflow: visible; }
  .skcal-scroll small { display: block; color: var(--soft); }
.skcal-scroll thead th { position: static; }
  .skcal-report :is(tr, figure, .skcal-cards div, aside) { break-inside: avoid; }
  .skcal-report :is(h2, h4) { break-after: avoid; }
  .skcal-panels img { max-width: 9cm; }
}
</style>
"""
