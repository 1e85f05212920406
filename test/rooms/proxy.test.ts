import { describe, expect, it } from 'vitest'
import { proxyFor, ProxySettingError } from '../../src/net/proxy.js'

const PROXY = 'http://proxy.test:3128'

/** Whether the address is reached without the proxy. */
function isDirect(address: string, noProxy: string): boolean {
  return (
    proxyFor(new URL(address), { HTTP_PROXY: PROXY, HTTPS_PROXY: PROXY, NO_PROXY: noProxy }) === undefined
  )
}

describe('NO_PROXY', () => {
  it.each([
    ['*', 'https://any.test'],
    ['localhost, *', 'https://any.test'],
    ['a.test,*,b.test', 'http://10.1.2.3'],
    ['example.com', 'https://example.com'],
    ['example.com', 'https://git.example.com'],
    ['.example.com', 'https://git.example.com'],
    ['.example.com', 'https://example.com'],
    ['*.example.com', 'https://a.b.example.com'],
    ['EXAMPLE.com', 'https://Example.COM'],
    ['example.com', 'https://example.com.'],
    ['a.test example.com\tb.test', 'https://example.com'],
    ['example.com:8443', 'https://example.com:8443'],
    ['example.com:443', 'https://example.com'],
    ['example.com:80', 'http://example.com'],
    ['192.0.2.7', 'http://192.0.2.7'],
    ['192.0.2.7:8080', 'http://192.0.2.7:8080'],
    ['192.0.2.0/24', 'http://192.0.2.200'],
    ['10.0.0.0/8,172.16.0.0/12', 'http://172.31.255.255'],
    ['0.0.0.0/0', 'http://192.0.2.7'],
    ['192.*', 'http://192.0.2.7'],
    ['192.168.*', 'http://192.168.4.4'],
    ['build.*', 'http://build.internal'],
    ['2001:db8::1', 'http://[2001:db8::1]'],
    ['[2001:db8::1]', 'http://[2001:db8:0:0::1]'],
    ['[2001:db8::1]:8080', 'http://[2001:db8::1]:8080'],
    ['2001:db8::/32', 'http://[2001:db8:ff::9]'],
    ['::/0', 'http://[2001:db8::1]'],
    ['127.0.0.1, ,10.0.0.0/8', 'http://10.9.9.9'],
    ['example.com.', 'https://example.com'],
    ['.example.com.', 'https://git.example.com.'],
    ['example.com.:8443', 'https://example.com:8443'],
    ['*.example.com:8443', 'https://git.example.com:8443'],
    ['*example.com', 'https://git-example.com'],
    ['git*.example.com', 'https://git-2.example.com'],
    ['10.*.1.*', 'http://10.20.1.30'],
    ['*:8080', 'http://any.test:8080'],
    ['10.0.0.0/8:8080', 'http://10.1.2.3:8080'],
    ['[2001:db8::]/32', 'http://[2001:db8:1::9]'],
    ['[2001:db8::/32]', 'http://[2001:db8:1::9]'],
    ['[2001:db8::]/32:8080', 'http://[2001:db8:1::9]:8080'],
    ['[2001:DB8::1]', 'http://[2001:db8::1]'],
    ['2001:0db8:0000::0001', 'http://[2001:db8::1]'],
    ['2001:db8:*', 'http://[2001:db8::1]'],
    ['FE80::/10', 'http://[fe80::1]'],
    ['192.0.2.0/24', 'http://[::ffff:192.0.2.7]'],
    ['192.0.2.7', 'http://[::ffff:192.0.2.7]'],
    ['a.test;b.test', 'http://b.test'],
    ['\ta.test \n b.test ', 'http://a.test'],
  ])('%s excludes %s', (noProxy, address) => {
    expect(isDirect(address, noProxy)).toBe(true)
  })

  it.each([
    ['', 'https://any.test'],
    ['example.com', 'https://badexample.com'],
    ['.example.com', 'https://badexample.com'],
    ['git.example.com', 'https://example.com'],
    ['example.com:8443', 'https://example.com'],
    ['192.0.2.0/24', 'http://192.0.3.1'],
    ['192.0.2.0/33', 'http://192.0.2.1'],
    ['192.0.2.0/x', 'http://192.0.2.1'],
    ['192.0.2.0/24', 'http://net.test'],
    ['192.*', 'http://10.192.0.1'],
    ['2001:db8::/32', 'http://[2001:db9::1]'],
    ['[2001:db8::1]:80', 'http://[2001:db8::1]:8080'],
    ['0.0.0.0/0', 'http://[2001:db8::1]'],
    ['://[', 'https://any.test'],
    ['[2001:db8::]/32:80', 'http://[2001:db8::1]:8080'],
    ['*.example.com:8443', 'https://git.example.com'],
    ['git*.example.com', 'https://example.com'],
    ['10.*.1.*', 'http://10.1.2.30'],
    ['*:8080', 'http://any.test'],
    ['a.b', 'http://axb'],
    ['2001:db8::/129', 'http://[2001:db8::1]'],
    ['10.0.0.0/', 'http://11.0.0.1'],
    ['/8', 'http://10.0.0.1'],
    ['.', 'http://any.test'],
    ['..', 'http://any.test'],
    [':8080', 'http://any.test:8080'],
    ['[]', 'http://[2001:db8::1]'],
    ['(a|any).test', 'http://any.test'],
  ])('%s does not exclude %s', (noProxy, address) => {
    expect(isDirect(address, noProxy)).toBe(false)
  })
})

describe('the proxy', () => {
  it.each([
    [
      'by scheme',
      'https://x.test',
      { HTTPS_PROXY: 'http://s.test:1', HTTP_PROXY: 'http://p.test:2' },
      's.test:1',
    ],
    [
      'by scheme',
      'http://x.test',
      { HTTPS_PROXY: 'http://s.test:1', HTTP_PROXY: 'http://p.test:2' },
      'p.test:2',
    ],
    [
      'in lower case first',
      'http://x.test',
      { http_proxy: 'http://a.test:1', HTTP_PROXY: 'http://b.test:1' },
      'a.test:1',
    ],
    ['without a scheme', 'http://x.test', { HTTP_PROXY: 'p.test:3128' }, 'p.test:3128'],
    ['without a scheme, an address', 'https://x.test', { https_proxy: '127.0.0.1:3128' }, '127.0.0.1:3128'],
    [
      'without a scheme, with a password',
      'https://x.test',
      { https_proxy: 'ada:pw@p.test:3128' },
      'p.test:3128',
    ],
    ['for all', 'http://x.test', { ALL_PROXY: 'p.test:1' }, 'p.test:1'],
    ['for all, last', 'https://x.test', { all_proxy: 'p.test:1', HTTPS_PROXY: 'q.test:1' }, 'q.test:1'],
    ['where the other is empty', 'https://x.test', { all_proxy: 'p.test:1', HTTPS_PROXY: '' }, 'p.test:1'],
    ['none', 'https://x.test', { HTTP_PROXY: 'p.test:1' }, undefined],
    ['excluded in lower case', 'http://x.test', { HTTP_PROXY: 'p.test:1', no_proxy: 'x.test' }, undefined],
  ])('%s for %s', (_, address, env, host) => {
    expect(proxyFor(new URL(address), env)?.host).toBe(host)
  })

  it.each([
    ['HTTP_PROXY', 'http://'],
    ['http_proxy', 'http://a b'],
    ['ALL_PROXY', 'ftp://s3cret@p.test'],
    ['all_proxy', 'socks5://s3cret@p.test:1080'],
    ['HTTP_PROXY', 'p.test:99999'],
  ])('%s=%s is an error that names the variable, and not its value', (name, value) => {
    const reason = new RegExp(`^${name} (?:is not the address of a proxy|names a SOCKS proxy)`)
    let thrown: unknown
    try {
      proxyFor(new URL('http://x.test'), { [name]: value })
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(ProxySettingError)
    expect(String(Object(thrown).message)).toMatch(reason)
    expect(String(Object(thrown).message)).not.toContain('s3cret')
  })
})
