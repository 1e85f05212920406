import type { AccountChange } from '../../../auth/accounts.js'
import { toRelayError } from '../../../base/errors.js'
import type { AttemptEvent } from '../../../dispatch/lane.js'
import { labelOf } from '../../../dispatch/routes.js'
import type { TargetStatus } from '../../../dispatch/target.js'
import { targetReason } from '../../../dispatch/waiting.js'
import type { HookEvent } from '../../../events/hook-event.js'
import type { TunnelStatus } from '../../../instance/protocol.js'
import { attemptFields, deliveryFields, failedObject, pauseObject } from '../../output/deliveries.js'
import type { ServeItem } from './items.js'

/** An item as a program gets it. Times are ISO 8601. */
type ItemObject = { readonly type: string } & Readonly<Record<string, unknown>>

/** Makes the object of an item. Undefined for items that only a person gets. */
export function itemObject(item: ServeItem): ItemObject | undefined {
  switch (item.type) {
    case 'listening':
      return item
    case 'delivery': {
      const { n, duplicate, ignoredBy = null } = item.receipt
      return { type: 'delivery', n, ...deliveryFields(item.delivery), duplicate, ignoredBy }
    }
    case 'attempt':
      return attemptObject(item.attempt, item.name)
    case 'skipped':
      return { type: 'skipped', n: item.n, target: labelOf(item.id), name: item.name }
    case 'target':
      return targetObject(item.target, item.name)
    case 'tunnel':
      return tunnelObject(item.tunnel)
    case 'hook':
      return hookChangeObject(item.hook)
    case 'account':
      return accountObject(item.account)
    case 'handshake':
      return { type: 'handshake', ...item.handshake }
    case 'settings': {
      const { warnings: _, ...reloaded } = item.reloaded
      return { type: 'settings', state: 'reloaded', ...reloaded }
    }
    case 'settings refused': {
      const { message, kind } = toRelayError(item.error)
      return { type: 'settings', state: 'unchanged', code: kind, error: message }
    }
    case 'dropped':
      return { type: 'dropped', count: item.count }
    case 'starting':
    case 'running':
    case 'message':
  }
  return undefined
}

function attemptObject({ n, entry, route, attempt, forward, retryAt }: AttemptEvent, name: string) {
  const { event, action, repo, number, ref = null, deliveryId: delivery } = entry
  const { status: state, reason = null } = forward
  const about = { event, action, repo, number, ref, state, reason, retryAt: isoTime(retryAt), name, delivery }
  return { type: 'attempt', n, ...attemptFields(attempt, route.label), ...about }
}

function targetObject(target: TargetStatus, name: string) {
  const { label, state, queued, slow, since, nextProbeAt } = target
  const times = { since: isoTime(since), nextTryAt: isoTime(nextProbeAt) }
  const waitsFor = (queued > 0 ? targetReason(target, Date.now()) : undefined) ?? null
  return { type: 'target', target: label, state, queued, ...times, name, waitsFor, ...(slow && { slow }) }
}

function tunnelObject(status: TunnelStatus) {
  return { type: 'tunnel', ...status, since: isoTime(status.since), retryAt: isoTime(status.retryAt) }
}

function accountObject(change: AccountChange) {
  const { userId: user, origin, account = null, before = null } = change
  const state = change.account === undefined ? 'signed out' : 'signed in'
  return { type: 'account', state, user, origin, account, before }
}

function hookChangeObject(event: HookEvent): ItemObject {
  const source = 'app' in event ? { app: event.app } : { repo: event.repo }
  return { type: 'hook', ...source, state: event.state, ...hookChangeFields(event) }
}

function hookChangeFields(event: HookEvent): Readonly<Record<string, unknown>> {
  switch (event.state) {
    case 'ready': {
      const { hook, created, repaired, found, permanent } = event.hook
      const own = { id: hook.id, url: hook.url, created, repaired, found, permanent }
      return { ...own, ...(hook.paused && { paused: pauseObject(hook.paused) }) }
    }
    case 'leads here':
      return { url: event.url, repaired: event.repaired }
    case 'missing':
      return { missing: event.count }
    case 'caught up': {
      const { missing, arrived, failed } = event.result
      return { missing, arrived, failed: failed.map(failedObject) }
    }
    case 'removed':
    case 'kept':
      return { url: event.url }
    case 'left':
      return { error: event.error.message }
    case 'failed':
    case 'not caught up':
  }
  return { error: event.error.message, retries: event.retries }
}

function isoTime(at: number | null | undefined): string | null {
  return at === undefined || at === null ? null : new Date(at).toISOString()
}
