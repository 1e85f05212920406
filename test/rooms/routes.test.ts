import { describe, expect, it } from 'vitest'
import { labelOf, parseExec, parseForward, shortNames } from '../../src/dispatch/routes.js'

describe('the name of a target', () => {
  it.each<[string, string | undefined, string]>([
    ['app=http://localhost:3000/hooks', 'app', '*=http://localhost:3000/hooks'],
    ['app=push=http://localhost:3000', 'app', 'push=http://localhost:3000'],
    ['app= *.opened=http://localhost:3000', 'app', '*.opened=http://localhost:3000'],
    ['push=http://localhost:3000', undefined, 'push=http://localhost:3000'],
    ['app.*=http://localhost:3000', undefined, 'app.*=http://localhost:3000'],
    // Probably misspelt: it must not become a route for every delivery.
    ['pusj=http://localhost:3000', undefined, 'pusj=http://localhost:3000'],
  ])('parseForward(%j): %s', (text, name, id) => {
    const route = parseForward(text)
    expect({ name: route.name, id: route.id }).toEqual({ name, id })
  })

  it.each<[string, string | undefined, string]>([
    ['deploy=push=./deploy.sh', 'deploy', 'push=exec:./deploy.sh'],
    ['all=*=./log.sh a=b', 'all', '*=exec:./log.sh a=b'],
    ['new=pull_request.opened=A=1 ./x.sh', 'new', 'pull_request.opened=exec:A=1 ./x.sh'],
    // A command for every delivery is always asked for by `*`.
    ['deploy=./deploy.sh', undefined, 'deploy=exec:./deploy.sh'],
    ['push=x=1 ./deploy.sh', undefined, 'push=exec:x=1 ./deploy.sh'],
  ])('parseExec(%j): %s', (text, name, id) => {
    const route = parseExec(text)
    expect({ name: route.name, id: route.id }).toEqual({ name, id })
  })
})

describe('parseForward', () => {
  it.each([
    ['http://localhost:3000/pr', '*', 'http://localhost:3000/pr', 'http://localhost:3000/pr'],
    ['push=http://localhost:3000', 'push', 'http://localhost:3000', 'push=http://localhost:3000'],
    [
      ' pull_request.* = https://a.example/x ',
      'pull_request.*',
      'https://a.example/x',
      'pull_request.*=https://a.example/x',
    ],
    ['http://a.example/?x=1&y=2', '*', 'http://a.example/?x=1&y=2', 'http://a.example/?…'],
    [
      '*.opened=HTTP://me:pa%20ss@a.example/p?key=k#f',
      '*.opened',
      'HTTP://me:pa%20ss@a.example/p?key=k#f',
      '*.opened=http://***@a.example/p?…',
    ],
    ['*=http://[::1]:3000/', '*', 'http://[::1]:3000/', 'http://[::1]:3000/'],
    ['HTTP://A.Example:80', '*', 'HTTP://A.Example:80', 'http://a.example'],
    ['http://a.example/a/../b c', '*', 'http://a.example/a/../b c', 'http://a.example/b%20c'],
    ['http://a@b@c.example/@d', '*', 'http://a@b@c.example/@d', 'http://***@c.example/@d'],
  ])('reads %j', (text, match, url, label) => {
    const route = parseForward(text)
    expect(route).toEqual({
      match: { text: match },
      target: { kind: 'http', url },
      id: `${match}=${url}`,
      label,
    })
    expect(labelOf(route.id)).toBe(label)
  })

  it.each([
    ['3000', 'http://localhost:3000'],
    [':3000/hooks', 'http://localhost:3000/hooks'],
    ['push=3000/x?a=b', 'http://localhost:3000/x?a=b'],
    ['3000/x?a=b', 'http://localhost:3000/x?a=b'],
    ['localhost:3000/hooks', 'http://localhost:3000/hooks'],
    ['localhost', 'http://localhost'],
    ['app.localhost:80', 'http://app.localhost:80'],
    ['127.0.0.1:3000', 'http://127.0.0.1:3000'],
    ['issues.opened=[::1]:3000/', 'http://[::1]:3000/'],
  ])('reads %j as an address on this machine', (text, url) => {
    expect(parseForward(text).target).toEqual({ kind: 'http', url })
  })

  it.each([
    ...['99999', '300000', ':70000/hooks', 'localhost:70000'].map((text): [string, string] => [
      text,
      `Invalid route: '${text}' names no http:// or https:// address: a port is at most 65535`,
    ]),
    [
      'push=a.example/x',
      "Invalid route: 'push=a.example/x' names no http:// or https:// address: write https://a.example/x",
    ],
    ['push=', "Invalid route: 'push=' names no http:// or https:// address"],
    [
      'ftp://me:secret@a.example/?token=1',
      "Invalid route: 'ftp://***@a.example/?…' names no http:// or https:// address",
    ],
    ['push=http://', "Invalid route: 'push=http://' names no http:// or https:// address"],
    [
      String.raw`http://127.0.0.1\@evil.example/`,
      "Invalid route: 'http://***@evil.example/' holds a backslash: write / where it means one, else %5C",
    ],
    [
      String.raw`push=http://a.example/x\y`,
      String.raw`Invalid route: 'push=http://a.example/x\y' holds a backslash: write / where it means one, else %5C`,
    ],
    ['http://127.1/', "Invalid route: 'http://127.1/' goes to the host 127.0.0.1: write that name"],
    [
      'http://127。0。0。1/',
      "Invalid route: 'http://127。0。0。1/' goes to the host 127.0.0.1: write that name",
    ],
    [
      'http:///evil.example',
      "Invalid route: 'http:///evil.example' goes to the host evil.example: write that name",
    ],
    [
      'http://local\thost.evil.example/',
      "Invalid route: 'http://local\thost.evil.example/' goes to the host localhost.evil.example: write that name",
    ],
    [
      'http://me:secret@bücher.example/',
      "Invalid route: 'http://***@bücher.example/' goes to the host xn--bcher-kva.example: write that name",
    ],
    ['pu*=http://a.example', "Invalid match 'pu*': write event or event.action, with * for all of a part"],
    ['=http://a.example', "Invalid match '': write event or event.action, with * for all of a part"],
  ])('refuses %j', (text, message) => {
    expect(() => parseForward(text)).toThrow(expect.objectContaining({ kind: 'settings', message }))
  })
})

describe('the label of a target that a journal knows', () => {
  it.each([
    [String.raw`*=http://127.0.0.1\@evil.example/?key=k`, 'http://127.0.0.1/@evil.example/?…'],
    [String.raw`push=http://evil.example\@127.0.0.1`, 'push=http://evil.example/@127.0.0.1'],
    ['*=http://0x7f.1:8080', 'http://127.0.0.1:8080'],
    ['*=no address?x', 'no address?…'],
  ])('says where %j goes', (id, label) => {
    expect(labelOf(id)).toBe(label)
  })
})

describe('parseExec', () => {
  it.each([
    ['./deploy.sh', '*', './deploy.sh', 'exec:./deploy.sh'],
    ['push=./deploy.sh --env=prod', 'push', './deploy.sh --env=prod', 'push=exec:./deploy.sh --env=prod'],
    [
      'curl -d a=b http://a.example?x=1',
      '*',
      'curl -d a=b http://a.example?x=1',
      'exec:curl -d a=b http://a.example?x=1',
    ],
    ['*=NAME=value ./x', '*', 'NAME=value ./x', 'exec:NAME=value ./x'],
    ['issues.opened=cat\necho two', 'issues.opened', 'cat\necho two', 'issues.opened=exec:cat echo two'],
    ['[ "$A" = b ]', '*', '[ "$A" = b ]', 'exec:[ "$A" = b ]'],
  ])('reads %j', (text, match, command, label) => {
    const route = parseExec(text)
    expect(route).toEqual({
      match: { text: match },
      target: { kind: 'command', command },
      id: `${match}=exec:${command}`,
      label,
    })
    expect(labelOf(route.id)).toBe(label)
  })

  it.each([
    ['', 'Invalid route: there is no command'],
    ['push=  ', 'Invalid route: there is no command'],
    ['push=a\0b', 'Invalid route: a command cannot hold a NUL character'],
    ['FOO=bar ./x', "Invalid route: 'FOO=' sets a variable; for a command that begins so, write '*=FOO=…'"],
    ['pu*h=./x', "Invalid match 'pu*h': write event or event.action, with * for all of a part"],
  ])('refuses %j', (text, message) => {
    expect(() => parseExec(text)).toThrow(expect.objectContaining({ kind: 'settings', message }))
  })
})

const named = (...routes: ReturnType<typeof parseForward>[]): string[] => [...shortNames(routes).values()]

describe('the short names of targets', () => {
  it('are those given, else host and port, or the first word of a command', () => {
    expect(
      named(
        parseForward('app=http://localhost:3000/hooks'),
        parseForward('push=https://u:canary@example.com/x?token=canary'),
        parseExec('push=A=1 /usr/local/bin/deploy.sh --now'),
      ),
    ).toEqual(['app', 'example.com', 'deploy.sh'])
  })

  it('are longer where two targets would share one', () => {
    expect(
      named(
        parseForward('http://localhost:3000/a'),
        parseForward('http://localhost:3000/b'),
        parseExec('./x.sh 1'),
        parseExec('push=./x.sh'),
        parseExec('ping=./x.sh'),
      ),
    ).toEqual(['localhost:3000/a', 'localhost:3000/b', './x.sh 1', 'push=exec:./x.sh', 'ping=exec:./x.sh'])
  })
})
