// tsx test/acceptance.ts [--record]: no assertion of the acceptance suite is changed or deleted without a word. Compares the suite
// with the assertions recorded in test/acceptance.json; what is gone must be named in test/CHANGES.md, by its id.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

const FOLDERS = ['test/outside', 'test/process', 'test/browser', 'test/service']
const RECORD = 'test/acceptance.json'
const CHANGES = 'test/CHANGES.md'

interface Assertion {
  readonly id: string
  readonly file: string
}

function main(): void {
  const found = FOLDERS.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .flatMap((name) => assertionsOf(`${folder}/${name}`)),
  )
  if (process.argv.includes('--record')) return record(found)
  const gone = missing(found)
  const changes = readFileSync(CHANGES, 'utf8')
  const unnamed = gone.filter(({ id }) => !changes.includes(id))
  for (const { id, file } of unnamed) process.stderr.write(`${id} ${file}: an assertion is changed or gone\n`)
  if (unnamed.length === 0) return
  process.stderr.write(
    `Name each by its id in ${CHANGES}, with the sentence that allows it. To find it: git log -p -- <file>\n`,
  )
  process.exitCode = 1
}

/** Ids by file, so that a change of one file changes one line. */
function record(found: readonly Assertion[]): void {
  const files = [...new Set(found.map(({ file }) => file))].toSorted()
  const idsOf = (file: string): string[] => found.filter((each) => each.file === file).map(({ id }) => id)
  const byFile = Object.fromEntries(files.map((file) => [file, idsOf(file).join(' ')]))
  writeFileSync(RECORD, `${JSON.stringify(byFile, null, 2)}\n`)
}

/** What is recorded and no longer there. An assertion may move to another file, and need not be there as often as before. */
function missing(found: readonly Assertion[]): Assertion[] {
  const present = new Set(found.map(({ id }) => id))
  const recorded: Record<string, string> = JSON.parse(readFileSync(RECORD, 'utf8'))
  return Object.entries(recorded).flatMap(([file, ids]) =>
    ids.split(' ').flatMap((id) => (present.has(id) ? [] : [{ id, file }])),
  )
}

/** The `expect` statements of a file, and the rows of its tables. */
function assertionsOf(file: string): Assertion[] {
  const source = readFileSync(file, 'utf8')
  const starts = [...source.matchAll(/\bexpect(?:\.poll)?(?=\()|\.each(?=\()/g)]
  return starts.map(({ index, 0: word }) => {
    const end =
      word === '.each' ? endOfBrackets(source, index + word.length) : endOfChain(source, index + word.length)
    // However the formatter breaks its lines.
    const text = source.slice(index, end).replaceAll(/[\s,]/g, '')
    return { id: createHash('sha256').update(text).digest('hex').slice(0, 10), file }
  })
}

/** Where an expression ends that goes on with calls and members: `(…).rejects.toThrow(…)`. */
function endOfChain(source: string, start: number): number {
  let end = endOfBrackets(source, start)
  for (;;) {
    const [next] = /^\s*\.\w+/.exec(source.slice(end, end + 200)) ?? []
    if (next === undefined) return end
    end += next.length
    if (source[end] === '(') end = endOfBrackets(source, end)
  }
}

const CLOSING: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' }

/** Where the bracket closes that opens at `start`. */
function endOfBrackets(source: string, start: number): number {
  const open: string[] = []
  for (let at = start; at < source.length; at++) {
    const sign = source[at] ?? ''
    if (`'"\``.includes(sign)) at = endOfText(source, at)
    else if (source.startsWith('//', at) && source[at - 1] !== ':') at = source.indexOf('\n', at)
    else if (CLOSING[sign] !== undefined) open.push(CLOSING[sign])
    else if (sign === open.at(-1)) {
      open.pop()
      if (open.length === 0) return at + 1
    }
  }
  return source.length
}

/** Where the text ends that a quotation mark at `start` begins. */
function endOfText(source: string, start: number): number {
  let at = start + 1
  while (at < source.length && source[at] !== source[start]) at += source[at] === '\\' ? 2 : 1
  return at
}

main()
