// The table of kernels. Each row opens to what the kernel is and why it is that.

const columns = [
  { name: 'Kernel', key: (k) => k.label.toLowerCase(), text: true },
  { name: 'Runs', key: (k) => k.runs, cell: (k) => count(k.runs) },
  { name: 'Time', key: (k) => k.per === null ? -1 : k.micros, cell: (k) => k.per === null ? '–' : duration(k.micros), share: (k) => k.part },
  { name: 'Per run', key: (k) => k.per ?? -1, cell: (k) => k.per === null ? '–' : duration(k.per) },
  { name: 'Bytes', title: 'Bytes that one run reads and writes', key: (k) => k.bytes, cell: (k) => bytes(k.bytes) },
  { name: 'GB/s', key: (k) => k.rate ?? -1, cell: (k) => k.rate === null ? '–' : digits(k.rate / 1e9) },
  { name: 'GFLOP/s', key: (k) => k.speed ?? -1, cell: (k) => k.speed === null ? '–' : k.flops ? digits(k.speed / 1e9) : '0' },
  { name: 'Of peak', title: 'Share of the machine’s peak: of memory or of arithmetic, whichever share is larger', key: (k) => k.share ?? -1, bar: true },
  { name: 'Tier', key: (k) => k.tier, text: true, cell: (k) => k.tier },
  { name: 'Choice', title: 'What the tuner chose', key: (k) => k.choice, text: true, cell: (k) => k.choice || el('span.quiet', {}, 'device’s own') },
];

// kernelsSection makes the table; its open(i) opens a kernel's row and goes there.
function kernelsSection(d) {
  if (d.kernels.length === 0) {
    return { view: section('kernels', 'Kernels', empty('No launches yet: kernels appear here when the program has read a value.')), open: () => {} };
  }
  const few = 10;
  let all = d.kernels.length <= few + 5, by = 2, down = true;
  const rows = d.kernels.map((k) => row(d, k, (i) => open(i)));
  const heads = columns.map((c, i) => el('th' + (c.text || c.bar ? '' : '.num'), { scope: 'col' }, el('button', { type: 'button', title: c.title, click: () => {
    down = by === i ? !down : !c.text;
    by = i;
    arrange();
  } }, c.name, el('span.arrow', { 'aria-hidden': 'true' }))));
  const body = el('tbody');
  const more = el('button.more', { type: 'button', click: () => { all = true; arrange(); } }, `Show all ${count(d.kernels.length)} kernels`);

  function arrange() {
    const key = columns[by].key;
    const order = rows.slice().sort((a, b) => {
      const x = key(a.kernel), y = key(b.kernel), c = x < y ? -1 : x > y ? 1 : 0;
      return (down ? -c : c) || a.kernel.index - b.kernel.index;
    });
    order.forEach((r, i) => { r.head.hidden = r.detail.hidden = !all && i >= few && !r.isOpen(); });
    body.replaceChildren(...order.flatMap((r) => [r.head, r.detail]));
    heads.forEach((h, i) => {
      if (i === by) h.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      else h.removeAttribute('aria-sort');
    });
    more.hidden = all;
  }
  function open(i) {
    const r = rows[i];
    if (!r) return;
    r.toggle(true);
    r.head.hidden = r.detail.hidden = false;
    r.head.scrollIntoView({ block: 'start', behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' });
    r.button.focus({ preventScroll: true });
  }
  arrange();
  const timed = d.kernels.reduce((n, k) => n + k.timed, 0), runs = d.kernels.reduce((n, k) => n + k.runs, 0);
  const view = section('kernels', 'Kernels',
    el('div.wide', { tabindex: -1 }, el('table.kernels', {}, el('thead', {}, el('tr', {}, heads)), body)), more,
    note(d.timed ? `${count(timed)} of ${plural(runs, 'launch', 'launches')} were timed one by one; the times of all runs are estimated from these.` : 'Times were not collected.'),
    note(peaks(d)),
    d.kernels.some((k) => k.roof === 'launch') ? note(launchBound(d)) : null,
    d.kernelsLeft > 0 ? note(`${plural(d.kernelsLeft, 'kernel is', 'kernels are')} left out: those that took the least time.`) : null,
    d.sourcesLeft > 0 ? note(`The code of ${plural(d.sourcesLeft, 'variant')} is left out, because the page would be too large.`) : null);
  return { view, open };
}

function peaks(d) {
  if (!d.bytes && !d.flops) return 'The peaks of this machine are not known, so there is no share of them.';
  const known = [d.bytes && bytes(d.bytes) + '/s of memory', d.flops && flops(d.flops) + 'FLOP/s of arithmetic'].filter(Boolean);
  return `The best rates that were measured on this machine: ${words(known)}. More than 100${thin}% means that operands came from a cache. A function such as exp counts as the primitives that compute it.`;
}

// launchBound says what makes a kernel short of work.
function launchBound(d) {
  return `Launch-bound: the kernel has less to do than a launch costs, about ${duration(d.launch)}. Larger batches, longer segments or a bound Recording help; a faster kernel does not.`;
}

// row is a kernel's two rows of the table.
function row(d, k, open) {
  const button = el('button.name', { type: 'button', 'aria-expanded': 'false', title: kernelName(d, k.index) }, el('span.twist', { 'aria-hidden': 'true' }), swatch(k.index), el('span.label', {}, kernelName(d, k.index)));
  const cells = columns.map((c, i) => {
    if (i === 0) return el('th', { scope: 'row' }, button);
    if (c.bar) return el('td', {}, k.share === null ? el('span.quiet', {}, '–') : bar(k.share, [percent(k.share), el('span.quiet', {}, ' ' + k.roof)], k.roof === 'launch' ? launchBound(d) : null));
    if (c.text) return el('td.brief', { title: c.key(k) || null }, c.cell(k));
    if (!c.share) return el('td.num', {}, c.cell(k));
    const part = el('i.part', { 'aria-hidden': 'true' });
    part.style.width = 100 * c.share(k) + '%';
    return el('td.num.parted', { title: percent(c.share(k)) + ' of the time of all kernels' }, c.cell(k), part);
  });
  const head = el('tr.kernel', { 'data-kernel': k.index }, cells), box = el('td', { colspan: columns.length });
  const detail = el('tr.detail', {}, box);
  let isOpen = false;
  box.parentNode.classList.add('closed');
  function toggle(to) {
    isOpen = to === undefined ? !isOpen : to;
    if (isOpen && !box.firstChild) box.append(el('div.inside', {}, ...about(d, k, open)));
    head.classList.toggle('open', isOpen);
    detail.classList.toggle('closed', !isOpen);
    button.setAttribute('aria-expanded', String(isOpen));
  }
  head.addEventListener('click', (e) => { if (!getSelection().toString() || e.target.closest('button')) toggle(); });
  return { kernel: k, head, detail, button, toggle, isOpen: () => isOpen };
}

// about is what a row opens to.
function about(d, k, open) {
  const fact = (name, value) => value ? el('span', {}, el('span.quiet', {}, name + ' '), value) : null;
  const plans = d.plans.map((p, i) => ({ p, i })).filter(({ p }) => p.kernels.includes(k.index)).sort((a, b) => b.p.runs - a.p.runs);
  const shown = plans.slice(0, 8);
  const newest = k.sources.findLastIndex((s) => s.text);
  return [
    el('p.facts', {}, fact('key', k.key), fact('runs', count(k.runs)), fact('timed', count(k.timed)), fact('bytes a run', bytes(k.bytes)),
      fact('arithmetic a run', k.flops ? flops(k.flops) + 'FLOP' : ''), fact('intensity', k.flops && k.bytes ? digits(k.flops / k.bytes) + thin + 'FLOP/B' : ''), fact('of all kernels’ time', k.per === null ? '' : percent(k.part))),
    el('div.pair-of', {},
      el('div', {}, el('h3', {}, 'Ops'), k.ops ? code(k.ops, 'ops') : empty('The ops were not recorded.')),
      el('div', {}, el('h3', {}, 'Generated code'),
        k.sources.length === 0 ? empty('None: the kernel is interpreted, or its code is unknown.') : k.sources.map((s, i) => source(s, i === newest)))),
    el('h3', {}, 'Plans that contain it'),
    plans.length === 0 ? empty(d.plansLeft > 0 ? 'The plans are left out.' : 'No plan is recorded.') : el('div.folds', {}, shown.map(({ p, i }, n) => lazy(planTitle(p, i), () => planBody(d, p, k.index, open), n === 0))),
    plans.length > shown.length ? note(`${plural(plans.length - shown.length, 'more plan')}: see Plans.`) : null,
  ].flat().filter(Boolean);
}

function source(s, open) {
  const lines = s.text ? s.text.replace(/\n$/, '').split('\n').length : 0;
  const title = [s.tier || 'code', s.class ? el('span.quiet', {}, ' ' + s.class) : null, el('span.quiet', {}, s.text ? ', ' + plural(lines, 'line') : ', left out')];
  return lazy(title.filter(Boolean), () => s.text ? code(s.text, 'generated code') : empty('The text is left out, because the page would be too large.'), open);
}
