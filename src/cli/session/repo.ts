import { RelayError } from '../../base/errors.js'
import type { Repo } from '../../codehost/host.js'

const REPO = /^(?<owner>(?!\.{1,2}\/)[A-Za-z0-9._-]{1,100})\/(?<repo>(?!\.{1,2}$)[A-Za-z0-9._-]{1,100})$/

export const REPO_ARGUMENT = { name: '<owner/repo>', help: 'the repository, for example octo/demo' } as const

/** Parses `owner/repo`. @throws RelayError `usage` with a valid example. */
export function parseRepo(text: string): Repo {
  const { owner, repo } = REPO.exec(text)?.groups ?? {}
  if (owner !== undefined && repo !== undefined) return { owner, repo }
  throw new RelayError('usage', `${JSON.stringify(text)} is not a repository. Give for example octo/demo`)
}

/** `owner/repo`. */
export function formatRepo({ owner, repo }: Repo): string {
  return `${owner}/${repo}`
}
