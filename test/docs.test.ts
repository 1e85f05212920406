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
