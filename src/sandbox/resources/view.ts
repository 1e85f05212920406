import type { Repo, User } from '../model.js'
import type { SandboxState } from '../state.js'

/** What the resources of the REST API and of the payloads are made from. */
export class View {
  readonly state: SandboxState
  readonly #url: () => string

  constructor(state: SandboxState, url: () => string) {
    this.state = state
    this.#url = url
  }

  /** The web address, without a trailing slash. */
  get web(): string {
    return this.#url()
  }

  /** The REST API's address. */
  get api(): string {
    return `${this.web}/api/v3`
  }

  repoApi(fullName: string): string {
    return `${this.api}/repos/${fullName}`
  }

  user(login: string): User {
    return found(this.state.users.find((user) => user.login === login))
  }

  repo(fullName: string): Repo {
    return found(this.state.repos.find((repo) => repo.fullName === fullName))
  }
}

/** Records name each other, and none is ever taken away. */
function found<T>(record: T | undefined): T {
  if (record === undefined) throw new Error('the sandbox lost a record')
  return record
}

/** GitHub's opaque id. */
export function nodeId(kind: string, id: number): string {
  return Buffer.from(`${kind.length.toString().padStart(2, '0')}:${kind}${id}`).toString('base64')
}
