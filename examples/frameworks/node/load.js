// Repeats one update in concurrent workers of one process, and prints how many updates were acknowledged.

const WARM_UP_SECONDS = 2;
const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

/** Runs the variant that the command line names: node program.js setup|autocommit|transaction URL WORKERS SECONDS. */
export async function main(program) {
  const [variant, url, workers, seconds] = process.argv.slice(2);
  const framework = await program(url, Number(workers ?? 1));
  if (variant === "setup") await framework.setup();
  else await run(framework[variant], Number(workers), Number(seconds));
  await framework.close();
}

async function run(update, workers, seconds) {
  let done = 0;
  let stopped = false;
  const work = async () => {
    while (!stopped) {
      await update();
      done++;
    }
  };
  const working = Promise.all(Array.from({ length: workers }, work));
  const measure = async () => {
    await sleep(WARM_UP_SECONDS);
    const [before, started] = [done, performance.now()];
    await sleep(seconds);
    const measured = ((done - before) / (performance.now() - started)) * 1000;
    stopped = true;
    return measured;
  };
  const [perSecond] = await Promise.all([measure(), working]);
  console.log(JSON.stringify({ updates: done, per_second: perSecond }));
}
