import { describe, expect, it } from 'vitest'
import { requireGreen } from '../../src/actions/green.js'
import type { Check } from '../../src/providers/provider.js'
import { failure } from '../helpers/failure.js'

const SHA = 'abcdef0'.padEnd(40, '1')
const check = (name: string, state: Check['state'], says: string): Check => ({ name, state, says })
const ok = check('build', 'succeeded', 'success')
const judge = (...checks: Check[]) => failure(() => requireGreen('octo/demo#2', { sha: SHA, checks }))
const notMerged = (why: string) => ({
  kind: 'checks_failed',
  message: `octo/demo#2 is not merged: its head abcdef0 ${why}`,
})

describe('requireGreen', () => {
  it('accepts a head whose checks have all succeeded', () => {
    expect(() =>
      requireGreen('octo/demo#2', { sha: SHA, checks: [ok, check('docs', 'succeeded', 'skipped')] }),
    ).not.toThrow()
  })

  it('names what failed and what has not finished', () => {
    const lint = check('lint', 'failed', 'timed_out')
    const e2e = check('e2e', 'pending', 'queued')
    expect(judge(ok, lint)).toEqual(notMerged('has not succeeded in lint (timed_out)'))
    expect(judge(e2e, ok)).toEqual(notMerged('has not finished e2e (queued)'))
    expect(judge(e2e, lint, check('a', 'failed', 'failure'))).toEqual(
      notMerged('has not succeeded in lint (timed_out), a (failure), and has not finished e2e (queued)'),
    )
  })

  it('is not content with none', () => {
    expect(judge()).toEqual(
      notMerged('has no checks and no statuses. They may not have begun; try again later'),
    )
  })

  it('keeps names short, few and harmless', () => {
    const many = Array.from({ length: 23 }, (_, at) => check(`n${at}`, 'failed', 'failure'))
    expect(judge(...many).message).toMatch(/n19 \(failure\) and 3 more$/)
    expect(judge(check(`\u001b[2J${'x'.repeat(200)}`, 'failed', 'failure')).message).toBe(
      notMerged(`has not succeeded in \\u{1b}[2J${'x'.repeat(75)}… (failure)`).message,
    )
  })
})
