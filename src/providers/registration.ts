import type { Cancellable } from '../base/abort.js'
import type { Secret } from '../base/secret.js'
import type { OAuthClient } from '../base/settings.js'
import type { DeliveryPage } from './hooks.js'
import type { RepoTarget } from './targets.js'

/** An App, as it authenticates itself: with tokens that its private key signs. */
export interface AppIdentity {
  readonly id: number
  /** Name of the App in addresses. */
  readonly slug: string
  /** PEM (PKCS #1). */
  readonly privateKey: Secret
}

/** What relay asks of an App that it has registered. */
export interface AppRequest {
  /** At most 34 characters; the user can change it. */
  readonly name: string
  /** Where the code host sends the browser with the code of the new App. */
  readonly redirectUrl: string
  /** Where sign-ins return to. */
  readonly callbackUrl: string
  /** The App's own webhook. Undefined: none. */
  readonly hook: { readonly url: string; readonly active: boolean } | undefined
}

/** An App that was just registered. Its secrets are shown only once. */
export interface RegisteredApp {
  readonly app: AppIdentity
  readonly client: OAuthClient
  /** Undefined if the App has no webhook. */
  readonly webhookSecret: Secret | undefined
  /** Page on which a user chooses the repositories of the App. */
  readonly installUrl: string
}

/** What the code host says about an App. */
export interface AppDescription {
  /** Page on which a user chooses the repositories of the App. */
  readonly installUrl: string
  /** Accounts that have installed it; undefined if the code host does not say (older GitHub Enterprise Servers). */
  readonly installations: number | undefined
}

/** An App's own webhook, as the code host shows it. Whether it is active, the code host shows to people only. */
export interface AppHook {
  readonly url: string
  readonly contentType: string
  readonly hasSecret: boolean
}

/**
 * Calls that register an App by a manifest, and that it makes itself. They reject like those of `Provider`: `invalid_token` also
 * for a key that was revoked, `not_found` for an App that was deleted.
 */
export interface AppCalls {
  /** Page that takes a manifest, of the user's account or of an organization. */
  page(organization: string | undefined): string
  /** The manifest as JSON. */
  manifest(request: AppRequest): string
  /** Exchanges the code that the manifest flow ends with. It works once. */
  convert(code: string, options?: Cancellable): Promise<RegisteredApp>
  describe(app: AppIdentity, options?: Cancellable): Promise<AppDescription>
  /** Whether the App is installed on a repository. */
  isInstalled(app: AppIdentity, repo: RepoTarget, options?: Cancellable): Promise<boolean>
  readonly hook: AppHookCalls
}

/** Calls about the webhook of an App. */
export interface AppHookCalls {
  show(app: AppIdentity, options?: Cancellable): Promise<AppHook>
  /** Makes it send JSON that is signed with this secret, to another address if one is given. */
  change(
    app: AppIdentity,
    settings: { readonly url?: string; readonly secret: Secret },
    options?: Cancellable,
  ): Promise<void>
  /** A page of its delivery log, of the deliveries of all its repositories. */
  page(app: AppIdentity, cursor: string | undefined, options?: Cancellable): Promise<DeliveryPage>
  /** Asks for the same delivery again. It arrives later, or not. */
  redeliver(app: AppIdentity, deliveryId: string, options?: Cancellable): Promise<void>
}

/** How relay becomes an OAuth application of a code host. */
export interface Registration {
  /** Page on which a user registers an OAuth application by hand. */
  readonly page: string
  /** Absent if the code host has no Apps (Gitea). */
  readonly apps?: AppCalls
  /** Registers an OAuth application with a user's token. Absent if the code host has no such call (GitHub). */
  create?(
    token: string,
    application: { readonly name: string; readonly redirectUri: string },
    options?: Cancellable,
  ): Promise<OAuthClient>
}
