// Cache hits, and all counters.

function caches(d) {
  const of = (name, hits, all) => hits === undefined || !(all > 0) ? null : el('tr', {}, el('td', {}, name), el('td.num', {}, count(hits)), el('td.num', {}, count(all)), el('td', {}, bar(hits / all, percent(hits / all))));
  const disk = (name) => counter(d, name, 'cache on disk');
  const rows = [
    of('segments with a known plan', counter(d, 'PlanHits'), counter(d, 'Segments')),
    of('plans and code found on disk', disk('Hits'), (disk('Hits') || 0) + (disk('Misses') || 0)),
    of('blocks of memory used again', counter(d, 'PoolHits'), counter(d, 'Allocs')),
  ].filter(Boolean);
  return section('caches', 'Caches', rows.length === 0 ? empty('No cache was used yet.') : el('div.wide', { tabindex: -1 }, el('table.caches', {},
    el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'What'), el('th.num', { scope: 'col' }, 'Hits'), el('th.num', { scope: 'col' }, 'Of'), el('th', { scope: 'col' }, 'Share'))), el('tbody', {}, rows))));
}

// counters are grouped as they come, those that are not 0 first.
function counters(d) {
  if (d.counters.length === 0) return section('counters', 'Counters', empty('No counters are known.'));
  const groups = [...new Set(d.counters.map((c) => c.group))];
  return section('counters', 'Counters', el('div.groups', {}, groups.map((name) => {
    const all = d.counters.filter((c) => c.group === name), some = all.filter((c) => c.value !== 0), zero = all.filter((c) => c.value === 0);
    return el('div', {}, el('h3', {}, name), el('table.counters', {}, el('tbody', {}, [...some, ...zero].map((c) =>
      el('tr' + (c.value === 0 ? '.zero' : ''), {}, el('th', { scope: 'row' }, c.name), el('td.num', { title: count(c.value) }, counted(c)))))));
  })));
}

// counted has the unit that a counter's name says.
function counted(c) {
  if (c.value !== 0 && /Bytes/.test(c.name)) return bytes(c.value);
  if (c.value !== 0 && /Nanos$|^TuneTaken$/.test(c.name)) return duration(c.value / 1000);
  return count(c.value);
}
