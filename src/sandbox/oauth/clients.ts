import type { Secret } from '../../base/secret.js'
import type { Permissions } from './permissions.js'
import { sameSecret } from './secrets.js'

/** Application that users can authorize. */
export interface Client {
  readonly id: string
  readonly secret: Secret
  /** Whether its users may sign in by device flow, which is a setting of the application. */
  readonly deviceFlow: boolean
  /** For an App: what its users' tokens may do, instead of scopes. */
  readonly permissions?: () => Permissions
}

/** Applications by client id. */
export class Clients {
  readonly #clients = new Map<string, Client>()

  add(client: Client): void {
    this.#clients.set(client.id, client)
  }

  find(id: string | null): Client | undefined {
    return this.#clients.get(id ?? '')
  }

  /** Finds the application with this id, if the secret is its own. */
  authenticate(id: string | null, secret: string | null): Client | undefined {
    const client = this.find(id)
    return client && sameSecret(secret ?? '', client.secret.reveal()) ? client : undefined
  }
}
