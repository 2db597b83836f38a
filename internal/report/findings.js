// What made the program slower than it need be, and what to do about it.

const advice = {
  recomputed: 'The result was not written, as nothing needed it when it ran, and was computed again when it was read later. Read results that belong together at once, call Eval on it before the first read, or keep it from being released.',
  interpreted: 'These launches ran in the interpreter: the first ones, while code was being made, or all, where there is none. Ship plans, keep the cache on disk, or open the device with explore=wait,compile=wait to make code first; see the kernel’s row for its code.',
  'op by op': 'The segment ran one op at a time, because its plan could not be made or run. The reason is beside it: report it, if it is not memory.',
};

// findings lists them, null where there are none.
function findings(d) {
  if (d.findings.length === 0) return null;
  const few = 20;
  const rows = d.findings.slice(0, few).map((f) => el('tr', {}, el('th', { scope: 'row' }, f.what || 'found'), el('td.num', {}, count(f.count)), el('td', {}, f.line || el('span.quiet', {}, 'line not known')), el('td.brief', { title: f.of || null }, f.of)));
  const kinds = [...new Set(d.findings.map((f) => f.what))];
  return section('findings', 'Slower than need be',
    el('div.wide', { tabindex: -1 }, el('table', {}, el('thead', {}, el('tr', {}, ['What', 'Times', 'Line', 'Of'].map((h, i) => el('th' + (i === 1 ? '.num' : ''), { scope: 'col' }, h)))), el('tbody', {}, rows))),
    d.findings.length > few ? note(`${plural(d.findings.length - few, 'rarer finding is', 'rarer findings are')} left out.`) : null,
    kinds.filter((k) => advice[k]).map((k) => note(k[0].toUpperCase() + k.slice(1) + ': ' + advice[k])));
}
