// The time line: rows of spans on a canvas, which is quick for tens of thousands.

// timeline shows a device's spans; open is called with a kernel that was clicked.
function timeline(d, open) {
  if (d.spans.length === 0) {
    return section('timeline', 'Time line', empty(d.rows.length || d.kernels.length ? 'No times were collected.' : 'Nothing ran yet.'));
  }
  const { rows, spans, height } = layOut(d);
  const overview = 26, axis = 20, top = overview + axis + 6, bottom = 4;
  const first = spans.reduce((m, s) => Math.min(m, s.s), Infinity), last = spans.reduce((m, s) => Math.max(m, s.s + s.d), -Infinity);
  const pad = Math.max(1, last - first) * 0.005, whole = { from: first >= 0 ? Math.max(0, first - pad) : first - pad, to: last + pad };
  const view = { ...whole };
  let width = 0, gutter = 0, busy = null;

  const canvas = el('canvas', { tabindex: 0, role: 'img', 'aria-label': `Time line of ${plural(spans.length, 'span')}. Plus and minus zoom, arrow keys move, 0 shows all.` });
  const box = el('div.plot', {}, canvas);
  const scale = () => (width - gutter) / (view.to - view.from);
  const x = (t) => gutter + (t - view.from) * scale();
  const time = (px) => view.from + (px - gutter) / scale();
  const inAll = (px) => whole.from + (px - gutter) / (width - gutter) * (whole.to - whole.from);

  function show(from, to) {
    const span = Math.min(whole.to - whole.from, Math.max(0.05, to - from));
    from = Math.min(Math.max(whole.from, from), whole.to - span);
    Object.assign(view, { from, to: from + span });
    requestDraw();
  }
  function zoom(factor, at = (view.from + view.to) / 2) { show(at - (at - view.from) * factor, at + (view.to - at) * factor); }
  function pan(share) {
    const by = share * (view.to - view.from);
    show(view.from + by, view.to + by);
  }

  let due = false;
  function requestDraw() {
    if (due) return;
    due = true;
    requestAnimationFrame(() => { due = false; draw(); });
  }

  function resize(w) {
    width = w;
    gutter = w < 700 ? 84 : 116;
    busy = null;
    const ratio = devicePixelRatio || 1, h = top + height + bottom;
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(h * ratio);
    canvas.style.height = h + 'px';
    canvas.getContext('2d').setTransform(ratio, 0, 0, ratio, 0, 0);
    draw();
  }

  // density is how busy each pixel of the overview is, of 1.
  function density() {
    const n = Math.max(1, width - gutter), per = (whole.to - whole.from) / n;
    const sums = new Float64Array(n);
    for (const s of spans) {
      if (s.k === SEGMENT || s.k === RUN || s.k >= FAULT) continue;
      const a = (s.s - whole.from) / per, b = Math.max((s.s + s.d - whole.from) / per, a + 0.02);
      for (let i = Math.max(0, Math.floor(a)); i < Math.min(n, b); i++) sums[i] += Math.min(b, i + 1) - Math.max(a, i);
    }
    return sums;
  }

  function draw() {
    if (!width) return;
    const c = canvas.getContext('2d'), ink = colour('--ink'), quiet = colour('--quiet'), line = colour('--line'), host = colour('--host'), run = colour('--run'), onKernel = colour('--on-kernel');
    const palette = Array.from({ length: hues + 1 }, (_, i) => kernelColour(i));
    c.clearRect(0, 0, width, top + height + bottom);
    c.font = '12px ' + colour('--sans');
    c.textBaseline = 'middle';

    busy = busy || density();
    c.fillStyle = colour('--wash');
    c.fillRect(gutter, 0, width - gutter, overview);
    c.fillStyle = host;
    busy.forEach((b, i) => {
      const h = Math.max(b > 0 ? 1 : 0, Math.min(1, b) * (overview - 4));
      c.fillRect(gutter + i, overview - h, 1, h);
    });
    const all = (t) => gutter + (t - whole.from) / (whole.to - whole.from) * (width - gutter);
    if (view.to - view.from < (whole.to - whole.from) * 0.999) {
      c.fillStyle = colour('--veil');
      c.fillRect(gutter, 0, all(view.from) - gutter, overview);
      c.fillRect(all(view.to), 0, width - all(view.to), overview);
      c.strokeStyle = colour('--accent');
      c.lineWidth = 1.5;
      c.strokeRect(all(view.from), 0.75, Math.max(2, all(view.to) - all(view.from)), overview - 1.5);
    }
    c.fillStyle = quiet;
    c.fillText('overview', 0, overview / 2);

    const { step, at } = steps(view.from, view.to, (width - gutter) / 110);
    c.lineWidth = 1;
    for (const t of at) {
      const px = Math.round(x(t)) + 0.5;
      c.strokeStyle = line;
      c.beginPath();
      c.moveTo(px, overview + axis);
      c.lineTo(px, top + height);
      c.stroke();
      c.fillStyle = quiet;
      const label = tick(t, step);
      c.fillText(label, Math.min(px + 3, width - c.measureText(label).width - 1), overview + 12);
    }
    c.strokeStyle = line;
    for (const r of rows) {
      c.beginPath();
      c.moveTo(0, top + r.top + 0.5);
      c.lineTo(width, top + r.top + 0.5);
      c.stroke();
      c.fillStyle = ink;
      c.fillText(shorten(c, r.label, gutter - 10), 0, top + r.top + 16);
    }

    c.save();
    c.beginPath();
    c.rect(gutter, overview + axis, width - gutter, top + height);
    c.clip();
    const drawn = new Map(); // of each lane and colour: the pixel up to which it is full
    for (const s of spans) {
      if (s.s > view.to || s.s + s.d < view.from) continue;
      const a = Math.max(gutter - 2, x(s.s)), b = Math.min(width + 2, Math.max(x(s.s + s.d), a + 1)), y = top + s.y;
      if (s.k === FAULT) {
        fault(c, x(s.s), y, s.h);
        continue;
      }
      const fill = s.k === LAUNCH ? palette[s.i >= 0 && s.i < hues ? s.i : hues] : s.k === RUN ? run : host;
      const key = y + fill;
      if (b - a < 1.5 && drawn.get(key) >= b) continue;
      drawn.set(key, Math.ceil(a + 0.5));
      c.fillStyle = fill;
      c.fillRect(a, y, b - a > 3 ? b - a - 0.6 : b - a, s.h);
      if (s.k !== SEGMENT && s.k !== RUN && b - a > 46) {
        c.fillStyle = s.k === LAUNCH ? onKernel : ink;
        const label = s.i >= 0 && (s.k === LAUNCH || s.k === COMPILE || s.k === TUNE) ? kernelName(d, s.i) : s.n || kinds[s.k];
        c.fillText(shorten(c, label, b - a - 10), a + 5, y + s.h / 2 + 0.5);
      }
    }
    c.restore();
    canvas.dataset.from = view.from;
    canvas.dataset.to = view.to;
  }

  function fault(c, px, y, h) {
    c.fillStyle = colour('--bad');
    c.fillRect(px - 0.75, y, 1.5, h);
    c.beginPath();
    c.moveTo(px - 5, y - 3);
    c.lineTo(px + 5, y - 3);
    c.lineTo(px, y + 5);
    c.fill();
  }

  // hit is the span at a place: the nearest that lies there, those on top first.
  function hit(px, py) {
    if (px < gutter) return null;
    const t = time(px), near = 3 / scale();
    let best = null, distance = Infinity;
    for (let i = spans.length - 1; i >= 0; i--) {
      const s = spans[i], y = py - top;
      if (y < s.y || y > s.y + s.h) continue;
      const far = Math.max(0, s.s - t, t - s.s - s.d);
      if (far <= near && far < distance) {
        best = s;
        distance = far;
        if (far === 0) break;
      }
    }
    return best;
  }

  function describe(s) {
    const named = s.k === LAUNCH || s.k === COMPILE || s.k === TUNE, k = named ? d.kernels[s.i] : null;
    const title = s.k === LAUNCH ? kernelName(d, s.i) : named ? kinds[s.k] + ' of ' + kernelName(d, s.i) : kinds[s.k];
    const size = !named && s.i > 0 ? ', ' + plural(s.i, 'op') : '';
    const rate = s.k === LAUNCH && k && s.d > 0 ? [k.bytes && bytes(k.bytes / s.d * 1e6) + '/s', k.flops && flops(k.flops / s.d * 1e6) + 'FLOP/s'].filter(Boolean).join(', ') : '';
    return [title, s.k === FAULT ? 'at ' + duration(s.s) : duration(s.d) + ' from ' + duration(s.s) + size, rate, s.n];
  }

  let drag = null;
  const place = (e) => {
    const r = canvas.getBoundingClientRect();
    return [e.clientX - r.left, e.clientY - r.top];
  };
  canvas.addEventListener('pointerdown', (e) => {
    if (e.button) return;
    const [px, py] = place(e);
    drag = { px, py, brush: py < overview, from: view.from, to: view.to, moved: false };
    canvas.setPointerCapture(e.pointerId);
    hideTip();
  });
  canvas.addEventListener('pointermove', (e) => {
    const [px, py] = place(e);
    if (!drag) {
      const s = hit(px, py);
      canvas.style.cursor = py < overview && px > gutter ? 'col-resize' : s && s.k === LAUNCH ? 'pointer' : 'grab';
      if (s) showTip(e.clientX, e.clientY, describe(s));
      else hideTip();
      return;
    }
    drag.moved = drag.moved || Math.abs(px - drag.px) > 3;
    if (!drag.moved) return;
    if (drag.brush) {
      const a = inAll(drag.px), b = inAll(px);
      show(Math.min(a, b), Math.max(a, b));
    } else {
      canvas.style.cursor = 'grabbing';
      const by = (drag.px - px) / (width - gutter) * (drag.to - drag.from);
      show(drag.from + by, drag.to + by);
    }
  });
  canvas.addEventListener('pointerup', (e) => {
    const was = drag, [px, py] = place(e);
    drag = null;
    if (!was || was.moved) return;
    if (was.brush) {
      const half = (view.to - view.from) / 2;
      show(inAll(px) - half, inAll(px) + half);
      return;
    }
    const s = hit(px, py);
    if (s && (s.k === LAUNCH || s.k === COMPILE || s.k === TUNE) && d.kernels[s.i]) open(s.i);
  });
  canvas.addEventListener('pointercancel', () => { drag = null; });
  canvas.addEventListener('pointerleave', hideTip);
  canvas.addEventListener('dblclick', (e) => {
    const s = hit(...place(e));
    if (s && s.d > 0) show(s.s - s.d, s.s + 2 * s.d);
  });
  // The wheel scrolls the page, until the time line was chosen by a click or by Tab.
  canvas.addEventListener('wheel', (e) => {
    if (!e.ctrlKey && !e.metaKey && document.activeElement !== canvas) return;
    e.preventDefault();
    if (Math.abs(e.deltaX) > Math.abs(e.deltaY) || e.shiftKey) pan((e.deltaX || e.deltaY) / (width - gutter));
    else zoom(Math.exp(Math.max(-120, Math.min(120, e.deltaY)) * 0.003), time(Math.max(gutter, place(e)[0])));
  }, { passive: false });
  const keys = { '+': () => zoom(0.6), '=': () => zoom(0.6), '-': () => zoom(1 / 0.6), 0: () => show(whole.from, whole.to), ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), Home: () => show(whole.from, whole.from + view.to - view.from), End: () => show(whole.to - view.to + view.from, whole.to) };
  canvas.addEventListener('keydown', (e) => {
    if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    keys[e.key]();
  });

  const button = (label, text, f) => el('button', { type: 'button', 'aria-label': label, title: label, click: f }, text);
  const tools = el('div.tools', {},
    button('Zoom in', '+', () => zoom(0.5)), button('Zoom out', '−', () => zoom(2)),
    button('Earlier', '←', () => pan(-0.5)), button('Later', '→', () => pan(0.5)),
    button('Show the whole time', 'All', () => show(whole.from, whole.to)), legend(spans));
  whenResized(box, resize);
  return section('timeline', 'Time line', tools, box,
    note('Click, then scroll to zoom. Drag to move; drag in the overview to choose a stretch. A click on a launch opens its kernel.'),
    note(d.sampled),
    d.spansLeft > 0 ? note(`${plural(d.spansLeft, 'older span is', 'older spans are')} left out.`) : null);
}

// tick is a time on the axis, as exact as the step between two.
function tick(t, step) {
  const [unit, per] = step >= 1e6 ? ['s', 1e6] : step >= 1e3 ? (t >= 1e6 ? ['s', 1e6] : ['ms', 1e3]) : (t >= 1e6 ? ['ms', 1e3] : ['µs', 1]);
  const decimals = Math.max(0, Math.min(6, -Math.floor(Math.log10(step / per) + 1e-9)));
  return (t / per).toLocaleString('en-US', { minimumFractionDigits: decimals, maximumFractionDigits: decimals }) + thin + unit;
}

function shorten(c, text, room) {
  if (c.measureText(text).width <= room) return text;
  let n = Math.max(0, Math.floor(text.length * room / c.measureText(text).width) - 1);
  while (n > 0 && c.measureText(text.slice(0, n) + '…').width > room) n--;
  return n > 0 ? text.slice(0, n) + '…' : '';
}

function legend(spans) {
  const has = new Set(spans.map((s) => s.k));
  const item = (k, style, text) => has.has(k) ? el('span', {}, el('span.key.' + style, { 'aria-hidden': 'true' }), text) : null;
  return el('span.legend', {}, item(SEGMENT, 'thinly', 'segment: planning, binding and submission'), item(RUN, 'run', 'run'),
    item(LAUNCH, 'launch', 'launch, in its kernel’s colour'), item(FAULT, 'fault', 'fault'));
}
