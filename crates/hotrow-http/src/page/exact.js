// JSON whose numbers keep all their digits: JavaScript rounds those beyond 2^53 and drops zeros behind the point.
"use strict";

// A number that would change becomes a text that begins with this, which no text of the API contains.
const EXACT = "\u0000";

function parseExactly(json) {
  const keep = (token) =>
    token[0] === '"' || String(Number(token)) === token ? token : JSON.stringify(EXACT + token);
  return JSON.parse(json.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, keep));
}

// Any value as a text for people, a number as it was sent.
function show(value) {
  if (typeof value === "string") return value.startsWith(EXACT) ? value.slice(EXACT.length) : value;
  if (typeof value !== "object") return String(value);
  return JSON.stringify(value, null, 2).replace(/"\\u0000([^"]*)"/g, "$1");
}
