import { chmodSync, chownSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { SharedStore } from '../../src/base/shared-store.js'
import { openPostgres } from '../../src/store/postgres.js'
import { type Certificate, selfSigned, signedBy } from '../kit/certificate.js'
import { emptyFolder } from '../kit/folder.js'
import { describeWith } from '../kit/needs.js'
import { database, type DatabaseServer, ownServer, PASSWORD, pgbouncer } from '../kit/postgres.js'
import { UNPRIVILEGED } from '../kit/postgres-server.js'

const GIVEN: SharedStore['secrets'] = { password: new Secret(PASSWORD) }

/** What a connection is: `encrypted` or `plain`. */
const encrypted = async (address: string, secrets = GIVEN): Promise<string> => {
  const store = new SharedStore(address, secrets)
  await using sql = await openPostgres({ store, profile: path.basename(emptyFolder()) })
  const [row] = await sql.query('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')
  return row?.['ssl'] === 1 ? 'encrypted' : 'plain'
}

async function startWith({ cert, key }: Certificate): Promise<DatabaseServer> {
  const folder = emptyFolder()
  chmodSync(folder, 0o755)
  const [certFile, keyFile] = [path.join(folder, 'cert.pem'), path.join(folder, 'key.pem')]
  writeFileSync(certFile, cert)
  writeFileSync(keyFile, key, { mode: 0o600 })
  if (process.getuid?.() === 0) chownSync(keyFile, UNPRIVILEGED, UNPRIVILEGED)
  return ownServer({ ssl: 'on', ssl_cert_file: certFile, ssl_key_file: keyFile })
}

describeWith(['postgres', 'openssl'], 'the encryption of a connection', () => {
  // It makes two servers.
  it('is what sslmode says, as libpq means it', async () => {
    const [authority, other] = [selfSigned('authority.example'), selfSigned('other.example')]
    await using right = await startWith(signedBy(authority, '127.0.0.1'))
    await using elsewhere = await startWith(signedBy(authority, 'db.example'))
    await using plain = await database()
    const [ca, otherCa] = [`sslrootcert=${authority.file}`, `sslrootcert=${other.file}`]
    const reasonOf = ({ message }: Error): string => message.split(': ').slice(1).join(': ')
    const because = (why: string): unknown => expect.stringContaining(why)
    const untrusted = because('its certificate is not trusted. Name the authority with sslrootcert')
    const noTls = because('it does not offer TLS')
    const cases = [
      [right, 'sslmode=disable', 'plain'],
      [right, 'sslmode=require', 'encrypted'],
      [right, `sslmode=require&${ca}`, 'encrypted'],
      [right, `sslmode=require&${otherCa}`, untrusted],
      [right, `sslmode=verify-ca&${ca}`, 'encrypted'],
      [right, `sslmode=verify-ca&${otherCa}`, untrusted],
      [right, `sslmode=verify-full&${ca}`, 'encrypted'],
      [right, 'sslmode=verify-full', untrusted],
      [elsewhere, `sslmode=verify-ca&${ca}`, 'encrypted'],
      [elsewhere, `sslmode=require&${ca}`, 'encrypted'],
      [elsewhere, `sslmode=verify-full&${ca}`, because('its certificate is for another name')],
      [plain, 'sslmode=disable', 'plain'],
      [plain, 'sslmode=require', noTls],
      [plain, `sslmode=verify-ca&${ca}`, noTls],
      [plain, `sslmode=verify-full&${ca}`, noTls],
    ] as const
    for (const [{ store }, parameters, expected] of cases) {
      const outcome = await encrypted(`${store}?${parameters}`).catch(reasonOf)
      expect([parameters, outcome]).toEqual([parameters, expected])
    }
  })

  it('names a file with certificates that cannot be read', async () => {
    const missing = path.join(emptyFolder(), 'missing.pem')
    const address = `postgres://relay@127.0.0.1/postgres?sslmode=verify-full&sslrootcert=${missing}`
    await expect(encrypted(address)).rejects.toMatchObject({
      kind: 'settings',
      message: `The file of sslrootcert, ${missing}, cannot be read (ENOENT). Check its name and its permissions`,
    })
  })
})

describeWith('postgres', 'the password of a connection', () => {
  afterEach(() => void vi.unstubAllEnvs())

  const passwordFile = (text: string, mode = 0o600): void => {
    const file = path.join(emptyFolder(), 'pgpass')
    writeFileSync(file, text)
    chmodSync(file, mode)
    vi.stubEnv('PGPASSFILE', file)
  }

  it('is the one of the password file for this server, port, database and user', async () => {
    await using server = await database()
    const { port, name } = server
    const open = () => encrypted(server.store, {})
    const right = `127.0.0.1:${port}:${name}:relay:${PASSWORD}\n`
    passwordFile(`127.0.0.1:${port + 1}:*:*:wrong\n${right}*:*:*:*:wrong\n`)
    expect(await open()).toBe('plain')
    passwordFile(`*:*:*:*:wrong\n${right}`)
    await expect(open()).rejects.toThrow('it rejected the user or the password')
    passwordFile(`127.0.0.1:${port}:other:relay:${PASSWORD}\n`)
    await expect(open()).rejects.toThrow('it needs a password. Set PGPASSWORD, ~/.pgpass or RELAY_STORE_FILE')
  })

  it.each([0o640, 0o604, 0o666])('is not read from a file that others can use: %o', async (mode) => {
    await using server = await database()
    passwordFile(`*:*:*:*:${PASSWORD}\n`, mode)
    const why = 'the password file is not used, because other users can read it. chmod 600 ~/.pgpass'
    await expect(encrypted(server.store, {})).rejects.toThrow(why)
  })

  it('is that of localhost for a socket in a default folder, and that of the folder for any other', async () => {
    const folder = emptyFolder()
    chmodSync(folder, 0o777)
    await using server = await ownServer({ unix_socket_directories: `${folder}, /tmp` })
    const at = (host: string) =>
      encrypted(`postgres://relay@${encodeURIComponent(host)}:${server.port}/postgres`, {})
    passwordFile(`localhost:${server.port}:*:*:${PASSWORD}\n${folder}:${server.port}:*:*:wrong\n`)
    expect(await at('/tmp')).toBe('plain')
    await expect(at(folder)).rejects.toThrow('it rejected the user or the password')
    passwordFile(`${folder}:${server.port}:*:*:${PASSWORD}\n`)
    expect(await at(folder)).toBe('plain')
    await expect(at(emptyFolder())).rejects.toThrow('it cannot be reached')
  })
})

describeWith(['postgres', 'pgbouncer'], 'a pooler in front of the server', () => {
  it.each([
    ['transaction', ''],
    ['transaction', 'options'],
    ['session', 'options'],
  ])('is refused: pool_mode %s, ignored "%s"', async (mode, ignored) => {
    await using server = await database()
    await using pooler = await pgbouncer(server, { pool_mode: mode, ignore_startup_parameters: ignored })
    await expect(encrypted(`postgres://relay@127.0.0.1:${pooler.port}/${server.name}`)).rejects.toThrow(
      "a pooler such as pgbouncer is in front of it, which does not keep what relay sets for a connection. Use the server's own address",
    )
  })
})
