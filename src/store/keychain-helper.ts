// The program that calls the operating system's keychain, in a process of its own: a call that hangs hangs here, and can
// be ended. It does one request at a time, and ends with its parent.
import { on, once } from 'node:events'

/** What the parent asks; `key` is the record's account in the keychain. */
export type Request =
  | { readonly call: 'get' | 'delete'; readonly service: string; readonly key: string }
  | { readonly call: 'set'; readonly service: string; readonly key: string; readonly text: string }
  | { readonly call: 'find'; readonly service: string }

export interface Found {
  readonly key: string
  readonly text: string
}

export type Value = string | null | readonly Found[]

/** The first answer says, unasked, that requests are taken. `missing`: what calls the keychain is not there at all. */
export type Answer = { readonly value: Value } | { readonly failed: string; readonly missing: boolean }

/** What is used of keytar. Its own types are not asked for: where it cannot be built it is not installed. */
interface Keytar {
  getPassword(service: string, account: string): Promise<string | null>
  setPassword(service: string, account: string, password: string): Promise<void>
  deletePassword(service: string, account: string): Promise<boolean>
  findCredentials(service: string): Promise<readonly { account: string; password: string }[]>
}

/** An extra entry that distinguishes a locked keychain from one without the record. */
const MARK = { account: 'relay', password: 'Shows that the keychain is unlocked' }

const [, , name = 'keytar'] = process.argv

void serve()

async function serve(): Promise<void> {
  // A call that hangs would hold up an ordinary exit.
  void once(process, 'disconnect').then(() => process.kill(process.pid, 'SIGKILL'))
  const requests = on(process, 'message')
  const keytar = await load().catch(failedToLoad)
  answer('failed' in keytar ? keytar : { value: null })
  if ('failed' in keytar) return
  for await (const [request] of requests) answer(await carryOut(keytar, request))
}

function answer(answer: Answer): void {
  process.send?.(answer)
}

async function load(): Promise<Keytar> {
  const { default: keytar }: { default: Keytar } = await import(name)
  return keytar
}

function failedToLoad(error: NodeJS.ErrnoException): Answer & { failed: string } {
  const failed =
    error.code === 'ERR_MODULE_NOT_FOUND'
      ? 'keytar is not installed'
      : `keytar cannot be loaded: ${firstLine(error)}`
  return { failed, missing: true }
}

async function carryOut(keytar: Keytar, request: Request): Promise<Answer> {
  try {
    return { value: await call(keytar, request) }
  } catch (error) {
    return { failed: firstLine(error), missing: false }
  }
}

async function call(keytar: Keytar, request: Request): Promise<Value> {
  const { service } = request
  // Asked first, because keytar crashes on entries that are locked (7.9, Linux).
  if (request.call === 'find') {
    await mustBeUnlocked(keytar, service)
    const entries = await keytar.findCredentials(service)
    return entries.map(({ account, password }) => ({ key: toKey(account), text: password }))
  }
  const account = toAccount(request.key)
  if (request.call === 'set') {
    await keytar.setPassword(service, account, request.text)
    return null
  }
  const found =
    request.call === 'get'
      ? await keytar.getPassword(service, account)
      : await keytar.deletePassword(service, account)
  if (!found) await mustBeUnlocked(keytar, service)
  return typeof found === 'string' ? found : null
}

/** Rejects, as keytar does, when the keychain is locked: finding nothing there is no error to libsecret, storing is. */
async function mustBeUnlocked(keytar: Keytar, service: string): Promise<void> {
  if ((await keytar.getPassword(service, MARK.account)) !== null) return
  await keytar.setPassword(service, MARK.account, MARK.password)
}

/** An account is a C string, and would end at a NUL. */
function toAccount(key: string): string {
  return key.replaceAll(/[%\0]/g, encodeURIComponent)
}

function toKey(account: string): string {
  return account.replaceAll(/%(?:25|00)/g, decodeURIComponent)
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? ''
}
