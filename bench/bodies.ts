// What bodies of one size cost, by what is in them: how long a signed one takes until it is answered, as a multiple of a flat object's.
import { randomUUID } from 'node:crypto'
import { request } from 'node:http'
import { type Benchmark, type Figures, measure, pair, Relay } from './rig.js'
import { signatureOf } from './load.js'

const ROUNDS = 3
const SIZES = { short: [65_536, 1_048_576], usual: [1_048_576, 26_214_400] } as const

/** Text of a size: its start and end, and between them `unit` again and again. */
type Kind = readonly [start: string, unit: (at: number) => string, end: string]
const name = (at: number): string => at.toString(36)

/** What takes a parser long, or much memory. The first is what all are compared with. */
const KINDS: Readonly<Record<string, Kind>> = {
  'a flat object': ['{', (at) => `"${name(at)}":${at},`, '"":0}'],
  'open brackets': ['', () => '[', ''],
  'open objects': ['', () => '{"a":', ''],
  'arrays 1,000 deep, again and again': ['[', () => `${'['.repeat(998)}${']'.repeat(998)},`, '0]'],
  'empty arrays': ['[', () => '[],', '0]'],
  'empty objects': ['[', () => '{},', '0]'],
  'objects with a name of their own': ['[', (at) => `{"${name(at)}":0},`, '0]'],
  'one name again and again': ['{', () => '"a":0,', '"":0}'],
  'numeric names': ['{', (at) => `"${4_294_967_294 - at}":0,`, '"":0}'],
  'long numbers': ['[', () => `0.${'1'.repeat(700)},`, '0]'],
  escapes: ['"', () => String.raw`\u0000`, '"'],
  'halves of characters': ['"', () => String.raw`\ud83d`, '"'],
  'white space': ['', () => ' ', '0'],
  'a text without an end': ['"', () => 'a', ''],
  'fields of a form': ['payload=0', () => '&a=%41', ''],
  'percent signs': ['payload=', () => '%22', ''],
}

function bodyOf([start, unit, end]: Kind, size: number): string {
  const parts = [start]
  let length = start.length + end.length
  for (let at = 0; ; at++) {
    const next = unit(at)
    length += next.length
    if (length > size) return parts.join('') + end
    parts.push(next)
  }
}

/** Posts a signed body; milliseconds until it is answered. */
function post(url: string, body: string): Promise<number> {
  const type = body.startsWith('payload=') ? 'application/x-www-form-urlencoded' : 'application/json'
  const headers = {
    'Content-Type': type,
    'X-GitHub-Event': 'push',
    'X-GitHub-Delivery': randomUUID(),
    'X-Hub-Signature-256': signatureOf(body),
  }
  const began = performance.now()
  return new Promise((resolve, reject) => {
    request(`${url}/webhook`, { method: 'POST', headers, agent: false }, (answer) =>
      answer.resume().once('end', () => resolve(performance.now() - began)),
    )
      .on('error', reject)
      .end(body)
  })
}

export const bodies: Benchmark = {
  about: `
How long a signed body takes until it is answered, over that of a flat object with many members of the same size. At 1 MiB, the default
of --max-body, nothing may take over three times as long. ${ROUNDS} rounds.`,

  async run({ rounds, size: length }, scope) {
    const sizes = length === 'short' ? SIZES.short : SIZES.usual
    const relays = await pair((build) => new Relay(scope, build).serve('--max-body', String(sizes[1])))
    const figures = async ({ url }: Relay): Promise<Figures> => {
      const found: Record<string, number> = {}
      for (const size of sizes) {
        let flat = 0
        for (const [what, kind] of Object.entries(KINDS)) {
          const took = await post(url, bodyOf(kind, size))
          flat ||= took
          found[`${what}, ${size.toLocaleString('en-US')} bytes`] = took / flat
        }
      }
      return found
    }
    return measure(rounds(ROUNDS), relays, figures)
  },
}
