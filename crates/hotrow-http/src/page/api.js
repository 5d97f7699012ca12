// Requests to the API. The token is in this module's memory only.
import { parseExactly } from "/page/exact.js";

let token = "";
let refused = () => {};

export const setToken = (text) => { token = text; };

// Calls this function when the server asks for a token.
export const onUnauthorized = (listener) => { refused = listener; };

export const headers = () => (token ? { Authorization: `Bearer ${token}` } : {});

export function unauthorized() {
  refused(token !== "");
}

// An answer that is not 200, with the server's explanation and the next step.
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? `status ${status}`);
    this.status = status;
    this.hint = body.hint ?? "";
    this.kind = String(body.type ?? "").split("#").pop();
  }
}

// Sends a request and returns the JSON of its answer. Integers beyond 2^53 stay exact (exact.js).
export async function request(method, path, { query = {}, body } = {}) {
  // Browsers remove these names from a path, also with percent-encoding, and would send the request to another path.
  const lost = path.split("/").find((name) => name === "." || name === "..");
  if (lost) throw new Problem(400, { detail: `A browser cannot open a path with the name "${lost}".`, hint: "Use the functions of the hotrow schema in SQL." });
  const parameters = new URLSearchParams(query).toString();
  const options = { method, headers: headers(), cache: "no-store" };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let reply;
  try {
    reply = await fetch(parameters ? `${path}?${parameters}` : path, options);
  } catch {
    throw new Problem(0, { detail: "The gateway does not answer.", hint: "Check that it runs. The page tries again." });
  }
  const answer = parseExactly((await reply.text()) || "{}");
  if (reply.status === 401) unauthorized();
  if (!reply.ok) throw new Problem(reply.status, answer);
  return answer;
}

export const read = (path, query) => request("GET", path, { query });
export const segment = (name) => encodeURIComponent(name);
