import { spawnSync } from 'node:child_process'
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { emptyFolder } from './folder.js'

export interface Certificate {
  readonly key: string
  readonly cert: string
  /** The certificate's file. */
  readonly file: string
}

/** A certificate for that host, made now, that nobody but itself has signed. Needs `openssl`. */
export function selfSigned(host: string): Certificate {
  return makeCertificate(host, ['-subj', `/CN=${host}`])
}

/** A certificate for that host by the authority of {@link selfSigned}. Needs `openssl`. */
export function signedBy(authority: Certificate, host: string): Certificate {
  const key = path.join(path.dirname(authority.file), 'key.pem')
  const by = ['-CA', authority.file, '-CAkey', key, '-addext', 'basicConstraints=critical,CA:FALSE']
  return makeCertificate(host, ['-subj', `/CN=server of ${host}`, ...by])
}

function makeCertificate(host: string, options: readonly string[]): Certificate {
  const folder = emptyFolder()
  const file = path.join(folder, 'cert.pem')
  const keyFile = path.join(folder, 'key.pem')
  // prettier-ignore
  openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1',
    '-keyout', keyFile, '-out', file, '-addext', `subjectAltName=${alternative(host)}`, ...options)
  return { key: readFileSync(keyFile, 'utf8'), cert: readFileSync(file, 'utf8'), file }
}

/** A certificate by an authority, valid in this time, which may be over or to come. It may be an authority itself. Needs `openssl`. */
export function issuedBy(
  authority: Certificate,
  host: string,
  { from, until, isAuthority = false }: { from?: Date; until?: Date; isAuthority?: boolean } = {},
): Certificate {
  const folder = emptyFolder()
  const at = (name: string): string => path.join(folder, name)
  const bounds = `critical,CA:${isAuthority ? 'TRUE' : 'FALSE'}`
  writeFileSync(at('index.txt'), '')
  writeFileSync(
    at('ca.cnf'),
    `[ca]\ndefault_ca=own\n[own]\ndatabase=${at('index.txt')}\nnew_certs_dir=${folder}\nrand_serial=yes\ndefault_md=sha256
policy=policy\ncopy_extensions=copy\n[policy]\ncommonName=supplied\n[req]\ndistinguished_name=name\n[name]\n`,
  )
  // prettier-ignore
  openssl('req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-config', at('ca.cnf'),
    '-subj', `/CN=server of ${host}`, '-keyout', at('key.pem'), '-out', at('request.pem'),
    '-addext', `subjectAltName=${alternative(host)}`, '-addext', `basicConstraints=${bounds}`)
  const day = 86_400_000
  const [start, end] = [from ?? new Date(Date.now() - day), until ?? new Date(Date.now() + day)]
  // prettier-ignore
  openssl('ca', '-batch', '-notext', '-config', at('ca.cnf'), '-in', at('request.pem'), '-out', at('cert.pem'),
    '-cert', authority.file, '-keyfile', path.join(path.dirname(authority.file), 'key.pem'),
    '-startdate', stamp(start), '-enddate', stamp(end))
  const read = (name: string): string => readFileSync(at(name), 'utf8')
  return { key: read('key.pem'), cert: read('cert.pem'), file: at('cert.pem') }
}

/** A certificate of an RSA key, with which messages are signed. Needs `openssl`. */
export function rsaCertificate(): { readonly privateKey: KeyObject; readonly cert: string } {
  const at = (name: string): string => path.join(folder, name)
  const folder = emptyFolder()
  // prettier-ignore
  openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=signing',
    '-keyout', at('key.pem'), '-out', at('cert.pem'))
  return {
    privateKey: createPrivateKey(readFileSync(at('key.pem'))),
    cert: readFileSync(at('cert.pem'), 'utf8'),
  }
}

/** `20261120120000Z` */
function stamp(date: Date): string {
  return date.toISOString().replaceAll(/[-:T]|\.\d+/g, '')
}

function alternative(host: string): string {
  return /^[\d.]+$/.test(host) ? `IP:${host}` : `DNS:${host}`
}

function openssl(...options: readonly string[]): void {
  const { status, stderr } = spawnSync('openssl', options, { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
}
