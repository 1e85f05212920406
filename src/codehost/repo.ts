import { RelayError } from '../base/errors.js'
import type { HostTraits, Repo } from './host.js'

/** Pattern of the name of an owner or a repository. */
export const REPO_NAME = '(?!\\.{1,2}(?:[/#!]|$))[A-Za-z0-9._-]{1,100}'
/** Pattern of an owner that may be in groups. GitLab nests 20 of them. */
export const OWNER_PATH = `${REPO_NAME}(?:/${REPO_NAME}){0,20}`
const REPO = new RegExp(`^(?<owner>${OWNER_PATH})/(?<repo>${REPO_NAME})$`)

/** For texts that are read before the code host is known. */
export const ANY_OWNER = { nestedOwners: true } as const

/**
 * Parses `owner/repo`, or `group/subgroup/repo` where the code host has such.
 * @throws RelayError `usage` with a valid example
 */
export function parseRepo(text: string, { nestedOwners }: Pick<HostTraits, 'nestedOwners'>): Repo {
  const { owner, repo } = REPO.exec(text)?.groups ?? {}
  const isKnown = owner !== undefined && (nestedOwners || !owner.includes('/'))
  if (isKnown && repo !== undefined) return { owner, repo }
  throw new RelayError('usage', `${JSON.stringify(text)} is not a repository. Give for example octo/demo`)
}

/** Formats `owner/repo`. */
export function formatRepo({ owner, repo }: Repo): string {
  return `${owner}/${repo}`
}
