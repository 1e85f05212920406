import { createRequire } from 'node:module'
import { describe, expect, it } from 'vitest'
import { codeHostOf } from '../../src/providers/code-hosts.js'
import { synthesize } from '../../src/sandbox/synthesize.js'

const NOW = Date.UTC(2026, 0, 31)

const kinds: { name: string; examples: Record<string, unknown>[] }[] = createRequire(import.meta.url)(
  '@octokit/webhooks-examples',
)

/** GitHub's own examples of this event and action, from repositories; of any action where there are none. */
function examplesOf(trigger: string): Record<string, unknown>[] {
  const [event, action] = trigger.split('.')
  const all = kinds.find(({ name }) => name === event)?.examples ?? []
  const ofRepositories = all.filter((example) => example['repository'])
  const same = ofRepositories.filter((example) => example['action'] === action)
  return same.length > 0 ? same : ofRepositories
}

/** The fields that all the examples have and ours lacks, or has as another type; null fits every type. */
function lacking(real: readonly unknown[], ours: unknown, path: string): string[] {
  if (ours === undefined) return [path]
  if (ours === null || real.some((one) => one === null || Array.isArray(one))) return []
  if (real.every((one) => typeof one !== typeof ours)) return [`${path}: ${typeof ours}`]
  if (real.some((one) => typeof one !== 'object')) return []
  const inner = real.map((one) => new Map(Object.entries(Object(one))))
  const mine = new Map(Object.entries(ours))
  const names = [...(inner[0]?.keys() ?? [])].filter((name) => inner.every((one) => one.has(name)))
  return names.flatMap((name) =>
    lacking(
      inner.map((one) => one.get(name)),
      mine.get(name),
      `${path}.${name}`,
    ),
  )
}

describe('the made-up deliveries', () => {
  // The others are fixtures, which are GitHub's own examples.
  it.each(Object.keys(codeHostOf('github').templates))(
    '%s has every field that GitHub’s own have, of the same type',
    (trigger) => {
      const real = examplesOf(trigger)
      expect(real.length).toBeGreaterThan(0)
      const payload: unknown = JSON.parse(synthesize('github', trigger, NOW).body ?? '')
      const account = /\.(?:installation|organization)$/
      expect(lacking(real, payload, trigger).filter((path) => !account.test(path))).toEqual([])
    },
  )

  it('Gitea’s are written as Gitea writes', () => {
    const { body = '', headers } = synthesize('gitea', 'push', NOW)
    expect(body).toMatch(/^\{\n {2}"ref": "refs\/heads\/main",\n/)
    expect(headers).toMatchObject({
      'X-Gitea-Event': 'push',
      'X-GitHub-Event': 'push',
      'X-Gogs-Event': 'push',
    })
  })
})
