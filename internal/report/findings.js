// This file lists what made the program slower than necessary, with advice.

const advice = {
  recomputed: 'Nothing needed the result when its segment ran, so it was not written, and a later read computed it again. Read such results together, call Eval on the result before the first read, or do not release it.',
  interpreted: 'These launches ran in the interpreter, either until their code was ready or because the kernel has no code. Ship plans, keep the cache on disk, or open the device with explore=wait,compile=wait to make code first. The kernel’s row shows its code.',
  'op by op': 'The segment ran one op at a time, because its plan could not be made or run. The table shows the reason. If the reason is not memory, please report it.',
};

// findings lists them, null where there are none.
function findings(d) {
  if (d.findings.length === 0) return null;
  const few = 20;
  const rows = d.findings.slice(0, few).map((f) => el('tr', {}, el('th', { scope: 'row' }, f.what || 'found'), el('td.num', {}, count(f.count)), el('td', {}, f.line || el('span.quiet', {}, 'unknown line')), el('td.brief', { title: f.of || null }, f.of)));
  const kinds = [...new Set(d.findings.map((f) => f.what))];
  return section('findings', 'Slower than necessary',
    el('div.wide', { tabindex: -1 }, el('table', {}, el('thead', {}, el('tr', {}, ['What', 'Times', 'Line', 'Of'].map((h, i) => el('th' + (i === 1 ? '.num' : ''), { scope: 'col' }, h)))), el('tbody', {}, rows))),
    d.findings.length > few ? note(`${plural(d.findings.length - few, 'rarer finding is', 'rarer findings are')} left out.`) : null,
    kinds.filter((k) => advice[k]).map((k) => note(k[0].toUpperCase() + k.slice(1) + ': ' + advice[k])));
}
