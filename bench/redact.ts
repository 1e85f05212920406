// What `relay export --redact` costs for texts of one size, by what is in them, as a multiple of a usual one's.
import { type Benchmark, type Figures, measure, Relay } from './rig.js'

const ROUNDS = 2
/** Characters. */
const SIZE = 2_000_000

const fill = (text: string, size = SIZE): string => text.repeat(Math.ceil(size / text.length))
const deep = Array.from({ length: 1_400 }, (_, i) => `${' '.repeat(i)}value:\n`).join('')

/** Structure that never ends, which a search would look for again and again. */
const HOSTILE: readonly string[] = [
  deep + deep,
  fill('<a b="<a b=\''),
  fill('<a x="" '),
  fill('<password>'),
  `${'<a>'.repeat(SIZE / 6)}${'</b>'.repeat(SIZE / 8)}`,
  fill('\uFEFF', SIZE / 2),
  fill('<!--'),
  fill('<![CDATA['),
  fill('password: '),
  fill('password=" '),
  fill('password=\' " '),
  fill(String.raw`password=\"`),
  fill('token: ['),
  fill('value: [\n'),
  fill('password":x '),
  fill('password: x</b>'),
  fill('name: password\n'),
  fill('--XX\r\nContent-Disposition: form-data; name="'),
  fill('password is '),
  fill('-u "'),
  fill('%'),
  fill('a%253A'),
  fill('https%3A%2F%2F'),
  fill('https://a/hooks/'),
  fill('https:\\\\\\/'),
  fill('"a@'),
  fill('a@a.'),
  fill('[[[['),
  fill('eyJ'),
]

/** As many values as are looked for everywhere, and each begins like the one before. */
const alike = (step: number): string =>
  Array.from({ length: 200 }, (_, i) => `password="${'a'.repeat(step * (i + 10))}Q" `).join('')

export const redact: Benchmark = {
  about: `
How long \`relay export --redact\` takes for a text of ${SIZE.toLocaleString('en')} characters, over that of usual lines of the same size: for
structure that never ends, and for 200 values that begin alike with a text like them. None may take over twelve times as long. ${ROUNDS}
rounds.`,

  async run({ rounds }, scope) {
    const relay = await new Relay(scope, '.').serve('--source', 'open=none', '--max-body', '4000000')
    const timeOf = async (body: string): Promise<number> => {
      const headers = { 'Content-Type': 'text/plain' }
      const answer = await fetch(`${relay.url}/webhook/open`, { method: 'POST', headers, body })
      if (answer.status !== 200) throw new Error(`the text was answered ${answer.status}`)
      return (await relay.run(['export', 'last', '--redact'])).ms
    }
    const figures = async (): Promise<Figures> => {
      const usual = await timeOf(fill('name: x, y and z\n'))
      const found: Record<string, number> = {}
      for (const text of HOSTILE) found[JSON.stringify(text.slice(0, 30))] = (await timeOf(text)) / usual
      for (const step of [1, 25]) {
        const values = alike(step)
        const other = await timeOf(`${values}\n${fill('x y ', SIZE)}`)
        found[`${step} to ${step * 209} characters, over the same with another text`] =
          (await timeOf(`${values}\n${fill('a', SIZE)}`)) / other
      }
      return found
    }
    return measure(rounds(ROUNDS), { relay, earlier: undefined }, figures)
  },
}
