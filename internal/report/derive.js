// What follows from a device's figures.

const kinds = ['segment', 'run', 'launch', 'exploration', 'compile', 'tuning', 'cache', 'fault', 'host op', 'wait'];
const SEGMENT = 0, RUN = 1, LAUNCH = 2, EXPLORE = 3, COMPILE = 4, TUNE = 5, FAULT = 7, HOST = 8, WAIT = 9;
const hues = 8; // kernels that have a colour of their own; all others share one

// prepare puts empty lists where there are none, and adds to each kernel what follows from
// its times: per (µs a run), rate (bytes a second), speed (operations a second), share of
// the nearer peak, and which one that is ('launch' where neither is what holds it up). They are null where no launch was timed.
function prepare(d) {
  for (const name of ['counters', 'plans', 'kernels', 'rows', 'spans', 'memory', 'findings']) d[name] = d[name] || [];
  d.peak.owners = d.peak.owners || [];
  for (const p of d.plans) for (const name of ['kernels', 'refused', 'lines']) p[name] = p[name] || [];
  const all = d.kernels.reduce((sum, k) => sum + k.micros, 0);
  const named = new Map();
  for (const k of d.kernels) named.set(k.name, (named.get(k.name) || 0) + 1);
  d.kernels.forEach((k, index) => {
    // Kernels of one name are told apart by how their keys begin.
    const label = !k.name ? k.key || 'kernel ' + index : named.get(k.name) > 1 && k.key ? k.name + ' ' + k.key.slice(0, 4) : k.name;
    Object.assign(k, { index, label, sources: k.sources || [], per: null, rate: null, speed: null, share: null, roof: '', part: all > 0 ? k.micros / all : 0 });
    if (!(k.timed > 0 && k.micros > 0 && k.runs > 0)) return;
    k.per = k.micros / k.runs;
    k.rate = k.bytes / k.per * 1e6;
    k.speed = k.flops / k.per * 1e6;
    const memory = d.bytes > 0 ? k.rate / d.bytes : 0, compute = d.flops > 0 ? k.speed / d.flops : 0;
    if (d.bytes > 0 || d.flops > 0) {
      k.share = Math.max(memory, compute);
      k.roof = memory >= compute ? 'memory' : 'arithmetic';
      // Less than half of the time is work, and all of it is near to what a launch costs.
      if (d.launch > 0 && k.share < 0.5 && k.per < 3 * d.launch) k.roof = 'launch';
    }
  });
  d.spent = all;
  d.timed = d.kernels.some((k) => k.per !== null);
  return d;
}

// counter is a counter's value, of any group; undefined where it is not known.
function counter(d, name, group) {
  const c = d.counters.find((c) => c.name === name && (!group || c.group === group));
  return c && c.value;
}

function kernelName(d, i) {
  return d.kernels[i] ? d.kernels[i].label : 'a kernel that is left out';
}
function kernelColour(i) { return colour(i >= 0 && i < hues ? '--k' + i : '--k-other'); }
function swatch(i) {
  const s = el('span.swatch', { 'aria-hidden': 'true' });
  s.style.background = `var(--k${i >= 0 && i < hues ? i : '-other'})`;
  return s;
}

// headline says in a sentence or two what happened.
function headline(d) {
  const ops = counter(d, 'Ops'), segments = counter(d, 'Segments'), hits = counter(d, 'PlanHits');
  const launches = counter(d, 'Kernels') ?? d.kernels.reduce((sum, k) => sum + k.runs, 0);
  const kernels = d.kernels.length + d.kernelsLeft;
  if (!launches && !kernels) {
    return ops ? `${plural(ops, 'op was', 'ops were')} recorded, and nothing ran yet: values are computed when the program reads them.` : 'No launches yet.';
  }
  const of = `${plural(launches, 'launch', 'launches')} of ${plural(kernels, 'kernel')}`;
  const parts = [ops === undefined ? of : `${plural(ops, 'op')} ran as ${of}`];
  if (segments > 0 && hits !== undefined) parts.push(`plans were known for ${percent(hits / segments)} of the segments`);
  if (d.timed && d.now > 0) parts.push(`kernels took ${duration(d.spent)} of ${duration(d.now)}`);
  return parts.join('; ') + '.';
}
