import { describe, expect, it } from 'vitest'
import { labelOf, parseExec, parseForward, type Route, shortNames } from '../../src/dispatch/routes.js'

/** The text, then of its route the match, the address or command, the label and the name. */
type Row = [text: string, match: string, target: string, label: string, name?: string]

/** A route, and the label of its id. */
function routeOf(target: Route['target'], match: string, label: string, name?: string) {
  const id = `${match}=${target.kind === 'http' ? target.url : `exec:${target.command}`}`
  return [{ match: { text: match }, target, id, label, ...(name !== undefined && { name }) }, label]
}

const LOCAL = 'http://localhost:3000'

describe('parseForward', () => {
  it.each<Row>([
    [`${LOCAL}/pr`, '*', `${LOCAL}/pr`, `${LOCAL}/pr`],
    [`push=${LOCAL}`, 'push', LOCAL, `push=${LOCAL}`],
    [' x.* = https://a.example/x ', 'x.*', 'https://a.example/x', 'x.*=https://a.example/x'],
    ['http://a.example/?x=1&y=2', '*', 'http://a.example/?x=1&y=2', 'http://a.example/?…'],
    ['push=HTTP://me:p%20s@a.b/p?k#f', 'push', 'HTTP://me:p%20s@a.b/p?k#f', 'push=http://***@a.b/p?…'],
    ['*=http://[::1]:3000/', '*', 'http://[::1]:3000/', 'http://[::1]:3000/'],
    ['HTTP://A.Example:80', '*', 'HTTP://A.Example:80', 'http://a.example'],
    ['http://a.example/a/../b c', '*', 'http://a.example/a/../b c', 'http://a.example/b%20c'],
    ['http://a@b@c.example/@d', '*', 'http://a@b@c.example/@d', 'http://***@c.example/@d'],
    [`app=${LOCAL}/hooks`, '*', `${LOCAL}/hooks`, `${LOCAL}/hooks`, 'app'],
    [`app=push=${LOCAL}`, 'push', LOCAL, `push=${LOCAL}`, 'app'],
    [`app= *.opened=${LOCAL}`, '*.opened', LOCAL, `*.opened=${LOCAL}`, 'app'],
    [`app.*=${LOCAL}`, 'app.*', LOCAL, `app.*=${LOCAL}`],
    // Probably misspelt: it must not become a route for every delivery.
    [`pusj=${LOCAL}`, 'pusj', LOCAL, `pusj=${LOCAL}`],
    ['3000', '*', LOCAL, LOCAL],
    [':3000/hooks', '*', `${LOCAL}/hooks`, `${LOCAL}/hooks`],
    ['push=3000/x?a=b', 'push', `${LOCAL}/x?a=b`, `push=${LOCAL}/x?…`],
    ['3000/x?a=b', '*', `${LOCAL}/x?a=b`, `${LOCAL}/x?…`],
    ['localhost:3000/hooks', '*', `${LOCAL}/hooks`, `${LOCAL}/hooks`],
    ['localhost', '*', 'http://localhost', 'http://localhost'],
    ['app.localhost:80', '*', 'http://app.localhost:80', 'http://app.localhost'],
    ['127.0.0.1:3000', '*', 'http://127.0.0.1:3000', 'http://127.0.0.1:3000'],
    ['issues.opened=[::1]:3000/', 'issues.opened', 'http://[::1]:3000/', 'issues.opened=http://[::1]:3000/'],
  ])('reads %j', (text, match, url, label, name) => {
    const route = parseForward(text)
    expect([route, labelOf(route.id)]).toEqual(routeOf({ kind: 'http', url }, match, label, name))
  })

  const NO_ADDRESS = 'names no http:// or https:// address'
  const TOO_HIGH = `${NO_ADDRESS}: a port is at most 65535`
  const BACKSLASH = 'holds a backslash: write / where it means one, else %5C'
  const goesTo = (host: string): string => `goes to the host ${host}: write that name`

  it.each([
    ['99999', TOO_HIGH],
    ['300000', TOO_HIGH],
    [':70000/hooks', TOO_HIGH],
    ['localhost:70000', TOO_HIGH],
    ['push=a.example/x', `${NO_ADDRESS}: write https://a.example/x`],
    ['push=', NO_ADDRESS],
    ['ftp://me:secret@a.example/?token=1', NO_ADDRESS, 'ftp://***@a.example/?…'],
    ['push=http://', NO_ADDRESS],
    [String.raw`http://127.0.0.1\@evil.example/`, BACKSLASH, 'http://***@evil.example/'],
    [String.raw`push=http://a.example/x\y`, BACKSLASH],
    ['http://127.1/', goesTo('127.0.0.1')],
    ['http://127。0。0。1/', goesTo('127.0.0.1')],
    ['http:///evil.example', goesTo('evil.example')],
    ['http://local\thost.evil.example/', goesTo('localhost.evil.example')],
    ['http://me:secret@bücher.example/', goesTo('xn--bcher-kva.example'), 'http://***@bücher.example/'],
  ])('refuses %j', (text, why, shown = text) => {
    const message = `Invalid route: '${shown}' ${why}`
    expect(() => parseForward(text)).toThrow(expect.objectContaining({ kind: 'settings', message }))
  })
})

describe('parseExec', () => {
  it.each<Row>([
    ['./deploy.sh', '*', './deploy.sh', 'exec:./deploy.sh'],
    ['push=./deploy.sh --env=prod', 'push', './deploy.sh --env=prod', 'push=exec:./deploy.sh --env=prod'],
    ['curl -d a=b http://a.b?x=1', '*', 'curl -d a=b http://a.b?x=1', 'exec:curl -d a=b http://a.b?x=1'],
    ['*=NAME=value ./x', '*', 'NAME=value ./x', 'exec:NAME=value ./x'],
    ['issues.opened=cat\necho two', 'issues.opened', 'cat\necho two', 'issues.opened=exec:cat echo two'],
    ['[ "$A" = b ]', '*', '[ "$A" = b ]', 'exec:[ "$A" = b ]'],
    ['deploy=push=./deploy.sh', 'push', './deploy.sh', 'push=exec:./deploy.sh', 'deploy'],
    ['all=*=./log.sh a=b', '*', './log.sh a=b', 'exec:./log.sh a=b', 'all'],
    ['new=issues.opened=A=1 ./x', 'issues.opened', 'A=1 ./x', 'issues.opened=exec:A=1 ./x', 'new'],
    // A command for every delivery is always asked for by `*`.
    ['deploy=./deploy.sh', 'deploy', './deploy.sh', 'deploy=exec:./deploy.sh'],
    ['ci/run ENV=prod', '*', 'ci/run ENV=prod', 'exec:ci/run ENV=prod'],
    ['mine=ci/run ENV=prod', 'mine', 'ci/run ENV=prod', 'mine=exec:ci/run ENV=prod'],
    ['gitlab/Push Hook=./x ENV=1', 'gitlab/Push Hook', './x ENV=1', 'gitlab/Push Hook=exec:./x ENV=1'],
    ['all=stripe/*=./x', 'stripe/*', './x', 'stripe/*=exec:./x', 'all'],
    ['push=x=1 ./deploy.sh', 'push', 'x=1 ./deploy.sh', 'push=exec:x=1 ./deploy.sh'],
  ])('reads %j', (text, match, command, label, name) => {
    const route = parseExec(text)
    expect([route, labelOf(route.id)]).toEqual(routeOf({ kind: 'command', command }, match, label, name))
  })
})

const NO_MATCH = 'write event or event.action, with * for all of a part'

it.each([
  [parseExec, '', 'Invalid route: there is no command'],
  [parseExec, 'push=  ', 'Invalid route: there is no command'],
  [parseExec, 'push=a\0b', 'Invalid route: a command cannot hold a NUL character'],
  [parseExec, 'A=b ./x', "Invalid route: 'A=' sets a variable; for a command that begins so, write '*=A=…'"],
  [parseExec, 'pu*h=./x', `Invalid match 'pu*h': ${NO_MATCH}`],
  [parseForward, 'pu*=http://a.example', `Invalid match 'pu*': ${NO_MATCH}`],
  [parseForward, '=http://a.example', `Invalid match '': ${NO_MATCH}`],
])('%o refuses %j', (parse, text, message) => {
  expect(() => parse(text)).toThrow(expect.objectContaining({ kind: 'settings', message }))
})

it.each([
  [String.raw`*=http://127.0.0.1\@evil.example/?key=k`, 'http://127.0.0.1/@evil.example/?…'],
  [String.raw`push=http://evil.example\@127.0.0.1`, 'push=http://evil.example/@127.0.0.1'],
  ['*=http://0x7f.1:8080', 'http://127.0.0.1:8080'],
  ['*=no address?x', 'no address?…'],
])('the label of a target that a journal knows says where %j goes', (id, label) => {
  expect(labelOf(id)).toBe(label)
})

it('the short names of targets are those given, else as short as no two share', () => {
  const forwards = [
    'app=http://localhost:3000/hooks',
    'push=https://u:canary@example.com/x?token=canary',
    'http://localhost:3000/a',
    'http://localhost:3000/b',
  ].map(parseForward)
  const commands = ['push=A=1 /usr/local/bin/deploy.sh --now', './x.sh 1', 'push=./x.sh', 'ping=./x.sh']
  const names = shortNames([...forwards, ...commands.map(parseExec)]).values()
  const short = ['app', 'example.com', 'localhost:3000/a', 'localhost:3000/b', 'deploy.sh']
  expect([...names]).toEqual([...short, './x.sh 1', 'push=exec:./x.sh', 'ping=exec:./x.sh'])
})
