import { parseUrl } from '../../base/parse-url.js'
import { Secret } from '../../base/secret.js'
import { isObject } from '../../json/parse.js'
import { sentEvents } from '../../codehost/events.js'
import { WEBHOOK } from '../../codehost/github/webhook.js'
import { type FieldError, GitHubError } from '../github-error.js'
import type { ContentType, HookConfig } from '../hooks/hook.js'
import type { HookInput } from '../hooks/hooks.js'
import { type JsonObject, readText } from './input.js'

const EVENTS: ReadonlySet<string> = new Set(['*', ...sentEvents(WEBHOOK.events).keys()])
const CONTENT_TYPES: readonly ContentType[] = ['json', 'form']

/** Reads the settings of a new hook, with GitHub's defaults: event `push`, format `form`. @throws GitHubError 422 */
export function readNewHook(body: JsonObject): HookInput {
  if ((readText(body, 'name') ?? 'web') !== 'web') throw invalid({ code: 'invalid', field: 'name' })
  return {
    active: readFlag(body, 'active') ?? true,
    events: readEvents(body, 'events') ?? ['push'],
    config: readConfig(objectOf(body['config'])),
  }
}

/**
 * Reads changes of a hook. Like GitHub, `config` replaces all settings, and so removes a secret that it does not repeat.
 * @throws GitHubError 422
 */
export function readHookChanges(body: JsonObject, hook: HookInput): HookInput {
  const removed = readEvents(body, 'remove_events') ?? []
  const events = [...(readEvents(body, 'events') ?? hook.events), ...(readEvents(body, 'add_events') ?? [])]
  return {
    active: readFlag(body, 'active') ?? hook.active,
    events: [...new Set(events)].filter((event) => !removed.includes(event)),
    config: body['config'] === undefined ? hook.config : readConfig(objectOf(body['config'])),
  }
}

/** Reads the settings of a hook; those absent are `known`'s, or GitHub's defaults. @throws GitHubError 422 */
export function readConfig(config: JsonObject, known?: HookConfig): HookConfig {
  const secret = readText(config, 'secret')
  const contentType = readText(config, 'content_type') ?? known?.contentType ?? 'form'
  const insecureSsl = config['insecure_ssl'] ?? known?.insecureSsl
  return {
    url: readUrl(readText(config, 'url') ?? known?.url()),
    contentType:
      CONTENT_TYPES.find((type) => type === contentType) ??
      refuse({ code: 'invalid', field: 'content_type' }),
    insecureSsl: insecureSsl === '1' || insecureSsl === 1 ? '1' : '0',
    secret: secret === undefined ? known?.secret : secret === '' ? undefined : new Secret(secret),
  }
}

function readUrl(url: string | undefined): () => string {
  if (!url) throw invalid({ code: 'custom', message: 'Config must contain URL for webhooks' })
  if (!/^https?:$/.test(parseUrl(url)?.protocol ?? '')) throw invalid({ code: 'invalid', field: 'url' })
  return () => url
}

function readEvents(body: JsonObject, field: string): string[] | undefined {
  const events = body[field]
  if (events === undefined) return undefined
  const isKnown = (event: unknown): event is string => typeof event === 'string' && EVENTS.has(event)
  if (!Array.isArray(events) || !events.every(isKnown)) throw invalid({ code: 'invalid', field })
  return [...new Set(events)]
}

function readFlag(body: JsonObject, field: string): boolean | undefined {
  const value = body[field]
  if (value === undefined || typeof value === 'boolean') return value
  throw invalid({ code: 'invalid', field })
}

function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

function refuse(error: Omit<FieldError, 'resource'>): never {
  throw invalid(error)
}

/** GitHub's answer to settings that it refuses. */
export function invalid(...errors: readonly Omit<FieldError, 'resource'>[]): GitHubError {
  return new GitHubError(
    422,
    'Validation Failed',
    errors.map((error) => ({ resource: 'Hook', ...error })),
  )
}
