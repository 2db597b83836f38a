// This file draws memory in use over time, and lists the owners at the peak.

function memory(d) {
  const owners = ownersTable(d);
  if (d.memory.length === 0) return section('memory', 'Memory', empty(d.peak.b > 0 ? `At most ${bytes(d.peak.b)} were in use; changes over time were not collected.` : 'No memory was in use while the page was collected.'), owners);
  const box = el('div.plot');
  whenResized(box, (width) => box.replaceChildren(plotMemory(d, width)));
  return section('memory', 'Memory',
    el('div.tools', {}, el('span.legend', {}, el('span', {}, el('span.key.live'), 'in use'), el('span', {}, el('span.key.pool'), 'kept for reuse'))),
    box, owners);
}

function plotMemory(d, width) {
  const height = 200, m = { left: 66, right: 14, top: 22, bottom: 26 };
  const points = d.memory.slice().sort((a, b) => a.t - b.t);
  const from = Math.min(points[0].t, d.peak.b > 0 ? d.peak.t : Infinity), to = Math.max(d.now, points[points.length - 1].t, from + 1);
  const most = Math.max(1, d.peak.b, ...thinned(points, 4000).map((p) => p.l + p.p));
  const x = (t) => m.left + (t - from) / (to - from) * (width - m.left - m.right);
  const y = (b) => height - m.bottom - b / (most * 1.05) * (height - m.top - m.bottom);
  const g = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `Memory over time; at most ${bytes(d.peak.b)} were in use` });
  const vertical = steps(0, most * 1.05, 4), sideways = steps(from, to, (width - m.left) / 110);
  for (const b of vertical.at) g.append(svg('line.grid', { x1: m.left, x2: width - m.right, y1: y(b), y2: y(b) }), svg('text', { x: m.left - 7, y: y(b) + 4, 'text-anchor': 'end' }, b === 0 ? '0' : bytes(b).replace(/\.0+(?!\d)/, '')));
  for (const t of sideways.at) g.append(svg('text', { x: x(t), y: height - 8, 'text-anchor': 'middle' }, tick(t, sideways.step)));

  const shown = thinned(points, Math.max(50, width));
  const path = (value) => shown.map((p, i) => (i ? `H${x(p.t).toFixed(1)}V` : `M${x(p.t).toFixed(1)} `) + y(value(p)).toFixed(1)).join('') + `H${x(to).toFixed(1)}`;
  const close = `V${y(0)}H${x(shown[0].t)}Z`;
  g.append(svg('path.pool', { d: path((p) => p.l + p.p) + close }), svg('path.live', { d: path((p) => p.l) + close }));
  if (d.peak.b > 0) {
    const px = x(d.peak.t), end = px > width * 0.6;
    g.append(svg('line.peak', { x1: px, x2: px, y1: y(d.peak.b), y2: height - m.bottom }), svg('circle.peak', { cx: px, cy: y(d.peak.b), r: 4 }),
      svg('text', { x: px + (end ? -8 : 8), y: y(d.peak.b) - 7, 'text-anchor': end ? 'end' : 'start', class: 'peak-name' }, `peak ${bytes(d.peak.b)} at ${duration(d.peak.t)}`));
  }
  const cursor = svg('line.cursor', { y1: m.top, y2: height - m.bottom, visibility: 'hidden' });
  g.append(cursor, svg('rect', { x: m.left, y: 0, width: Math.max(0, width - m.left - m.right), height: height - m.bottom, fill: 'transparent',
    pointermove: (e) => {
      const px = e.clientX - g.getBoundingClientRect().left, t = from + (px - m.left) / (width - m.left - m.right) * (to - from);
      const p = points.findLast((p) => p.t <= t) || points[0];
      for (const end of ['x1', 'x2']) cursor.setAttribute(end, px);
      cursor.setAttribute('visibility', 'visible');
      showTip(e.clientX, e.clientY, [duration(t), bytes(p.l) + ' in use', bytes(p.p) + ' kept for reuse']);
    },
    pointerleave: () => { cursor.setAttribute('visibility', 'hidden'); hideTip(); } }));
  return g;
}

// thinned is at most so many points, of each stretch the highest.
function thinned(points, most) {
  if (points.length <= most) return points;
  const out = [];
  for (let i = 0; i < most; i++) {
    const part = points.slice(Math.floor(i * points.length / most), Math.floor((i + 1) * points.length / most));
    out.push(part.reduce((a, b) => b.l + b.p > a.l + a.p ? b : a));
  }
  return out;
}

function ownersTable(d) {
  const owners = d.peak.owners;
  if (!(d.peak.b > 0)) return null;
  if (owners.length === 0) return note(`The owners of the ${bytes(d.peak.b)} at the peak were not collected.`);
  const known = owners.reduce((n, o) => n + o.bytes, 0);
  return el('div', {}, el('h3', {}, `Owners of the ${bytes(d.peak.b)} at the peak`),
    el('div.wide', { tabindex: -1 }, el('table', {}, el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'Owner'), el('th', { scope: 'col' }, 'Line'), el('th.num', { scope: 'col' }, 'Blocks'), el('th.num', { scope: 'col' }, 'Size'), el('th', { scope: 'col' }, 'Share'))),
      el('tbody', {}, owners.map((o) => el('tr', {}, el('td.mono', {}, o.what), el('td.mono', {}, o.line || el('span.quiet', {}, '–')), el('td.num', {}, count(o.count)), el('td.num', {}, bytes(o.bytes)), el('td', {}, bar(o.bytes / d.peak.b, percent(o.bytes / d.peak.b)))))))),
    known < d.peak.b * 0.999 ? note(`${bytes(d.peak.b - known)} belonged to other owners.`) : null);
}
