// Charts as SVG: lines over the last 2 to 15 minutes, and stacked columns of the last two minutes.
import { el, setText, svg } from "/page/dom.js";

const BUCKET_SECONDS = 5;
const BUCKETS = 180;
// A line has this width at least, and grows with the time for which there are numbers.
const FEWEST_BUCKETS = 24;
const COLUMNS = 120;
// The highest column leaves this part of the chart, in percent, to its label.
const TOP = 14;

// Means of a field in buckets of five seconds. Buckets begin at fixed times, so a drawn value does not change its place.
export function means(points, field, now) {
  const last = Math.floor(now / BUCKET_SECONDS);
  const sums = Array.from({ length: BUCKETS }, () => [0, 0]);
  for (const point of points) {
    const index = BUCKETS - 1 - (last - Math.floor(point.at / BUCKET_SECONDS));
    if (index < 0 || index >= BUCKETS || point[field] === null) continue;
    sums[index][0] += point[field];
    sums[index][1]++;
  }
  return sums.map(([sum, number]) => (number ? sum / number : null));
}

// A path through the values, with a gap for each missing one. `closed` leads it down to the baseline.
function path(values, scale, closed) {
  let text = "", start = null;
  const end = (index) => {
    if (start !== null && closed) text += `L${index},100L${start},100Z`;
    start = null;
  };
  values.forEach((value, index) => {
    if (value === null) return end(index - 1);
    text += `${start === null ? "M" : "L"}${index},${(100 - value * scale).toFixed(2)}`;
    if (start === null) {
      start = index;
      // A value without neighbours is a short stroke.
      if (values[index + 1] === null || values[index + 1] === undefined) text += "h.6";
    }
  });
  end(values.length - 1);
  return text;
}

// A line with an area below it for each of the series: [{ field, tone }].
export function sparkline(label, series) {
  const box = svg("svg", { preserveAspectRatio: "none", role: "img" });
  const span = el("span", { class: "span", "aria-hidden": "true" });
  const lines = series.map(({ field, tone }, index) => {
    const area = index === 0 ? svg("path", { class: `area tone-${tone}` }) : null;
    const line = svg("path", { class: `line tone-${tone}` });
    if (area) box.append(area);
    box.append(line);
    return { field, area, line };
  });
  const node = el("dd", { class: "spark" }, box);
  const update = (points, now) => {
    const all = lines.map(({ field }) => means(points, field, now));
    const most = Math.max(...all.flat().map((value) => value ?? 0));
    const first = points.length ? BUCKETS - 1 - Math.floor(now / BUCKET_SECONDS) + Math.floor(points[0].at / BUCKET_SECONDS) : BUCKETS;
    const from = Math.max(0, Math.min(first, BUCKETS - FEWEST_BUCKETS));
    const minutes = Math.round((BUCKETS - from) * BUCKET_SECONDS / 60);
    box.setAttribute("viewBox", `${from} 0 ${BUCKETS - 1 - from} 104`);
    box.setAttribute("aria-label", `${label}, last ${minutes} minutes`);
    setText(span, `${minutes} min`);
    const scale = most > 0 ? 92 / most : 0;
    lines.forEach(({ area, line }, index) => {
      line.setAttribute("d", path(all[index], scale, false));
      area?.setAttribute("d", path(all[index], scale, true));
    });
  };
  return { node, span, update };
}

// Columns of stacked numbers, one for each second. `tones` are the colours from the bottom to the top.
export function columns(label, tones) {
  const box = svg("svg", { viewBox: `0 0 ${COLUMNS} 100`, preserveAspectRatio: "none", role: "img", "aria-label": `${label}, last two minutes` });
  box.append(svg("line", { x1: 0, x2: COLUMNS, y1: TOP, y2: TOP }));
  const blocks = tones.map((tone) => svg("path", { class: `block tone-${tone}` }));
  box.append(...blocks);
  const most = el("span", { class: "top-label" });
  const chart = el("div", { class: "chart" }, most);
  chart.append(box);
  const axis = el("div", { class: "axis", "aria-hidden": "true" }, el("span", {}, "2 min ago"), el("span", {}, "now"));
  const node = el("figure", {}, chart, axis);
  const seconds = [];
  const draw = () => {
    const sums = seconds.map((values) => values.reduce((sum, value) => sum + value, 0));
    const highest = Math.max(1, ...sums);
    setText(most, Math.max(0, ...sums) > 0 ? highest.toLocaleString("en-US") : "");
    const paths = tones.map(() => "");
    seconds.forEach((values, index) => {
      const x = COLUMNS - seconds.length + index;
      let y = 100;
      values.forEach((value, tone) => {
        if (!value) return;
        const height = Math.max(value / highest * (100 - TOP), .8);
        paths[tone] += `M${x},${y.toFixed(2)}h.86v${(-height).toFixed(2)}h-.86z`;
        y -= height;
      });
    });
    blocks.forEach((block, index) => block.setAttribute("d", paths[index]));
  };
  return { node, add(values) { seconds.push(values); if (seconds.length > COLUMNS) seconds.shift(); draw(); } };
}
