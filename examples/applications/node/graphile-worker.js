// graphile-worker, a job queue: 200 jobs are added one by one, and a runner does 16 at a time.

import { Logger, makeWorkerUtils, runOnce, runMigrations } from "graphile-worker";
import { check, main } from "./program.js";

const JOBS = 200;
// Only errors are shown.
const logger = new Logger(() => (level, message) => level === "error" && console.error(message));

await main({
  setup: (url) => runMigrations({ connectionString: url, logger }),
  smoke: async (url) => {
    const utils = await makeWorkerUtils({ connectionString: url, logger });
    await Promise.all(Array.from({ length: JOBS }, (_, number) => utils.addJob("sell", { number })));
    await utils.release();
    const done = [];
    const taskList = { sell: async ({ number }) => void done.push(number) };
    await runOnce({ connectionString: url, concurrency: 16, maxPoolSize: 20, logger, taskList });
    return check(done, JOBS);
  },
});
