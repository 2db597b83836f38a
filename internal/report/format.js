// Numbers as people read them. A thin space lies between a number and its unit, and it
// does not break.
const thin = '\u202f';

// digits has three digits that count.
function digits(x) {
  const a = Math.abs(x);
  if (a >= 99.95 || a === 0) return count(Math.round(x));
  if (a >= 9.995) return x.toFixed(1);
  if (a >= 0.0995) return x.toFixed(2);
  return x.toPrecision(2);
}

function count(n) { return Number(n).toLocaleString('en-US'); }

// scaled divides by thousands until the number is short.
function scaled(x, units) {
  let i = 0;
  while (i + 1 < units.length && Math.abs(x) >= 999.5) {
    x /= 1000;
    i++;
  }
  return (i === 0 && units[0] !== 'µs' && Number.isInteger(x) ? count(x) : digits(x)) + thin + units[i];
}

function bytes(x) { return scaled(x, ['B', 'kB', 'MB', 'GB', 'TB']); }
function flops(x) { return scaled(x, ['', 'k', 'M', 'G', 'T']).trim(); }

// duration is of microseconds.
function duration(us) {
  const a = Math.abs(us);
  if (a === 0) return '0' + thin + 's';
  if (a < 1) return digits(us * 1000) + thin + 'ns';
  if (a < 120e6) return scaled(us, ['µs', 'ms', 's']);
  const s = Math.round(us / 1e6);
  return s < 7200 ? Math.floor(s / 60) + thin + 'min ' + (s % 60) + thin + 's' : Math.floor(s / 3600) + thin + 'h ' + Math.floor((s % 3600) / 60) + thin + 'min';
}

function percent(share) {
  const p = 100 * share;
  return (p === 0 || p >= 9.95 ? Math.round(p) : p < 0.1 ? '< 0.1' : p.toFixed(1)) + thin + '%';
}

function plural(n, one, many) { return count(n) + ' ' + (n === 1 ? one : many || one + 's'); }

// list joins words: a, b and c.
function words(list) {
  return list.length < 2 ? list.join('') : list.slice(0, -1).join(', ') + ' and ' + list[list.length - 1];
}

function when(text) {
  const t = new Date(text);
  return Number.isNaN(t.getTime()) || t.getUTCFullYear() < 1970 ? '' : t.toISOString().replace('T', ' ').slice(0, 19) + ' UTC';
}

// steps are round numbers between two, at most so many.
function steps(from, to, most) {
  const raw = (to - from) / Math.max(1, most);
  if (!(raw > 0)) return { step: 1, at: [] };
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= raw * 0.9999);
  const at = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to && at.length < 100; i++) at.push(i * step + 0);
  return { step, at };
}
