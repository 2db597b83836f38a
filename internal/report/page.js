// The page: a head for the program, a tab for each device, and its parts.

const report = JSON.parse(document.getElementById('data').textContent);
const devices = (report.devices || []).map(prepare);
const page = document.getElementById('page');

function head() {
  const facts = [report.program, report.go, report.machine, written()].filter(Boolean);
  document.title = 'Millrace' + (report.program ? ': ' + report.program : '');
  document.getElementById('top').replaceChildren(el('h1', {}, 'Millrace'), el('p.facts', {}, facts.map((f) => el('span', {}, f))));
}

// written says how old the page is, and whether there will be a newer one.
function written() {
  const at = when(report.made);
  if (!at) return '';
  const open = devices.some((d) => !d.closed);
  return 'written ' + at + (report.every && open ? `, and again within 5${thin}s after the program runs anything: reload the page` : '');
}

// leftOut says what the page does not show.
function leftOut(d) {
  const parts = [[d.spansLeft, 'older span'], [d.plansLeft, 'plan'], [d.kernelsLeft, 'kernel'], [d.sourcesLeft, 'text of code', 'texts of code']]
    .filter(([n]) => n > 0).map(([n, one, many]) => plural(n, one, many));
  if (d.runsLeft > 0) parts.push(plural(d.runsLeft, 'launch', 'launches') + ' of kernels that are not listed');
  return parts.length ? 'Left out of this page: ' + words(parts) + '.' : '';
}

function tabs() {
  if (devices.length < 2) return null;
  const list = devices.map((d, i) => el('button', { type: 'button', role: 'tab', id: 'tab-' + i, 'aria-controls': 'device', click: () => show(i),
    keydown: (e) => {
      const to = { ArrowLeft: i - 1, ArrowRight: i + 1, Home: 0, End: devices.length - 1 }[e.key];
      if (to === undefined) return;
      e.preventDefault();
      show((to + devices.length) % devices.length);
      list[(to + devices.length) % devices.length].focus();
    } }, d.name || 'device ' + i, d.closed ? el('span.quiet', {}, ' closed') : null));
  return el('div.tabs', { role: 'tablist', 'aria-label': 'Devices' }, list);
}

function device(d) {
  const table = kernelsSection(d);
  const about = [d.description, when(d.opened) && 'opened ' + when(d.opened), d.closed ? `closed after ${duration(d.now)}` : d.now > 0 ? `open for ${duration(d.now)}` : ''].filter(Boolean);
  const parts = [table.view, findings(d), timeline(d, table.open), roofline(d, table.open), memory(d), plansSection(d, table.open), caches(d), counters(d)].filter(Boolean);
  return [
    el('p.headline', {}, headline(d)),
    el('p.facts', {}, devices.length < 2 ? el('b', {}, d.name) : null, about.map((f) => el('span', {}, f))),
    note(leftOut(d)),
    el('nav', { 'aria-label': 'Parts of the page' }, parts.map((p) => el('a', { href: '#' + p.id }, p.querySelector('h2').textContent))),
    ...parts,
  ].filter(Boolean);
}

const panel = el('div', { id: 'device', role: devices.length < 2 ? null : 'tabpanel' });
function show(i) {
  forget();
  panel.replaceChildren(...device(devices[i]));
  panel.setAttribute('aria-labelledby', 'tab-' + i);
  document.querySelectorAll('[role=tab]').forEach((t, n) => {
    t.setAttribute('aria-selected', String(n === i));
    t.tabIndex = n === i ? 0 : -1;
  });
}

head();
if (devices.length === 0) {
  page.replaceChildren(empty('No device was opened.'));
} else {
  const closed = report.devicesLeft > 0 ? note(`${plural(report.devicesLeft, 'device')} that ${report.devicesLeft === 1 ? 'was' : 'were'} closed earlier ${report.devicesLeft === 1 ? 'is' : 'are'} left out.`) : null;
  page.replaceChildren(...[tabs(), closed, panel].filter(Boolean));
  show(0);
}
