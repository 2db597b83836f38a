// Elements and what moves over them. Texts come from users' programs and from drivers:
// they become text nodes here, never markup.

// el makes an element: el('td.num', {title: 'x'}, 'text', child).
function el(spec, attrs, ...children) {
  const [tag, ...classes] = spec.split('.');
  const e = document.createElement(tag);
  return fill(e, classes, attrs, children);
}

function svg(spec, attrs, ...children) {
  const [tag, ...classes] = spec.split('.');
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
  return fill(e, classes, attrs, children);
}

function fill(e, classes, attrs, children) {
  for (const c of classes) e.classList.add(c);
  for (const [name, value] of Object.entries(attrs || {})) {
    if (typeof value === 'function') e.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) e.setAttribute(name, value === true ? '' : value);
  }
  for (const c of children.flat()) {
    if (c !== null && c !== undefined && c !== false) e.append(c);
  }
  return e;
}

// section is a part of the page with a heading.
function section(id, title, ...children) {
  return el('section', { id, 'aria-labelledby': id + '-title' }, el('h2', { id: id + '-title' }, title), ...children);
}

function empty(text) { return el('p.empty', {}, text); }
function note(text) { return text ? el('p.note', {}, text) : null; }

// bar is a share as a bar, with its number beside it.
function bar(share, text, title) {
  const fill = el('i');
  fill.style.width = 100 * Math.max(0, Math.min(1, share)) + '%';
  return el('span.bar', { title }, el('span.track', { 'aria-hidden': 'true' }, fill), el('span', {}, text));
}

// code is a text as it is, with a button that copies it.
function code(text, label) {
  const button = el('button.copy', { type: 'button', 'aria-label': 'Copy ' + label, click: () => copy(text, pre, button) }, 'Copy');
  const pre = el('pre', { tabindex: 0, 'aria-label': label }, text);
  return el('div.code', {}, button, pre);
}

// copy falls back to the selection, as pages over HTTP have no clipboard.
async function copy(text, pre, button) {
  let done = false;
  try {
    await navigator.clipboard.writeText(text);
    done = true;
  } catch {
    const range = document.createRange();
    range.selectNodeContents(pre);
    const chosen = getSelection();
    chosen.removeAllRanges();
    chosen.addRange(range);
    done = document.execCommand('copy');
  }
  button.textContent = done ? 'Copied' : 'Press Ctrl+C';
  setTimeout(() => { button.textContent = 'Copy'; }, 1500);
}

// lazy is a fold whose contents are made when it is first opened.
function lazy(summary, make, open) {
  const d = el('details', {}, el('summary', {}, ...[summary].flat()));
  const once = () => { if (d.open && d.children.length === 1) d.append(...[make()].flat().filter(Boolean)); };
  d.addEventListener('toggle', once);
  if (open) {
    d.open = true;
    once();
  }
  return d;
}

const tip = document.getElementById('tip');

// showTip puts lines beside a place of the window; the first is a title.
function showTip(x, y, lines) {
  tip.replaceChildren(...lines.filter(Boolean).map((l, i) => el(i ? 'div' : 'b', {}, l)));
  tip.hidden = false;
  const w = tip.offsetWidth, h = tip.offsetHeight;
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - w - 8)) + 'px';
  tip.style.top = (y + 18 + h > innerHeight ? Math.max(4, y - h - 10) : y + 18) + 'px';
}
function hideTip() { tip.hidden = true; }

// whenResized calls draw with the width of an element now, whenever that changes, and when
// colours do. What belongs to a device that is not shown any more is let go by forget.
let watched = [];
const dark = matchMedia('(prefers-color-scheme: dark)');
dark.addEventListener('change', () => watched.forEach((w) => w.draw()));
function whenResized(e, draw) {
  let width = 0;
  const again = () => { if (width > 0) draw(width); };
  const observer = new ResizeObserver(() => {
    const w = Math.floor(e.clientWidth);
    if (w !== width) {
      width = w;
      again();
    }
  });
  observer.observe(e);
  watched.push({ draw: again, observer });
}
function forget() {
  watched.forEach((w) => w.observer.disconnect());
  watched = [];
  hideTip();
}

// colour is what a custom property of page.css has now.
function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
