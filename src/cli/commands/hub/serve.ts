import { createPrivateKey, X509Certificate } from 'node:crypto'
import { statSync } from 'node:fs'
import { hostInUrl, isLoopback } from '../../../base/address.js'
import { RelayError, toRelayError } from '../../../base/errors.js'
import type { Log } from '../../../base/log.js'
import { TIME_LIMITS } from '../../../base/seams.js'
import { MAX_MAX_BODY } from '../../../base/settings.js'
import { aborted } from '../../../base/wait.js'
import type { Certificate } from '../../../http/listen.js'
import { type HubSettings, startHub } from '../../../serve/hub.js'
import { runService } from '../../service.js'
import type { Flags, Shell } from '../../command.js'
import { explainPort } from '../../port-owner.js'
import { profileFolder, storeOf } from '../../settings/derived.js'
import { readSecretFile } from '../../settings/files.js'
import type { Values } from '../../settings/parse.js'
import type { LoadedSettings } from '../../settings/read.js'
import { hubCommandsOf, readHubSettings } from './profile.js'

export interface HubFlags extends Flags {
  readonly tlsCert?: string
  readonly tlsKey?: string
}

/** One thing that happens while a hub runs. */
export type HubItem =
  /** The settings are read. The first item. */
  | { readonly type: 'starting'; readonly logFormat: Values['logFormat'] }
  | {
      readonly type: 'listening'
      readonly url: string
      /** Address for workstations and senders. */
      readonly publicUrl: string
      readonly profile: string
      readonly lines: readonly string[]
    }
  | { readonly type: 'message'; readonly level: keyof Log; readonly text: string; readonly cause?: unknown }

/** Time for which a hub keeps what was fetched, unless `--keep` says otherwise: an hour, for its operator's questions. */
const KEEP_MS = 3_600_000

/** Runs `relay hub` until the signal aborts, and yields what happens. */
export async function* runHub(shell: Shell, flags: HubFlags): AsyncGenerator<HubItem, void> {
  yield* runService<HubItem>(
    shell.signal,
    ({ signal, push }) => serve(shell, flags, signal, push),
    (count) => ({ type: 'message', level: 'warn', text: `${count} messages were left out` }),
  )
}

async function serve(
  shell: Shell,
  flags: HubFlags,
  signal: AbortSignal,
  push: (item: HubItem) => void,
): Promise<void> {
  shell.continueWithoutOutput(() => {})
  const loaded = await readHubSettings(shell, flags)
  const { values } = loaded
  push({ type: 'starting', logFormat: values.logFormat })
  const log = logTo(push)
  using _ = {
    [Symbol.dispose]: shell.onConnectionError((error) =>
      log.error(`a connection failed and was closed: ${error.message}`, error),
    ),
  }
  checkPublicUrl(values)
  const certificate = await readCertificate(shell, flags)
  const options = { log, seams: shell.seams }
  await using started = await startHub(settingsOf(loaded, certificate), options).catch(
    async (error: unknown) => {
      throw await explainPort(shell, values, error)
    },
  )
  const { url } = started
  const publicUrl = values.publicUrl ?? url
  push({
    type: 'listening',
    url,
    publicUrl,
    profile: values.profile,
    lines: bannerOf(loaded, { url, publicUrl }),
  })
  if (!certificate && !isLoopback(hostInUrl(values.host)))
    log.warn(
      `--host ${values.host} without --tls-cert: put a proxy with TLS in front, and let nothing else reach this port`,
    )
  using _certificates = watchCertificate(shell, flags, (next) => started.useCertificate(next), log)
  await aborted(signal)
}

function logTo(push: (item: HubItem) => void): Log {
  const to =
    (level: keyof Log) =>
    (text: string, cause?: unknown): void =>
      push({ type: 'message', level, text, cause })
  return { debug: to('debug'), info: to('info'), warn: to('warn'), error: to('error') }
}

function settingsOf({ values, origins }: LoadedSettings, certificate: Certificate | undefined): HubSettings {
  return {
    profile: values.profile,
    folder: profileFolder(values),
    store: storeOf(values),
    host: values.host,
    port: values.port,
    allowedHosts: values.allowHost ?? [],
    publicUrl: values.publicUrl,
    // Each workstation says what it takes.
    maxBody: MAX_MAX_BODY,
    keep: origins.keep ? values.keep : KEEP_MS,
    keepMax: values.keepMax,
    metrics: values.metrics === 'on',
    inspectHosts: values.inspectHost,
    certificate,
  }
}

function bannerOf(
  loaded: LoadedSettings,
  { url, publicUrl }: { readonly url: string; readonly publicUrl: string },
): readonly string[] {
  return [
    `The hub listens at ${url}${publicUrl === url ? '' : `, and is reached at ${publicUrl}`}`,
    `For each workstation, make an invitation with ${hubCommandsOf(loaded)('hub invite')}`,
  ]
}

/** Checks the address for workstations. @throws RelayError `usage` for plain http, which they take from their own machine alone */
function checkPublicUrl({ publicUrl }: Values): void {
  if (publicUrl === undefined) return
  const { protocol, hostname } = new URL(publicUrl)
  if (protocol === 'https:' || isLoopback(hostname)) return
  throw new RelayError(
    'usage',
    `--public-url of a hub must begin with https://: a workstation takes plain http only from its own machine`,
  )
}

/** Reads certificate and key. Undefined without them. @throws RelayError `usage` for one of them alone; `settings` */
async function readCertificate(
  shell: Shell,
  { tlsCert, tlsKey }: HubFlags,
): Promise<Certificate | undefined> {
  if (tlsCert === undefined && tlsKey === undefined) return undefined
  if (tlsCert === undefined || tlsKey === undefined)
    throw new RelayError('usage', 'Give both --tls-cert and --tls-key, or neither of them')
  const [cert, key] = [
    await readSecretFile(shell, tlsCert, '--tls-cert'),
    await readSecretFile(shell, tlsKey, '--tls-key'),
  ]
  checkCertificate({ cert, key })
  return { cert, key }
}

/** @throws RelayError `settings` for what cannot be used. The messages of OpenSSL are codes. */
function checkCertificate({ cert, key }: Certificate): void {
  const read = <T>(make: () => T, problem: string): T => {
    try {
      return make()
    } catch (cause) {
      throw new RelayError('settings', problem, { cause })
    }
  }
  const own = read(() => new X509Certificate(cert), '--tls-cert: the file has no certificate in PEM')
  const known = read(
    () => createPrivateKey(key),
    '--tls-key: the file has no private key in PEM without a password',
  )
  if (!own.checkPrivateKey(known))
    throw new RelayError('settings', '--tls-key: the key is not that of the first certificate in --tls-cert')
}

/** Uses a renewed certificate, which is looked for every few seconds and at SIGHUP. A failure is only a warning. */
function watchCertificate(
  shell: Shell,
  flags: HubFlags,
  use: (certificate: Certificate) => void,
  log: Log,
): Disposable {
  const files = [flags.tlsCert, flags.tlsKey].filter((file) => file !== undefined)
  if (files.length === 0) return { [Symbol.dispose]() {} }
  const versionOf = (): string =>
    files.map((file) => statSync(file, { throwIfNoEntry: false })?.mtimeMs).join()
  let version = versionOf()
  const look = async (): Promise<void> => {
    const found = versionOf()
    if (found === version) return
    version = found
    try {
      const next = await readCertificate(shell, flags)
      if (next) use(next)
      log.info('the certificate was read again')
    } catch (error) {
      log.warn(
        `the certificate before is used on, since the new one cannot be: ${toRelayError(error).message}`,
      )
    }
  }
  const { certificateLook } = { ...TIME_LIMITS, ...shell.seams?.limits }
  const timer = setInterval(() => void look(), certificateLook).unref()
  const ignore = shell.onHangup(() => void look())
  return {
    [Symbol.dispose]() {
      clearInterval(timer)
      ignore()
    },
  }
}
