import type { Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { Secret } from '../base/secret.js'
import type { DeliveryLog } from '../hooks/catch-up.js'
import { sameAddress } from '../hooks/ensure.js'
import { checkReachable } from '../hooks/registration.js'
import type { CoveringApp } from '../hooks/through-app.js'
import { isUnknownApp, Refusal } from '../providers/errors.js'
import type { Provider } from '../providers/provider.js'
import type { AppDescription, AppHook, AppIdentity } from '../providers/registration.js'
import type { Store } from '../store/kv.js'
import { readAppHook, readStoredApp, saveAppHook } from './record.js'

/**
 * The App that `relay setup --app-hook` registered, whose own webhook sends the deliveries of its repositories. Its calls reject
 * like those of `Provider`, except with `forbidden` for a key that was removed and `gone` for an App that was deleted, with the
 * next step.
 */
export interface OwnApp extends CoveringApp {
  /** Address that relay gave to its webhook last. */
  readonly savedUrl: string
  /** What it sent. */
  readonly log: DeliveryLog
  /** Its webhook as it is. */
  hook(options?: Cancellable): Promise<AppHook>
  describe(options?: Cancellable): Promise<AppDescription>
  /**
   * Makes its webhook send JSON to `url`, signed with `secret`. Resolves to what was wrong before.
   * @throws RelayError `conflict` if somebody gave it an address of their own; `settings` if the code host cannot reach `url`
   */
  repair(settings: AppHookSettings, options?: Cancellable): Promise<readonly string[]>
}

interface AppHookSettings {
  readonly url: string
  readonly secret: Secret
}

type Host = Pick<Provider, 'url' | 'registration'>

/** Undefined if the profile has none at this code host, or its webhook was left inactive. @throws RelayError `storage` */
export async function findOwnApp(
  store: Pick<Store, 'get' | 'put'>,
  provider: Host,
): Promise<OwnApp | undefined> {
  const { apps } = provider.registration
  const saved = apps && (await readAppHook(store, provider.url))
  const app = saved && (await readStoredApp(store, provider.url))
  if (!apps || !app) return undefined
  const explained = <T>(call: Promise<T>): Promise<T> =>
    call.catch((error: unknown) => {
      throw explainAppError(error, app, provider.url)
    })
  const hook = async (options?: Cancellable): Promise<AppHook> => {
    const shown = await explained(apps.hook.show(app, options)).catch(noneIfNotFound)
    if (shown && shown.url !== '') return shown
    throw new RelayError(
      'gone',
      `The App ${app.slug} has no webhook at ${provider.url} any more. Enter ${saved.url} in its settings there`,
    )
  }
  return {
    slug: app.slug,
    savedUrl: saved.url,
    log: {
      page: (cursor, options) => explained(apps.hook.page(app, cursor, options)),
      redeliver: (id, options) => explained(apps.hook.redeliver(app, id, options)),
    },
    hook,
    describe: (options) => explained(apps.describe(app, options)),
    isInstalledOn: (repo, options) => explained(apps.isInstalled(app, repo, options)).catch(asAbsent),
    async repair(settings, options) {
      checkReachable(settings.url, provider.url)
      const before = await hook(options)
      checkAddress(before, { ours: [settings.url, saved.url, saved.former], slug: app.slug })
      // Saved first: whichever address an interrupted change leaves there is ours.
      await saveAppHook(store, provider.url, { url: settings.url, former: before.url })
      await explained(apps.hook.change(app, settings, options))
      return differences(before, settings.url)
    },
  }
}

function noneIfNotFound(error: unknown): undefined {
  if (!(error instanceof RelayError && error.kind === 'not_found')) throw error
}

/** An App that cannot be asked any more is no reason to refuse a hook. */
function asAbsent(error: unknown): false {
  if (error instanceof RelayError && (error.kind === 'forbidden' || error.kind === 'gone')) return false
  throw error
}

function checkAddress(
  { url }: AppHook,
  { ours, slug }: { readonly ours: readonly string[]; readonly slug: string },
): void {
  if (ours.some((one) => sameAddress(one, url))) return
  throw new RelayError(
    'conflict',
    `The webhook of the App ${slug} leads to ${url}, which somebody entered there. To have it here, enter ${ours[0]} in the settings of the App`,
  )
}

function differences({ url, contentType, hasSecret }: AppHook, now: string): string[] {
  return [
    ...(sameAddress(url, now) ? [] : [`it led to ${url}`]),
    ...(contentType === 'json' ? [] : [`it sent ${contentType}`]),
    ...(hasSecret ? [] : ['it had no secret']),
  ]
}

/** The error of a call that an App makes, with what to do about it. Others stay as they are. */
function explainAppError(error: unknown, { slug }: Pick<AppIdentity, 'slug'>, host: string): unknown {
  if (isUnknownApp(error))
    return new RelayError(
      'gone',
      `${host} has no App ${slug} any more: it was deleted there. Register another with relay setup`,
      { cause: error },
    )
  if (!(error instanceof Refusal) || error.kind !== 'invalid_token') return error
  const { upstreamMessage: message } = error
  // GitHub names the claim of a time that it does not accept.
  const why = /'(?:exp|iat)'/.test(message)
    ? `${host} refused the token of the App ${slug}: ${message}. Set this machine's clock; relay doctor compares it`
    : `${host} refused the key of the App ${slug}: it was removed there. Delete the App there, and register another with relay setup`
  return new RelayError('forbidden', why, { cause: error })
}
