import { describe, expect, it } from 'vitest'
import { parseExec, parseForward } from '../../src/dispatch/route.js'
import { createTargetLabels } from '../../src/metrics/target-labels.js'

const FORWARDS = [
  'app=http://127.0.0.1:3000/hooks',
  'http://alice:secret@127.0.0.1:3000/T000/secret?key=secret',
  'push=http://127.0.0.1:3000/other',
  'https://[::1]:8443/',
  'app=http://127.0.0.1:4000/',
]
const COMMANDS = [
  'TOKEN=secret ./bin/deploy.sh --key secret',
  '*=KEY=secret',
  '$(cat secret) run',
  './bin/deploy.sh other',
]

describe('the labels of targets', () => {
  it('are short names, each its own, and show nothing of paths, queries, passwords and arguments', () => {
    const routes = [
      ...FORWARDS.map(parseForward),
      ...['*=', '', '', ''].map((match, i) => parseExec(match + (COMMANDS[i] ?? ''))),
    ]
    const labelOf = createTargetLabels(() => routes)
    // In any order: they were given in that of the routes.
    const labels = routes.toReversed().map(({ id }) => labelOf(id))
    expect(labels.toReversed()).toEqual([
      'app',
      '127.0.0.1:3000',
      '127.0.0.1:3000-2',
      '[::1]:8443',
      'app-2',
      'deploy.sh',
      'command',
      'command-2',
      'deploy.sh-2',
    ])
  })

  it('name targets that are no longer configured, and stay as they are', () => {
    let routes = [parseForward('app=http://127.0.0.1:3000/')]
    const labelOf = createTargetLabels(() => routes)
    const ids = ['*=http://127.0.0.1:3000/', 'push=exec:./old.sh secret', '*=https://example.com/secret']
    expect(ids.map(labelOf)).toEqual(['app', 'old.sh', 'example.com'])
    routes = []
    expect(ids.map(labelOf)).toEqual(['app', 'old.sh', 'example.com'])
  })

  it('are at most 100, and one for all others', () => {
    const labelOf = createTargetLabels(() => [])
    const labels = Array.from({ length: 150 }, (_, i) => labelOf(`*=http://127.0.0.1:${i + 1}/`))
    expect(new Set(labels).size).toBe(101)
    expect(labels.slice(99, 102)).toEqual(['127.0.0.1:100', 'others', 'others'])
  })
})
