import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

const DECISIONS = 'docs/decisions'
const pagesIn = (folder: string): string[] =>
  readdirSync(folder).flatMap((name) => (name.endsWith('.md') ? [path.join(folder, name)] : []))
const PAGES = ['.', 'docs', DECISIONS, 'bench'].flatMap(pagesIn)

/** The anchors of a page, as GitHub makes them of its headings. */
function anchorsOf(page: string): string[] {
  const text = readFileSync(page, 'utf8').replace(/^```[\s\S]*?^```/gm, '')
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

it.each(PAGES)('%s links only to what is there', (page) => {
  const text = readFileSync(page, 'utf8').replace(/^```[\s\S]*?^```/gm, '')
  const links = [...text.matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)/g)]
  const broken = links.filter(([, file = '', anchor]) => {
    const target = file === '' ? page : path.join(path.dirname(page), file)
    if (!existsSync(target)) return true
    return anchor !== undefined && target.endsWith('.md') && !anchorsOf(target).includes(anchor)
  })
  expect(broken.map(([link]) => link)).toEqual([])
})

/** Files that a page may name, by their path from the root. */
const FILES = ['src', 'bin', 'scripts', 'test', 'bench'].flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => path.join(folder, file)),
)

/** Finds the files that a page means, by their path from the root or in `src`. `<name>` stands for any name. */
function filesNamed(name: string): string[] {
  const pattern = name.replaceAll('.', String.raw`\.`).replaceAll(/<[^>]*>/g, '[^/]*')
  return FILES.filter((file) => new RegExp(`^(?:src/)?${pattern}$`).test(file))
}

/** A page without its code blocks, and without what decision 020 says of the house before it. */
function textOf(page: string): string {
  return readFileSync(page, 'utf8')
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .replaceAll(/^\| step \| before \| now \|\n(?:\|.*\n)+/gm, (table) =>
      table.replaceAll(/^\| ([^|]*) \| [^|]* \| /gm, '| $1 | '),
    )
    .replaceAll(/^Back before:[\s\S]*?^Back now:/gm, 'Back now:')
}

describe('a file that a page names', () => {
  const inPages = (find: (text: string) => readonly (readonly string[])[]) =>
    PAGES.flatMap((page) => find(textOf(page)).map((found) => [page, ...found]))

  it('is there, and is named by its whole path', () => {
    const named = inPages((text) =>
      [...text.matchAll(/`((?:[\w./-]|<[^>`]*>)+\.tsx?)`/g)].map(([, file = '']) => [file]),
    )
    expect(named.length).toBeGreaterThan(200)
    expect(named.filter(([, file = '']) => filesNamed(file).length === 0)).toEqual([])
  })

  it('has what the page says it has', () => {
    const said = inPages((text) => [
      ...[...text.matchAll(/`(\w+)`\s(?:in|of)\s`([\w./-]+\.tsx?)`/g)].map(([, name = '', file = '']) => [
        file,
        name,
      ]),
      ...[...text.matchAll(/`([\w./-]+\.tsx?)`\s\(`(\w+)`/g)].map(([, file = '', name = '']) => [file, name]),
    ])
    expect(said.length).toBeGreaterThan(20)
    const has = (file: string, name: string): boolean =>
      filesNamed(file).some((each) => new RegExp(`\\b${name}\\b`).test(readFileSync(each, 'utf8')))
    expect(said.filter(([, file = '', name = '']) => !has(file, name))).toEqual([])
  })
})

it('counts the files of the six ways before and after decision 020', () => {
  const page = readFileSync(path.join(DECISIONS, '020-one-shape-for-each-thing.md'), 'utf8')
  const filesIn = (cell: string): string[] =>
    [...cell.matchAll(/`([\w./-]+\.tsx?)`/g)].map(([, file = '']) => file)
  const tables = [...page.matchAll(/^\| step \| before \| now \|\n\|[-|]+\n((?:\|.*\n)+)/gm)]
  const counts = tables.map(([, table = '']) => {
    const rows = table
      .trim()
      .split('\n')
      .map((row) => row.split(' | '))
    const before = rows.flatMap(([, cell = '']) => filesIn(cell))
    const now = rows.flatMap(([, cell = '', after = '']) =>
      filesIn(after.includes('as before') ? cell + after : after),
    )
    return [new Set(before).size, new Set(now).size]
  })
  const sum = (index: number): number => counts.reduce((all, each) => all + (each[index] ?? 0), 0)
  const said = [...page.matchAll(/^\| [^|]+ \| (\d+) \| (\d+) \| \d+ \| \d+ \|$/gm)]
  expect(said.map(([, before, now]) => [Number(before), Number(now)])).toEqual([...counts, [sum(0), sum(1)]])
})

it('explains each word of the glossary by what is in the code', () => {
  const rows = readFileSync('docs/glossary.md', 'utf8').matchAll(/^\| \*\*.*\| ([^|]*) \|$/gm)
  const meant = [...rows].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code),
  )
  const sources = FILES.filter((file) => /^src\/.*\.tsx?$/.test(file)).map((file) =>
    readFileSync(file, 'utf8'),
  )
  const isThere = (code: string): boolean => {
    const [, type = '', member = ''] = /^([A-Z]\w*)(?:\.(\w+))?$/.exec(code) ?? []
    if (type === '') return true
    const declared = new RegExp(`(?:class|interface|type) ${type}\\b`)
    return sources.some((text) => declared.test(text) && new RegExp(`\\b${member}\\b`).test(text))
  }
  expect(meant.length).toBeGreaterThan(20)
  expect(meant.filter((code) => !isThere(code))).toEqual([])
})

describe('decisions', () => {
  const files = readdirSync(DECISIONS).filter((name) => name !== 'README.md')
  const read = (name: string): string => readFileSync(path.join(DECISIONS, name), 'utf8')

  it('are numbered from 001, each with its number, date, context, choice and cost', () => {
    expect(files.map((name) => name.slice(0, 3))).toEqual(files.map((_, i) => String(i + 1).padStart(3, '0')))
    for (const name of files) {
      expect(read(name)).toMatch(
        new RegExp(`^# ${name.slice(0, 3)}: .+\n\n\\*\\*Date\\.\\*\\* \\d{4}-\\d\\d-\\d\\d\n`),
      )
      for (const part of ['Context', 'Choice', 'Cost']) expect(read(name)).toContain(`**${part}`)
    }
  })

  it('are in the index, by number, with title and date', () => {
    const rows = files.map((name) => {
      const [, number, title] = /^# (\d+): (.*)/.exec(read(name)) ?? []
      const [, date] = /\*\*Date\.\*\* (\S+)/.exec(read(name)) ?? []
      return `| [${number}](${name}) | ${title} | ${date} |`
    })
    const index = read('README.md')
    expect(index.split('\n').filter((line) => /^\| \[\d/.test(line))).toEqual(rows)
  })
})
