// Where the spans of a time line lie: a row for each stream and each kind of background
// work, and in it lanes, so that nothing hides what runs beside it.

const most = 6; // lanes of a kind; what is more lies over the last

// layOut gives each span its lane's top and height, and rows theirs. Launches lie within
// their run.
function layOut(d) {
  const rows = d.rows.map((label) => ({ label, groups: { segment: [], run: [], launch: [], other: [] } }));
  const spans = d.spans.filter((s) => s.r >= 0 && s.r < rows.length);
  for (const s of spans) {
    const g = rows[s.r].groups;
    (s.k === SEGMENT ? g.segment : s.k === RUN ? g.run : s.k === LAUNCH ? g.launch : g.other).push(s);
  }
  let y = 0;
  for (const row of rows) {
    const { segment, run, launch, other } = row.groups;
    for (const g of [segment, run, launch, other]) g.sort((a, b) => a.s - b.s);
    row.top = y;
    y += 6;
    const add = (group, height, gap) => {
      const lanes = assign(group);
      for (const s of group) Object.assign(s, { y: y + s.lane * (height + gap), h: height });
      y += lanes * (height + gap);
    };
    add(segment, 4, 1);
    if (run.length === 0) add(launch, 16, 2);
    add(run, 22, 2);
    if (run.length > 0) within(launch, run);
    add(other.filter((s) => s.k !== FAULT), 12, 2);
    y = Math.max(y, row.top + 22);
    for (const s of other) if (s.k === FAULT) Object.assign(s, { y: row.top + 4, h: y - row.top - 4 });
    y += 5;
    row.bottom = y;
  }
  // Runs below the launches that lie in them.
  const order = [SEGMENT, RUN, EXPLORE, TUNE, COMPILE, 6, HOST, WAIT, LAUNCH, FAULT];
  spans.sort((a, b) => order.indexOf(a.k) - order.indexOf(b.k) || a.s - b.s);
  return { rows, spans, height: y };
}

// assign puts spans, in the order of their starts, each in the first lane that is free.
function assign(group) {
  const ends = [];
  for (const s of group) {
    let lane = ends.findIndex((end) => end <= s.s + 1e-6);
    if (lane < 0) lane = ends.length < most ? ends.length : most - 1;
    ends[lane] = Math.max(ends[lane] || 0, s.s + s.d);
    s.lane = lane;
  }
  return ends.length;
}

// within puts launches into the run that goes on at their middle; both are in order.
function within(launches, runs) {
  let first = 0;
  for (const l of launches) {
    const middle = l.s + l.d / 2;
    while (first + 1 < runs.length && runs[first].s + runs[first].d < middle && runs[first + 1].s <= middle) first++;
    let run = runs[first];
    for (let i = first; i < runs.length && runs[i].s <= middle; i++) if (runs[i].s + runs[i].d >= middle) run = runs[i];
    Object.assign(l, { y: run.y + 3, h: 16 });
  }
}
