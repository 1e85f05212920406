import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { githubDelivery } from '../kit/delivery.js'
import { emptyFolder } from '../kit/folder.js'
import { connect, requestText } from '../kit/http.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'
import { childrenOf } from '../kit/processes.js'

const DELIVERIES = 64
const IN_FLIGHT = 8

/** A body of several pages of the database, the last of which strace shows the beginning of. */
const bodyOf = (i: number): string => JSON.stringify(`body-${i}.`.repeat(3000))

/** Delays each flush by 50 ms, so that an answer that does not wait for it is noticed. */
const SLOW = 'inject=fsync,fdatasync:delay_exit=50000'
const CALLS = 'trace=openat,read,write,writev,pwrite64,pwritev,fsync,fdatasync'

/** A system call, with the lines of the trace where it began and ended. */
interface Call {
  readonly name: string
  readonly file: string
  readonly text: string
  readonly from: number
  readonly to: number
}

/** Calls of several threads overlap. The trace then has one line for the beginning and one for the end. */
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
  /** The largest number of deliveries that had been read but not answered. */
  readonly maxInFlight: number
}

function stepsOf(calls: readonly Call[]): Steps {
  const written = new Map<number, Call>()
  const answered = new Map<number, Call>()
  /** The pending delivery of each connection. */
  const pending = new Map<string, number>()
  let maxInFlight = 0
  for (const call of calls) {
    const { name, file, text } = call
    const [, request] = /POST \/webhook\?(\d+) /.exec(text) ?? []
    if (name === 'read' && request) pending.set(file, Number(request))
    maxInFlight = Math.max(maxInFlight, pending.size)
    if (!name.includes('write')) continue
    for (const [, i] of text.matchAll(/\bbody-(\d+)\./g)) written.set(Number(i), call)
    const answering = pending.get(file)
    if (!text.includes('HTTP/1.1 200') || answering === undefined) continue
    answered.set(answering, call)
    pending.delete(file)
  }
  const flushes = calls.filter(({ name, text }) => /^f(?:data)?sync$/.test(name) && / = 0\b/.test(text))
  return { written, answered, flushes, maxInFlight }
}

/** Whether a complete flush of the same file followed the body's last write, and the 200 followed that. */
function isInOrder({ written, answered, flushes }: Steps, i: number): boolean {
  const write = written.get(i)
  const flush = write && flushes.find(({ file, from }) => file === write.file && from > write.to)
  const answer = answered.get(i)
  return flush !== undefined && answer !== undefined && flush.to < answer.from
}

// SIGKILL cannot reveal a missing flush: the page cache survives the process. Only the system calls can.
describeWith('strace', 'the deliveries of a relay serve', () => {
  it('are each flushed to the disk between their write and their 200, all that came meanwhile at once', async () => {
    const log = path.join(emptyFolder(), 'trace')
    const strace = ['strace', '-f', '-s', '64', '-e', CALLS, '-e', 'signal=none', '-e', SLOW, '-o', log]
    await using here = await place({ host: 'none' })
    const relay = await here.serveWith({ wrapper: strace })
    const [pid = 0] = childrenOf(relay.pid)
    const numbers = Array.from({ length: DELIVERIES }, (_, i) => i)
    const senders = await Promise.all(Array.from({ length: IN_FLIGHT }, () => connect(relay.port)))
    for (const sender of senders) {
      sender.send(requestText('GET', '/health'))
      await sender.answer()
    }
    for (let first = 0; first < DELIVERIES; first += IN_FLIGHT) {
      // It stands still until one delivery of each sender lies in its sockets.
      process.kill(pid, 'SIGSTOP')
      for (const [i, { socket }] of senders.entries()) {
        const { headers, body } = githubDelivery({ body: bodyOf(first + i) })
        const head = Object.fromEntries(headers)
        const text = requestText('POST', `/webhook?${first + i}`, head, body.toString())
        await new Promise((resolve) => socket.write(text, resolve))
      }
      process.kill(pid, 'SIGCONT')
      const answers = await Promise.all(senders.map((sender) => sender.answer()))
      expect(answers.map(({ body }) => body)).toEqual(senders.map(() => '{"ok":true}'))
    }
    // strace writes a line before the next call begins.
    await fetch(`${relay.address}/health`)
    for (const { socket } of senders) socket.destroy()

    const steps = stepsOf(callsOf(readFileSync(log, 'utf8')))
    expect([...steps.answered.keys()].toSorted((a, b) => a - b)).toEqual(numbers)
    expect(numbers.filter((i) => !isInOrder(steps, i))).toEqual([])
    expect(steps.maxInFlight).toBe(IN_FLIGHT)
    expect(steps.flushes.length).toBeLessThan(DELIVERIES)
  })

  it('lie in a database that no power cut while it is made can damage', async () => {
    const log = path.join(emptyFolder(), 'trace')
    const calls = 'trace=unlink,unlinkat,pwrite64,fsync,fdatasync'
    const strace = ['strace', '-f', '-y', '-s', '0', '-e', calls, '-e', 'signal=none', '-o', log]
    await using here = await place({ host: 'none' })
    const relay = await here.serveWith({ wrapper: strace })
    // strace writes a line before the next call begins.
    await fetch(`${relay.address}/health`)
    const folder = path.join(here.home, 'default')
    const trace = readFileSync(log, 'utf8').split('\n')
    const first = (text: string, from = 0): number =>
      trace.findIndex((line, i) => i >= from && line.includes(text))
    // Until its removal is on the disk, the journal can come back, and undoes what is written next.
    const removed = trace.findLastIndex((line) => /unlink.*relay\.db-journal.* = 0$/.test(line))
    const flushed = trace.findIndex(
      (line, i) => i > removed && /f(?:data)?sync/.test(line) && line.includes(`<${folder}>`),
    )
    expect(removed).toBeGreaterThan(-1)
    expect(flushed).toBeGreaterThan(removed)
    expect(first('relay.db-wal>', removed)).toBeGreaterThan(flushed)
  })
})
