import { hostSource, PROVIDER_NAMES } from '../base/source-names.js'
import type { HeaderLines } from '../http/headers.js'
import type { HeaderFamily } from './scheme.js'

/** Headers of any code host: Gitea sends also those of GitHub and Gogs. */
export const CODE_HOSTS: HeaderFamily = {
  name: 'the code host',
  event: /^x-[a-z]+-event$/i,
  id: /^x-[a-z]+-delivery$/i,
  signature: /^x-[a-z]+-signature(?:-256)?$/i,
  sha1: 'x-hub-signature',
}

/** Places of the branch or tag in a code host's events. */
export const REFS = ['$.ref', '$.release.tag_name'] as const

/**
 * Reports that a request to a code host's address has the headers of another code host. This explains more than the
 * mismatch itself. Gitea and Forgejo send GitHub's names too.
 */
export function otherHostText(lines: HeaderLines, source: string): string | undefined {
  const provider = PROVIDER_NAMES.find((name) => hostSource(name) === source)
  const sent = SENT_BY.find(({ headers }) => headers.some((name) => lines.has(name)))
  if (!provider || !sent || sent.name === provider) return undefined
  // The sandbox sends what GitHub does.
  if (sent.name === 'github' && provider === 'sandbox') return undefined
  const address = sent.name === 'github' ? '' : ', and RELAY_PROVIDER_URL to its address'
  return `its headers are those of ${sent.label}, but this relay receives from ${provider}: set RELAY_PROVIDER=${sent.name}${address}`
}

/** Headers by which a code host is known, Gitea's before GitHub's. */
const SENT_BY = [
  { name: 'gitea', label: 'Gitea', headers: ['x-gitea-event', 'x-gitea-delivery', 'x-forgejo-event'] },
  { name: 'gitlab', label: 'GitLab', headers: ['x-gitlab-event'] },
  { name: 'github', label: 'GitHub', headers: ['x-github-event'] },
] as const
