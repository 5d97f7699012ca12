// JSON whose numbers keep all their digits: JavaScript rounds integers beyond 2^53 and drops zeros after the decimal point.

// A number that would change becomes a text with this prefix. No text of the API contains it.
const EXACT = "\u0000";

export function parseExactly(json) {
  const keep = (token) =>
    token[0] === '"' || String(Number(token)) === token ? token : JSON.stringify(EXACT + token);
  return JSON.parse(json.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, keep));
}

// Formats any value for people. Numbers keep the form in which they were sent.
export function show(value) {
  if (typeof value === "string") return value.startsWith(EXACT) ? value.slice(EXACT.length) : value;
  if (typeof value !== "object" || value === null) return String(value);
  return JSON.stringify(value, null, 2).replace(/"\\u0000([^"]*)"/g, "$1");
}

// An integer with separators and all its digits.
export function integer(value) {
  const text = show(value);
  return /^-?\d+$/.test(text) ? BigInt(text).toLocaleString("en-US") : text;
}
