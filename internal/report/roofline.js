// The roofline plot: what a kernel reaches, against what its bytes and its arithmetic
// allow on this machine. Both axes are logarithmic.

function roofline(d, open) {
  const dots = d.kernels.filter((k) => k.per !== null && k.flops > 0 && k.bytes > 0).map((k) => ({ k, x: k.flops / k.bytes, y: k.speed }));
  const without = d.kernels.filter((k) => k.per !== null && !(k.flops > 0 && k.bytes > 0)).length;
  const none = without ? note(`${plural(without, 'kernel')} without floating-point arithmetic ${without === 1 ? 'is' : 'are'} in the table only.`) : null;
  if (dots.length === 0) {
    return section('roofline', 'Roofline', empty(d.kernels.length === 0 ? 'No launches yet.' : !d.timed ? 'Times were not collected.' : 'No kernel does floating-point arithmetic.'), none);
  }
  const box = el('div.plot');
  whenResized(box, (width) => box.replaceChildren(plotRoofs(d, dots, width, open)));
  return section('roofline', 'Roofline', box, note('Each dot is a kernel; its area shows the kernel’s time. A click opens the kernel.' +
    (d.bytes && d.flops ? '' : ' Roofs of this machine that are unknown are missing.')), none);
}

function plotRoofs(d, dots, width, open) {
  const height = Math.round(Math.max(260, Math.min(400, width * 0.45)));
  const m = { left: 58, right: 14, top: 14, bottom: 40 };
  const ridge = d.bytes && d.flops ? d.flops / d.bytes : 0;
  const xs = dots.map((p) => p.x).concat(ridge ? [ridge] : []), ys = dots.map((p) => p.y).concat(d.flops ? [d.flops] : []);
  const x = logScale(Math.min(...xs) / 2, Math.max(...xs) * 3, m.left, width - m.right);
  const y = logScale(Math.min(...ys) / 2, Math.max(...ys) * 2.5, height - m.bottom, m.top);
  const g = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'Roofline plot' });
  const text = (px, py, t, attrs) => svg('text', { x: px, y: py, ...attrs }, t);

  for (const v of x.ticks) g.append(svg('line.grid', { x1: x(v), x2: x(v), y1: m.top, y2: height - m.bottom }), text(x(v), height - m.bottom + 16, short(v), { 'text-anchor': 'middle' }));
  for (const v of y.ticks) g.append(svg('line.grid', { x1: m.left, x2: width - m.right, y1: y(v), y2: y(v) }), text(m.left - 7, y(v) + 4, short(v / 1e9), { 'text-anchor': 'end' }));
  g.append(text((m.left + width - m.right) / 2, height - 6, 'Arithmetic intensity, FLOP/B', { 'text-anchor': 'middle' }),
    text(0, 0, 'GFLOP/s', { transform: `translate(12 ${(m.top + height - m.bottom) / 2}) rotate(-90)`, 'text-anchor': 'middle' }));

  const clip = svg('clipPath', { id: 'roof-clip' }, svg('rect', { x: m.left, y: m.top, width: width - m.left - m.right, height: height - m.top - m.bottom }));
  const taken = [], lines = []; // labels, and lines that no label should lie on
  const roof = svg('g', { 'clip-path': 'url(#roof-clip)' });
  g.append(clip, roof);
  if (d.bytes) {
    const end = ridge || x.max;
    lines.push([x(x.min), y(x.min * d.bytes), x(end), y(end * d.bytes)]);
    roof.append(svg('line.roof', { x1: x(x.min), y1: y(x.min * d.bytes), x2: x(end), y2: y(end * d.bytes) }));
    // Beside the slope, where that is within the plot.
    const from = Math.max(x.min, y.min / d.bytes), at = Math.sqrt(from * Math.min(end, y.max / d.bytes));
    const slope = -Math.atan2(y(at) - y(at * 10), x(at * 10) - x(at)) * 180 / Math.PI;
    roof.append(text(0, -6, bytes(d.bytes) + '/s', { transform: `translate(${x(at)} ${y(at * d.bytes)}) rotate(${slope})`, 'text-anchor': 'middle', class: 'roof-name' }));
    taken.push({ a: x(at) - 34, w: 62, at: y(at * d.bytes) - 14 }, { a: x(at) - 10, w: 45, at: y(at * d.bytes) - 24 });
  }
  if (d.flops) {
    roof.append(svg('line.roof', { x1: x(ridge || x.min), y1: y(d.flops), x2: x(x.max), y2: y(d.flops) }));
    lines.push([x(ridge || x.min), y(d.flops), x(x.max), y(d.flops)]);
    // At the roof's left end, as kernels near it are further right.
    const left = Math.min(x(ridge || x.min) + 6, width - m.right - 96);
    taken.push({ a: left, w: 92, at: y(d.flops) - 10 });
    g.append(text(left, y(d.flops) - 6, flops(d.flops) + 'FLOP/s', { class: 'roof-name' }));
  }

  const most = width < 700 ? 18 : 26; // characters of a label
  const largest = Math.max(...dots.map((p) => p.k.micros));
  const marks = dots.slice().sort((a, b) => b.k.micros - a.k.micros).map((p) => {
    const r = Math.max(3.5, 17 * Math.sqrt(p.k.micros / largest)), name = kernelName(d, p.k.index);
    const about = `${name}: ${flops(p.k.speed)}FLOP/s, ${bytes(p.k.rate)}/s`;
    const dot = svg('circle.dot', { cx: x(p.x), cy: y(p.y), r, tabindex: 0, role: 'button', 'aria-label': about, 'data-kernel': p.k.index,
      click: () => open(p.k.index),
      keydown: (e) => { if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); open(p.k.index); } },
      pointermove: (e) => showTip(e.clientX, e.clientY, [name, `${flops(p.k.speed)}FLOP/s at ${digits(p.x)} FLOP/B`, `${bytes(p.k.rate)}/s`, p.k.share === null ? '' : `${percent(p.k.share)} of the ${p.k.roof} roof`, `${duration(p.k.micros)} in ${plural(p.k.runs, 'run')}`]),
      pointerleave: hideTip });
    dot.style.fill = kernelColourOf(p.k.index);
    return { dot, name, cx: x(p.x), cy: y(p.y), r };
  });
  g.append(...marks.map((k) => k.dot));
  for (const k of marks.slice(0, 12)) {
    const label = k.name.length > most ? k.name.slice(0, most - 1) + '…' : k.name, w = label.length * 6.8, gap = k.r + 5;
    // Where a label may be: its left end and its middle line.
    const places = [[k.cx + gap, k.cy], [k.cx - gap - w, k.cy], [k.cx - w / 2, k.cy + k.r + 10], [k.cx - w / 2, k.cy - k.r - 9]];
    const free = ([a, at]) => a > m.left && a + w < width - m.right && at > m.top + 6 && at < height - m.bottom - 6 &&
      !taken.some((o) => Math.abs(o.at - at) < 14 && o.a < a + w && a < o.a + o.w) &&
      !marks.some((o) => o !== k && Math.abs(o.cy - at) < o.r + 6 && o.cx + o.r > a && o.cx - o.r < a + w) &&
      !lines.some(([x1, y1, x2, y2]) => {
        const on = (px) => y1 + (Math.max(x1, Math.min(x2, px)) - x1) * (y2 - y1) / (x2 - x1);
        return a < x2 && a + w > x1 && Math.max(on(a), on(a + w)) > at - 8 && Math.min(on(a), on(a + w)) < at + 8;
      });
    const place = places.find(free);
    if (!place) continue;
    taken.push({ a: place[0], at: place[1], w });
    g.append(text(place[0] + (place === places[1] ? w : place === places[0] ? 0 : w / 2), place[1] + 4, label, { class: 'dot-name', 'text-anchor': place === places[1] ? 'end' : place === places[0] ? 'start' : 'middle' }));
  }
  return g;
}

function kernelColourOf(i) { return `var(--k${i < hues ? i : '-other'})`; }

function short(v) { return v >= 1e-3 && v < 1e4 ? String(Number(v.toPrecision(1))) : v.toExponential(0).replace('e+', 'e'); }

// logScale maps min to max onto from to to, and has ticks at powers of ten.
function logScale(min, max, from, to) {
  const a = Math.log10(min), b = Math.log10(max);
  const f = (v) => from + (Math.log10(v) - a) / (b - a) * (to - from);
  const every = Math.max(1, Math.ceil((b - a) / 8));
  const ticks = [];
  for (let p = Math.ceil(a); p <= b; p += every) ticks.push(10 ** p);
  return Object.assign(f, { min, max, ticks });
}
