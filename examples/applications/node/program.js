// What the smoke tests share: PROGRAM setup URL creates the schema, and PROGRAM smoke URL prints how much work was checked.

export async function main({ setup, smoke }) {
  const [step, url] = process.argv.slice(2);
  if (step === "setup") await setup(url);
  else console.log(JSON.stringify({ done: await smoke(url) }));
}

/** Fails unless each job was done exactly once. */
export function check(done, jobs) {
  const each = [...done].sort((a, b) => a - b).every((number, place) => number === place);
  if (done.length !== jobs || !each) throw new Error(`a job was lost or done twice: ${done.length} of ${jobs}`);
  return done.length;
}
