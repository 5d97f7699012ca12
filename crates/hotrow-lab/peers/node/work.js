// Processes orders with graphile-worker, with pg-boss, or with Hotrow in the same language with the same driver. The jobs do
// no work. The benchmark decides the numbers of orders and workers.
//
//   node work.js versions
//   DATABASE_URL=... node work.js enqueue TECHNIQUE ORDERS
//   DATABASE_URL=... GATEWAY_URL=... node work.js work TECHNIQUE ORDERS WORKERS RUN
//
// `work` prints {"orders": ..., "seconds": ...}: the time from the workers' start until the last order was recorded as
// completed. The processed orders are written to hotrow_bench.worked.

import { createRequire } from "node:module";
import * as graphile from "graphile-worker";
import pg from "pg";
import { PgBoss } from "pg-boss";

const { DATABASE_URL: server, GATEWAY_URL: gateway } = process.env;

async function sql(text, values = []) {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    return (await client.query(text, values)).rows;
  } finally {
    await client.end();
  }
}

/** The orders that the workers have processed. */
class Book {
  done = new Map();

  constructor(orders) {
    this.orders = orders;
    this.full = new Promise((resolve) => { this.resolve = resolve; });
  }

  note({ id, order_id }) {
    if (this.done.has(id)) throw new Error(`order ${id} was worked off twice`);
    this.done.set(id, order_id);
    if (this.done.size === this.orders) this.resolve();
  }
}

/** Runs a number of concurrent loops, each until its step returns that nothing is left. */
const loops = (workers, step) =>
  Promise.all(Array.from({ length: workers }, async (_, worker) => { while (await step(worker)); }));

/** Opens all connections of a pool, so that the time of no technique includes connecting. */
const open = (workers, query) => Promise.all(Array.from({ length: workers }, () => query("select pg_sleep(0.2)")));

/** graphile-worker's runner: one process, one concurrent job per worker, and a connection for each. */
function graphileWorker(settings) {
  const preset = (more) => ({ worker: { connectionString: server, logger: new graphile.Logger(() => () => {}), ...settings, ...more } });
  return {
    jobs: "graphile_worker._private_jobs",
    async enqueue(pieces) {
      const utils = await graphile.makeWorkerUtils({ preset: preset() });
      await utils.migrate();
      for await (const piece of pieces) await utils.addJobs(piece.map((payload) => ({ identifier: "order", payload })));
      await utils.release();
    },
    async work({ book, workers }) {
      const pgPool = new pg.Pool({ connectionString: server, max: workers });
      await open(workers, (text) => pgPool.query(text));
      const taskList = { order: async (order) => book.note(order) };
      const began = performance.now();
      const runner = await graphile.run({ preset: preset({ pgPool, concurrentJobs: workers }), taskList, noHandleSignals: true });
      await book.full;
      await runner.stop(); // stop() waits until the last jobs are recorded
      const took = performance.now() - began;
      await pgPool.end();
      return took;
    },
  };
}

/** pg-boss's `fetch` and `complete`. The workers of pg-boss pause for half a second between two fetches. */
function pgBoss(batchSize) {
  async function start(max) {
    const boss = new PgBoss({ connectionString: server, max, supervise: false, schedule: false });
    boss.on("error", (error) => { throw error; });
    return boss.start();
  }
  return {
    jobs: "pgboss.job",
    async enqueue(pieces) {
      const boss = await start(1);
      await boss.createQueue("orders");
      for await (const piece of pieces) await boss.insert("orders", piece.map((data) => ({ data })));
      await boss.stop({ graceful: false });
    },
    async work({ book, workers }) {
      const boss = await start(workers);
      await open(workers, (text) => boss.getDb().executeSql(text));
      const began = performance.now();
      await loops(workers, async () => {
        const jobs = await boss.fetch("orders", { batchSize });
        if (jobs.length === 0) return false;
        jobs.forEach((job) => book.note(job.data));
        await boss.complete("orders", jobs.map((job) => job.id));
        return true;
      });
      const took = performance.now() - began;
      await boss.stop({ graceful: false });
      return took;
    },
  };
}

/** `take` and `complete` through the gateway. The benchmark has filled the queue and checks it afterwards. */
function hotrow(most) {
  // Only calls in this form are merged.
  const take = { name: "take", text: "select * from hotrow.take($1, $2, $3)" };
  const complete = { name: "complete", text: `select * from hotrow.complete${most === 1 ? "" : "_all"}($1, $2)` };
  return {
    async work({ book, orders, workers, run }) {
      const clients = Array.from({ length: workers }, () => new pg.Client({ connectionString: gateway }));
      await Promise.all(clients.map((client) => client.connect()));
      let left = orders;
      const began = performance.now();
      await loops(workers, async (worker) => {
        const max = Math.min(most, left);
        left -= max;
        if (max === 0) return false;
        const { rows } = await clients[worker].query({ ...take, values: [run, max, "30 seconds"] });
        if (rows.length === 0) return false;
        rows.forEach((order) => book.note(order));
        const receipts = rows.map(({ receipt }) => receipt);
        const { rows: done } = await clients[worker].query({ ...complete, values: [run, most === 1 ? receipts[0] : receipts] });
        if (done.some(({ outcome }) => outcome !== "completed")) throw new Error("a lease was lost");
        return true;
      });
      const took = performance.now() - began;
      await Promise.all(clients.map((client) => client.end()));
      return took;
    },
  };
}

const techniques = {
  "graphile-worker": graphileWorker({}),
  "graphile-worker-batched": graphileWorker({ localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }),
  "pg-boss": pgBoss(1),
  "pg-boss-batched": pgBoss(100),
  "hotrow-node": hotrow(1),
  "hotrow-node-batched": hotrow(100),
};

/** Orders with numbers that no earlier part of the run has used, a thousand at a time. */
async function* newOrders(orders) {
  const [{ before }] = await sql("select coalesce(sum(orders), 0)::int as before from hotrow_bench.begun");
  await sql("insert into hotrow_bench.begun values ($1)", [orders]);
  for (let from = before; from < before + orders; from += 1000) {
    yield sql(
      "select n as id, gen_random_uuid() as order_id, 1 as amount from generate_series($1::int, $2::int) n",
      [from + 1, Math.min(from + 1000, before + orders)],
    );
  }
}

async function enqueue({ jobs, enqueue }, orders) {
  if (!jobs) return;
  // The benchmark drops the schema after the run.
  await sql("insert into hotrow_bench.elsewhere values ($1) on conflict do nothing", [jobs.split(".")[0]]);
  await enqueue(newOrders(orders));
  // The benchmark does the same with the tables of its other techniques.
  await sql(`vacuum (analyze) ${jobs}`);
  await sql("checkpoint");
}

async function work({ jobs, work }, orders, workers, run) {
  const book = new Book(orders);
  const seconds = (await work({ book, orders, workers, run })) / 1000;
  if (jobs) {
    await sql(
      "insert into hotrow_bench.worked (id, order_id) select * from unnest($1::bigint[], $2::uuid[])",
      [[...book.done.keys()], [...book.done.values()]],
    );
  }
  console.log(JSON.stringify({ orders: book.done.size, seconds }));
}

function versions() {
  const { dependencies } = createRequire(import.meta.url)("./package.json");
  const named = ["graphile-worker", "pg-boss", "pg"].map((name) => `${name} ${dependencies[name]}`);
  console.log([...named, `Node.js ${process.versions.node}`].join(", "));
}

const [command, name, orders, workers, run] = process.argv.slice(2);
const commands = { versions, enqueue, work };
await commands[command](techniques[name], Number(orders), Number(workers), run);
