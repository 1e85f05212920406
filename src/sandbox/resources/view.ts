import type { Repo, User } from '../model.js'
import type { SandboxState } from '../state.js'

/** Source of the REST resources and payloads: the sandbox's contents and addresses. */
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
    return found(this.state.user(login))
  }

  repo(fullName: string): Repo {
    return found(this.state.repos.find((repo) => repo.fullName === fullName))
  }
}

/** Returns a record that another refers to. Records are never removed, so a missing one is a bug. */
function found<T>(record: T | undefined): T {
  if (record === undefined) throw new Error('the sandbox lost a record')
  return record
}
