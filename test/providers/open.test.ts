import { describe, expect, it } from 'vitest'
import { createProvider } from '../../src/providers/open.js'

describe('the provider address', () => {
  it.each([
    ['', 'must be an absolute http:// or https:// address'],
    ['github.com', 'must be an absolute http:// or https:// address'],
    ['/api', 'must be an absolute http:// or https:// address'],
    ['ftp://github.com', 'must be an absolute http:// or https:// address'],
    ['https://user@github.com', 'must not contain a user name or password'],
    ['https://:hunter2@github.com', 'must not contain a user name or password'],
    ['https://github.com/?a=b', 'must not contain a query or a fragment'],
    ['https://github.com/#a', 'must not contain a query or a fragment'],
    ['http://github.com', 'must be https, unless it is on this machine'],
    ['http://localhost.example.org', 'must be https, unless it is on this machine'],
    ['http://127.0.0.1.example.org', 'must be https, unless it is on this machine'],
    ['http://192.168.0.1', 'must be https, unless it is on this machine'],
  ])('%j %s', (url, why) => {
    expect(() => createProvider({ name: 'gitea', url })).toThrow(
      expect.objectContaining({ kind: 'settings', message: `The provider's address ${why}` }),
    )
  })

  it.each([
    ['https://Git.Example.org', 'https://git.example.org', 'https://git.example.org'],
    ['https://git.example.org:443/gitea//', 'https://git.example.org/gitea', 'https://git.example.org'],
    ['http://localhost:3000/', 'http://localhost:3000', 'http://localhost:3000'],
    ['http://gitea.localhost', 'http://gitea.localhost', 'http://gitea.localhost'],
    ['http://127.9.9.9:1', 'http://127.9.9.9:1', 'http://127.9.9.9:1'],
    ['http://[::1]:3000', 'http://[::1]:3000', 'http://[::1]:3000'],
  ])('%s is %s, of origin %s', (given, url, origin) => {
    const provider = createProvider({ name: 'gitea', url: given })
    expect({ url: provider.url, origin: provider.origin }).toEqual({ url, origin })
  })
})
