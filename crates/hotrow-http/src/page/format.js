// Numbers, times and names for people. Pure.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

// A count: 1,234, and from 10 million on 12.3 M.
export function count(value) {
  if (value === null || value === undefined) return "–";
  const number = Number(value);
  if (Math.abs(number) >= 1e13) return number.toExponential(2);
  if (Math.abs(number) >= 1e10) return `${tenth.format(number / 1e9)} bn`;
  if (Math.abs(number) >= 1e7) return `${tenth.format(number / 1e6)} M`;
  return whole.format(number);
}

// A rate per second: one digit after the point for small ones.
export function rate(value) {
  if (value === null || value === undefined) return "–";
  return value > 0 && value < 9.95 ? tenth.format(value) : count(value);
}

// A ratio such as units per commit.
export function ratio(value) {
  return Number.isFinite(value) ? tenth.format(value) : "–";
}

export function percent(share) {
  if (!Number.isFinite(share)) return "–";
  const value = share * 100;
  return `${value > 0 && value < 10 ? tenth.format(value) : whole.format(value)} %`;
}

// A time in milliseconds, as number and unit.
export function millis(value) {
  if (value === null || value === undefined) return ["–", ""];
  if (value < 10) return [value.toFixed(2), "ms"];
  if (value < 100) return [value.toFixed(1), "ms"];
  if (value < 10000) return [whole.format(value), "ms"];
  return [(value / 1000).toFixed(1), "s"];
}

export const ms = (value) => millis(value).join(" ").trim();

// A duration: 42 s, 5 min, 3 h, 2 d.
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  for (const [name, length] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (seconds >= 2 * length) return `${Math.floor(seconds / length)} ${name}`;
  }
  return `${Math.max(0, Math.floor(seconds))} s`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let number = Number(value), step = 0;
  while (Math.abs(number) >= 1000 && step < units.length - 1) { number /= 1000; step++; }
  return `${step === 0 || number >= 99.5 ? whole.format(number) : tenth.format(number)} ${units[step]}`;
}

// A time of day, with the date if it is not today.
export function clock(time) {
  const date = time instanceof Date ? time : new Date(time);
  const today = date.toDateString() === new Date().toDateString();
  const hours = date.toLocaleTimeString("en-GB");
  return today ? hours : `${date.toLocaleDateString("en-CA")} ${hours}`;
}

// A time relative to now: "5 min ago" or "in 2 h".
export function relative(time) {
  if (!time) return "";
  const seconds = (Date.parse(time) - Date.now()) / 1000;
  return seconds > 0 ? `in ${duration(seconds)}` : `${duration(-seconds)} ago`;
}

export const plural = (number, word) => `${count(number)} ${word}${Number(number) === 1 ? "" : "s"}`;
