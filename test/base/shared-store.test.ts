import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { SharedStore, splitPassword } from '../../src/base/shared-store.js'

describe('the address of a shared store', () => {
  it.each([
    [
      'postgres://u@db.example/relay',
      { host: 'db.example', port: 5432, user: 'u', database: 'relay', sslMode: 'verify-full' },
    ],
    [
      'postgresql://a%40b@127.0.0.1:6000/x%20y',
      { host: '127.0.0.1', port: 6000, user: 'a@b', database: 'x y', sslMode: 'disable' },
    ],
    ['postgres://u@[::1]/d', { host: '::1', sslMode: 'disable' }],
    ['postgres://u@%2Fvar%2Frun%2Fpostgresql/d', { host: '/var/run/postgresql', sslMode: 'disable' }],
    ['postgres://u@localhost/d?sslmode=verify-full', { sslMode: 'verify-full' }],
    [
      'postgres://u@db/d?sslmode=verify-full&sslrootcert=/etc/ca.pem',
      { sslMode: 'verify-full', sslRootCert: '/etc/ca.pem' },
    ],
    ['postgres://u@db/d?sslmode=require', { sslMode: 'require' }],
    ['postgres://u@db/d?sslmode=verify-ca&sslrootcert=ca.pem', { sslMode: 'verify-ca' }],
  ])('%s', (address, parts) => {
    const store = new SharedStore(address)
    expect(store).toMatchObject(parts)
    expect(String(store)).toBe(address)
    expect(JSON.stringify({ store })).toBe(JSON.stringify({ store: address }))
  })

  it.each([
    ['postgres://u:pass@db/d', /no password/],
    ['postgres://db/d', /has no user/],
    ['postgres://u@db', /has no database/],
    ['postgres://u@db/a/b', /has no database/],
    ['postgres://u@db/d?sslmode=allow', /one of disable, require, verify-ca, verify-full/],
    ['postgres://u@db/d?sslmode=verify-ca', /needs sslrootcert=FILE/],
    ['postgres://u@db/d?host=x', /only parameters/],
    ['mysql://u@db/d', /cannot be read/],
    ['postgres://u@db:x/d', /cannot be read/],
  ])('%s is refused', (address, why) => {
    expect(() => new SharedStore(address)).toThrow(why)
  })

  it('gives up its password, and shows no secret', () => {
    expect(splitPassword('postgres://u:p%40ss@db/d')).toEqual({
      address: 'postgres://u@db/d',
      password: 'p@ss',
    })
    expect(splitPassword('postgres://u@db/d')).toEqual({ address: 'postgres://u@db/d', password: '' })
    const secrets = { password: new Secret('canary'), keys: { current: new Secret('canary') } }
    const store = new SharedStore('postgres://u@db/d', secrets)
    expect(inspect(store, { depth: 9 }) + JSON.stringify(store) + String(store)).not.toContain('canary')
  })
})
