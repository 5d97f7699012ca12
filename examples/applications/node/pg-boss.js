// pg-boss, a job queue: 200 jobs are sent one by one, and 16 workers fetch and complete them.

import PgBoss from "pg-boss";
import { check, main } from "./program.js";

const JOBS = 200;
const WORKERS = 16;

async function started(url, work) {
  const boss = new PgBoss({ connectionString: url, max: WORKERS });
  boss.on("error", (error) => {
    throw error;
  });
  await boss.start();
  const result = await work(boss);
  await boss.stop({ graceful: false });
  return result;
}

await main({
  setup: (url) => started(url, (boss) => boss.createQueue("sell")),
  smoke: (url) =>
    started(url, async (boss) => {
      await Promise.all(Array.from({ length: JOBS }, (_, number) => boss.send("sell", { number })));
      const done = [];
      const worker = async () => {
        for (let jobs; (jobs = await boss.fetch("sell")).length > 0; ) {
          for (const job of jobs) {
            done.push(job.data.number);
            await boss.complete("sell", job.id);
          }
        }
      };
      await Promise.all(Array.from({ length: WORKERS }, worker));
      return check(done, JOBS);
    }),
});
