// Sells a hundred phones to ten thousand buyers through Hotrow with node-postgres: 64 promises and a pool, plain SQL.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

const ITEM = process.env.ITEM ?? "phone-node";
const [STOCK, BUYERS, WORKERS, TRIES] = [100, 10_000, 64, 10];

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: WORKERS });
// The pool replaces a lost idle connection. Without a listener, the loss would end the program.
pool.on("error", () => {});

/** Class 08, a server that stops or starts, or a broken socket (an error that the server did not report). */
function connectionLost(error) {
  return !(error instanceof pg.DatabaseError) || /^(08|57P0)/.test(error.code);
}

/** Runs a statement that can be repeated safely, and repeats it if the connection is lost. */
async function call(text, values) {
  for (let attempt = 1; ; attempt++) {
    try {
      return (await pool.query(text, values)).rows[0];
    } catch (error) {
      if (attempt === TRIES || !connectionLost(error)) throw error;
      await sleep(100 * attempt);
    }
  }
}

/** The statuses that one buyer receives. */
async function buy(buyer) {
  // Generated once per purchase: a call repeated with the same ID gets the recorded answer and not a second phone.
  const requestId = randomUUID();
  const answer = await call("select * from hotrow.reserve($1, $2, 1, $3)", [ITEM, buyer, requestId]);
  if (answer.status !== "reserved") return [answer.status];
  // Here a shop would charge the buyer. A repeated confirm returns "confirmed" again, so it needs no request ID.
  const confirmation = await call("select * from hotrow.confirm($1)", [answer.reservation_id]);
  return [answer.status, confirmation.status];
}

const created = await call("select hotrow.create_sale($1, stock => $2, per_buyer => 1, hold => '10 minutes') as status", [
  ITEM,
  STOCK,
]);
// "exists" is also correct: the call may have been repeated after a lost connection.
if (!["created", "exists"].includes(created.status)) {
  console.error(`create_sale returned ${created.status}: set ITEM to a name that no other sale has, not ${ITEM}`);
  process.exit(1);
}

const statuses = {};
let next = 0;
async function work() {
  while (next < BUYERS) {
    for (const status of await buy(`buyer ${next++}`)) statuses[status] = (statuses[status] ?? 0) + 1;
  }
}
const started = performance.now();
await Promise.all(Array.from({ length: WORKERS }, work));
const seconds = ((performance.now() - started) / 1000).toFixed(1);

const sale = await call("select sold, remaining from hotrow.sale($1)", [ITEM]);
await pool.end();

const { confirmed = 0, ...answers } = statuses;
const counts = Object.keys(answers).sort().map((status) => `${answers[status]} ${status}`).join(", ");
console.log(`sold ${sale.sold} of ${STOCK} to ${BUYERS} buyers in ${seconds} s (${counts})`);
// The driver returns bigint as text, because a JavaScript number cannot hold every bigint.
process.exitCode = Number(sale.sold) === STOCK && Number(sale.remaining) === 0 && confirmed <= STOCK ? 0 : 1;
