// Plans: how a segment of ops was cut into kernels, and what kept these apart.

function planTitle(p, i) { return `Plan ${i}: ${plural(p.ops, 'op')} as ${plural(p.kernels.length, 'kernel')}, ${p.mode || 'mode unknown'}, ${plural(p.runs, 'run')}`; }

// planBody is what a plan opens to. here is the kernel that it is shown for, or -1.
function planBody(d, p, here, open) {
  const chain = p.kernels.map((k, at) => el('li', {},
    k === here ? el('b', {}, swatch(k), kernelName(d, k)) : d.kernels[k] ? el('button.link', { type: 'button', click: () => open(k) }, swatch(k), kernelName(d, k)) : el('span.quiet', {}, kernelName(d, k))));
  return [
    el('h4', {}, 'Kernels, in order'), el('ol.chain', { start: 0 }, chain),
    el('h4', {}, 'Not fused'), refusals(d, p, here),
    ...ops(p),
    p.tuning ? [el('h4', {}, 'Tuning'), code(p.tuning, 'tuning')] : null,
    p.text ? lazy('Plan as text', () => code(p.text, 'plan')) : null,
  ].flat();
}

// ops is the segment, with the program's line behind each op where all are known.
function ops(p) {
  const text = p.segment.replace(/\n$/, '').split('\n'), isOp = (l) => /^\s*%\d+ = /.test(l) && !/^\s*%\d+ = input\b/.test(l);
  const beside = p.lines.length > 0 && text.filter(isOp).length === p.lines.length;
  if (beside) {
    const room = Math.min(80, Math.max(...text.map((l) => l.length))) + 3;
    let n = 0;
    for (let i = 0; i < text.length; i++) if (isOp(text[i])) text[i] = text[i].padEnd(room) + p.lines[n++];
  }
  const out = [];
  if (p.segment) out.push(el('h4', {}, beside ? 'Ops of the segment, with their lines' : 'Ops of the segment'), code(text.join('\n'), 'segment'));
  if (p.lines.length && !beside) out.push(el('h4', {}, 'Lines of the program, op by op'), code(p.lines.join('\n'), 'lines'));
  return out;
}

// refusals says what was not fused and why, what concerns a kernel first.
function refusals(d, p, here) {
  if (p.refused.length === 0) return el('p.quiet', {}, p.kernels.length > 1 ? 'No reason is recorded.' : 'Nothing: the plan is one kernel.');
  const items = p.refused.map((text) => {
    const m = /^kernels (\d+) and (\d+): ([^]*)$/.exec(text);
    const pair = m ? [p.kernels[m[1]], p.kernels[m[2]]] : [];
    const mine = here >= 0 && pair.includes(here);
    if (!m || pair.includes(undefined)) return { mine, e: el('li', {}, text) };
    return { mine, e: el('li' + (mine ? '.mine' : ''), {}, el('span.pair', {}, `${m[1]} ${kernelName(d, pair[0])} | ${m[2]} ${kernelName(d, pair[1])}`), el('span', {}, m[3])) };
  });
  items.sort((a, b) => b.mine - a.mine);
  return el('ul.refused', {}, items.map((i) => i.e));
}

// plansSection lists all plans; the kernel table shows them by kernel.
function plansSection(d, open) {
  if (d.plans.length === 0) return section('plans', 'Plans', empty('No plan was made yet.'), left(d.plansLeft));
  const order = d.plans.map((_, i) => i).sort((a, b) => d.plans[b].runs - d.plans[a].runs);
  const make = (i) => lazy(planTitle(d.plans[i], i), () => planBody(d, d.plans[i], -1, open));
  const shown = order.slice(0, 12).map(make), rest = order.slice(12);
  return section('plans', 'Plans', el('div.folds', {}, shown, rest.length ? lazy(plural(rest.length, 'more plan'), () => rest.map(make)) : null), left(d.plansLeft));
}
function left(n) { return n > 0 ? note(`${plural(n, 'plan is', 'plans are')} left out.`) : null; }
