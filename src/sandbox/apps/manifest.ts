import { parseUrl } from '../../base/parse-url.js'
import { isObject } from '../../json/parse.js'
import { WEBHOOK } from '../../codehost/github/webhook.js'
import { isLoopbackUri } from '../oauth/authorize-request.js'

/** GitHub's limit for the name of an App, in characters. */
const MAX_NAME = 34
/** GitHub's limit for callback addresses. */
const MAX_CALLBACKS = 10

/**
 * Description of an App to register
 * (https://docs.github.com/apps/sharing-github-apps/registering-a-github-app-from-a-manifest#github-app-manifest-parameters).
 */
export interface Manifest {
  readonly name: string
  readonly url: string
  readonly description: string
  readonly redirectUrl: string
  readonly callbackUrls: readonly string[]
  readonly isPublic: boolean
  readonly hook: { readonly url: string; readonly active: boolean } | undefined
  readonly events: readonly string[]
  /** Access by name: `read`, `write` or `admin`. */
  readonly permissions: Readonly<Record<string, string>>
}

/** Reads a manifest, which is JSON. A text says why it is refused. */
export function readManifest(json: string): Manifest | string {
  const manifest = parse(json)
  if (!isObject(manifest)) return 'The manifest is not a JSON object.'
  const { name = '', url, description = '', redirect_url: redirectUrl, public: isPublic = false } = manifest
  const { callback_urls: callbackUrls = [], default_events: events = [] } = manifest
  const { default_permissions: permissions = {}, hook_attributes: hook } = manifest
  if (typeof name !== 'string' || name.length > MAX_NAME) return `The name is over ${MAX_NAME} characters.`
  if (!isHttp(url)) return 'The manifest has no homepage: url.'
  if (typeof description !== 'string' || typeof isPublic !== 'boolean') return 'The description is malformed.'
  if (typeof redirectUrl !== 'string' || !isLoopbackUri(redirectUrl))
    return 'The redirect_url is not an address on this computer.'
  if (!isListOf(callbackUrls, isHttp) || callbackUrls.length > MAX_CALLBACKS)
    return `The callback_urls are not up to ${MAX_CALLBACKS} addresses.`
  if (!isListOf(events, isEvent)) return 'The default_events have one that is unknown.'
  if (!isPermissions(permissions)) return 'The default_permissions are malformed.'
  const attributes = readHook(hook)
  if (typeof attributes === 'string') return attributes
  return {
    name,
    url,
    description,
    redirectUrl,
    callbackUrls,
    isPublic,
    hook: attributes,
    events,
    permissions,
  }
}

function readHook(hook: unknown): Manifest['hook'] | string {
  if (hook === undefined) return undefined
  const { url, active = true } = isObject(hook) ? hook : {}
  if (!isHttp(url) || typeof active !== 'boolean') return 'The hook_attributes have no url.'
  return { url, active }
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

function isListOf<T>(value: unknown, isItem: (item: unknown) => item is T): value is T[] {
  return Array.isArray(value) && value.every(isItem)
}

function isHttp(value: unknown): value is string {
  return typeof value === 'string' && /^https?:$/.test(parseUrl(value)?.protocol ?? '')
}

function isEvent(value: unknown): value is string {
  return typeof value === 'string' && WEBHOOK.events.get(value)?.actions !== undefined
}

function isPermissions(value: unknown): value is Record<string, string> {
  return (
    isObject(value) && Object.values(value).every((access) => /^(?:read|write|admin)$/.test(String(access)))
  )
}
