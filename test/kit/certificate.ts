import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
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
  const name = /^[\d.]+$/.test(host) ? `IP:${host}` : `DNS:${host}`
  const { status, stderr } = spawnSync(
    'openssl',
    // prettier-ignore
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1',
     '-keyout', keyFile, '-out', file, '-addext', `subjectAltName=${name}`, ...options],
    { encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(stderr)
  return { key: readFileSync(keyFile, 'utf8'), cert: readFileSync(file, 'utf8'), file }
}
