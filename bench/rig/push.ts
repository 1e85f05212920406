import { createHmac } from 'node:crypto'
import { createRequire } from 'node:module'

/** The webhook secret of every server here. */
export const SECRET = 'bench'

interface Push {
  readonly commits: readonly object[]
  readonly [field: string]: unknown
}

const examples: { name: string; examples: Push[] }[] = createRequire(import.meta.url)(
  '@octokit/webhooks-examples',
)
const example = examples
  .find(({ name }) => name === 'push')
  ?.examples.find(({ commits }) => commits.length > 0)
if (!example) throw new Error('@octokit/webhooks-examples has no push with a commit')

/** GitHub's own example of a push, 7,678 bytes. */
export const PUSH = Buffer.from(JSON.stringify(example))

/** What of it makes 1 KB. */
export const SMALL_PUSH = shortened(example)

/** With as many commits as fit into 1 MiB, the largest body that relay accepts by default. */
export const LARGE_PUSH = lengthened(example, 1_048_576)

export function signatureOf(body: Uint8Array): string {
  return `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`
}

function shortened({ ref, before, after, created, deleted, compare, pusher, head_commit }: Push): Buffer {
  const repository = { full_name: 'Codertocat/Hello-World' }
  const fields = { ref, before, after, created, deleted, compare, pusher, repository, head_commit }
  return Buffer.from(JSON.stringify(fields))
}

function lengthened(push: Push, bytes: number): Buffer {
  const [commit = {}] = push.commits
  const room = bytes - JSON.stringify({ ...push, commits: [] }).length
  const count = Math.floor(room / (JSON.stringify(commit).length + 1))
  return Buffer.from(JSON.stringify({ ...push, commits: Array.from({ length: count }, () => commit) }))
}
