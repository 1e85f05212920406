// What `relay export --redact` costs for texts of one size, by what is in them, as a multiple of a usual one's.
import { type Benchmark, type Figures, measure, Relay } from './rig.js'

const ROUNDS = 2
/** Characters. */
const SIZE = 2_000_000
const SHORT_SIZE = 100_000

const fill = (text: string, size: number): string => text.repeat(Math.ceil(size / text.length))
const deep = Array.from({ length: 1_400 }, (_, i) => `${' '.repeat(i)}value:\n`).join('')

/** Structure that never ends, which a search would look for again and again. */
const hostile = (size: number): readonly string[] => [
  deep + deep,
  fill('<a b="<a b=\'', size),
  fill('<a x="" ', size),
  fill('<password>', size),
  `${'<a>'.repeat(size / 6)}${'</b>'.repeat(size / 8)}`,
  fill('\uFEFF', size / 2),
  fill('<!--', size),
  fill('<![CDATA[', size),
  fill('password: ', size),
  fill('password=" ', size),
  fill('password=\' " ', size),
  fill(String.raw`password=\"`, size),
  fill('token: [', size),
  fill('value: [\n', size),
  fill('password":x ', size),
  fill('password: x</b>', size),
  fill('name: password\n', size),
  fill('--XX\r\nContent-Disposition: form-data; name="', size),
  fill('password is ', size),
  fill('-u "', size),
  fill('%', size),
  fill('a%253A', size),
  fill('https%3A%2F%2F', size),
  fill('https://a/hooks/', size),
  fill('https:\\\\\\/', size),
  fill('"a@', size),
  fill('a@a.', size),
  fill('[[[[', size),
  fill('eyJ', size),
]

/** As many values as are looked for everywhere, and each begins like the one before. */
const alike = (step: number): string =>
  Array.from({ length: 200 }, (_, i) => `password="${'a'.repeat(step * (i + 10))}Q" `).join('')

export const redact: Benchmark = {
  about: `
How long \`relay export --redact\` takes for a text of ${SIZE.toLocaleString('en')} characters, over that of usual lines of the same size: for
structure that never ends, and for 200 values that begin alike with a text like them. None may take over twelve times as long. ${ROUNDS}
rounds.`,

  async run({ rounds, size: length }, scope) {
    const size = length === 'short' ? SHORT_SIZE : SIZE
    const relay = await new Relay(scope, '.').serve('--source', 'open=none', '--max-body', '4000000')
    const timeOf = async (body: string): Promise<number> => {
      const headers = { 'Content-Type': 'text/plain' }
      const answer = await fetch(`${relay.url}/webhook/open`, { method: 'POST', headers, body })
      if (answer.status !== 200) throw new Error(`the text was answered ${answer.status}`)
      return (await relay.run(['export', 'last', '--redact'])).ms
    }
    const figures = async (): Promise<Figures> => {
      const usual = await timeOf(fill('name: x, y and z\n', size))
      const found: Record<string, number> = {}
      for (const text of hostile(size))
        found[JSON.stringify(text.slice(0, 30))] = (await timeOf(text)) / usual
      for (const step of [1, 25]) {
        const values = alike(step)
        const other = await timeOf(`${values}\n${fill('x y ', size)}`)
        found[`${step} to ${step * 209} characters, over the same with another text`] =
          (await timeOf(`${values}\n${fill('a', size)}`)) / other
      }
      return found
    }
    return measure(rounds(ROUNDS), { relay, earlier: undefined }, figures)
  },
}
