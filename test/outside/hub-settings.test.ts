import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { selfSigned } from '../kit/certificate.js'
import { emptyFolder } from '../kit/folder.js'
import { hub } from '../kit/hub.js'
import { describeWith } from '../kit/needs.js'
import { fails } from '../kit/run.js'
import { place } from '../kit/place.js'
import { fresh } from './fixture.js'

const here = fresh(() => place({ host: 'none' }))

describe('the address of relay hub', () => {
  it('must be one that workstations take: https, or of this machine', async () => {
    const serve = ['hub', '--port', '0', '--public-url']
    expect(await here.run(...serve, 'http://hub.example.com')).toEqual(
      fails(
        2,
        '--public-url of a hub must begin with https://: a workstation takes plain http only from its own machine',
      ),
    )
    await using server = await hub({ flags: ['--public-url', 'http://localhost:1'] })
    expect(await server.invite()).toMatch(/^relay-hub-/)
  })

  it('is one of this machine alone without --public-url, as relay hub invite warns', async () => {
    const warning =
      'warning: only this machine reaches that address. For others, the hub needs --public-url https://…\n'
    await using near = await hub({ flags: ['--host', '0.0.0.0'] })
    expect((await near.operate('invite')).err).toContain(warning)
    await using far = await hub({ flags: ['--public-url', 'https://hub.example.com'] })
    expect((await far.operate('invite')).err).not.toContain('warning')
  })

  it('and its profile are in its help', async () => {
    const { out } = await here.run('hub', '--help')
    expect(out.replaceAll(/\s+/g, ' ')).toContain('(default: default, and hub for a hub)')
  })
})

describeWith('openssl', 'the certificate of relay hub', () => {
  it.each([
    ['no certificate', () => ({ cert: 'x' }), '--tls-cert: the file has no certificate in PEM'],
    ['no key', () => ({ key: 'x' }), '--tls-key: the file has no private key in PEM without a password'],
    [
      'the key of another',
      () => ({ key: selfSigned('other.test').key }),
      '--tls-key: the key is not that of the first certificate in --tls-cert',
    ],
  ])('is refused in words with %s', async (_, changed, text) => {
    const folder = emptyFolder()
    const files = { ...selfSigned('hub.test'), ...changed() }
    const [cert, key] = [path.join(folder, 'chain.pem'), path.join(folder, 'key.pem')]
    writeFileSync(cert, files.cert)
    writeFileSync(key, files.key)
    const argv = ['hub', '--port', '0', '--tls-cert', cert, '--tls-key', key]
    expect(await here.run(...argv)).toEqual(fails(2, text))
  })
})
