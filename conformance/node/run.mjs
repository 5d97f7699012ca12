// Runs every integration test of node-postgres with one process for each file, as its Makefile does, and writes the outcomes to $RESULTS.

import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const source = process.argv[2]
const only = process.env.ONLY && new Set(readFileSync(process.env.ONLY, 'utf8').split('\n'))
const tests = readdirSync(join(source, 'test/integration'), { recursive: true })
  .filter((name) => name.endsWith('-tests.js'))
  .filter((name) => !only || only.has(name))
  .sort()

const lines = tests.map((test) => {
  const run = spawnSync('node', [join('test/integration', test)], { cwd: source, encoding: 'utf8', timeout: 60_000 })
  const passed = run.status === 0
  const said = `${run.stdout}${run.stderr}`.trim().split('\n')
  const error = said.findLast((line) => /error|expected|!==|timed out/i.test(line)) ?? said.at(-1)
  const message = passed ? '' : `${run.signal ?? run.status}: ${error.trim()}`
  return JSON.stringify({ test, outcome: passed ? 'passed' : 'failed', message })
})
writeFileSync(process.env.RESULTS, [...lines, JSON.stringify({ end: tests.length }), ''].join('\n'))
