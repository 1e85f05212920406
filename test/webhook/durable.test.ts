import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import { describeWith } from '../helpers/needs.js'
import { serve } from '../helpers/serve.js'

const DELIVERIES = 40
const IN_FLIGHT = 8

/** More than a page, so that it is written as it is; its beginning is what strace shows. */
const bodyOf = (i: number): string => JSON.stringify(`body-${i}.`.repeat(1000))

/** A flush takes a twentieth of a second, so that whoever does not wait for it is seen to be early. */
const SLOW = 'inject=fdatasync:delay_exit=50000'
const CALLS = 'trace=openat,read,write,writev,pwrite64,pwritev,fdatasync'

/** A system call, and the lines of the trace where it began and ended. */
interface Call {
  readonly name: string
  readonly file: string
  readonly text: string
  readonly from: number
  readonly to: number
}

/** Calls of several threads overlap, and are then traced as a line for the beginning and one for the end. */
function callsOf(trace: string): Call[] {
  const begun = new Map<string, { start: string; from: number }>()
  return trace.split('\n').flatMap((line, to) => {
    const [, thread = '', rest = ''] = /^(\d+) +(.*)$/.exec(line) ?? []
    const [, start] = /^(.*)<unfinished \.\.\.>$/.exec(rest) ?? []
    if (start !== undefined) {
      begun.set(thread, { start, from: to })
      return []
    }
    const [, end] = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest) ?? []
    const before = end === undefined ? undefined : begun.get(thread)
    const text = before ? before.start + end : rest
    const [, name = '', file = ''] = /^(\w+)\((\d*)/.exec(text) ?? []
    return { name, file, text, from: before?.from ?? to, to }
  })
}

interface Steps {
  /** The write of each delivery's body, and its 200, by number. */
  readonly written: Map<number, Call>
  readonly answered: Map<number, Call>
  readonly flushes: readonly Call[]
  /** The writes, through to the disk, that make what was flushed count. */
  readonly commits: readonly Call[]
  /** The most deliveries that had been read and not yet answered. */
  readonly mostInFlight: number
}

function stepsOf(calls: readonly Call[]): Steps {
  const [, synchronous] = calls.flatMap(({ text }) => /O_DSYNC.*\) = (\d+)/.exec(text) ?? [])
  const written = new Map<number, Call>()
  const answered = new Map<number, Call>()
  /** The delivery being answered on each connection. */
  const asked = new Map<string, number>()
  let mostInFlight = 0
  for (const call of calls) {
    const { name, file, text } = call
    const [, request] = /POST \/webhook\?(\d+) /.exec(text) ?? []
    if (name === 'read' && request) asked.set(file, Number(request))
    mostInFlight = Math.max(mostInFlight, asked.size)
    if (!name.includes('write')) continue
    for (const [, i] of text.matchAll(/\bbody-(\d+)\./g)) written.set(Number(i), call)
    const answering = asked.get(file)
    if (!text.includes('HTTP/1.1 200') || answering === undefined) continue
    answered.set(answering, call)
    asked.delete(file)
  }
  const flushes = calls.filter(({ name, text }) => name === 'fdatasync' && / = 0\b/.test(text))
  const commits = calls.filter(({ name, file }) => name.includes('write') && file === synchronous)
  return { written, answered, flushes, commits, mostInFlight }
}

/** Whether the body's write was followed by a whole flush, that by the commit, and that by the 200. */
function isInOrder({ written, answered, flushes, commits }: Steps, i: number): boolean {
  const next = (calls: readonly Call[], after: Call | undefined): Call | undefined =>
    after && calls.find(({ from }) => from > after.to)
  const commit = next(commits, next(flushes, written.get(i)))
  const answer = answered.get(i)
  return commit !== undefined && answer !== undefined && commit.to < answer.from
}

// SIGKILL cannot show a missing flush, since the page cache survives the process: only the system calls can.
describeWith('strace', 'the deliveries of a relay serve', () => {
  it('are each flushed to the disk between their write and their 200, several at a time', async () => {
    const home = emptyFolder()
    const log = path.join(home, 'trace')
    const strace = ['strace', '-f', '-s', '64', '-e', CALLS, '-e', 'signal=none', '-e', SLOW, '-o', log]
    await using program = serve(home, strace)
    const url = await program.url()
    const numbers = Array.from({ length: DELIVERIES }, (_, i) => i)
    const left = numbers.values()
    const client = async (): Promise<void> => {
      for (const i of left) {
        const answer = await post(`${url}/webhook?${i}`, githubDelivery({ body: bodyOf(i) }))
        expect(answer).toEqual({ status: 200, type: 'application/json', body: '{"ok":true}' })
      }
    }
    await Promise.all(Array.from({ length: IN_FLIGHT }, client))
    // A line is there when the next begins.
    await fetch(`${url}/health`)

    const steps = stepsOf(callsOf(readFileSync(log, 'utf8')))
    expect([...steps.answered.keys()].toSorted((a, b) => a - b)).toEqual(numbers)
    expect(numbers.filter((i) => !isInOrder(steps, i))).toEqual([])
    expect(steps.mostInFlight).toBe(IN_FLIGHT)
    expect(steps.flushes.length).toBeLessThan(DELIVERIES)
  }, 60_000)
})
