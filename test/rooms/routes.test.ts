import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { parseExec, parseForward } from '../../src/dispatch/route-text.js'
import { readRoute } from '../../src/dispatch/route-object.js'
import { labelOf, type Route, shortNames, splitId } from '../../src/dispatch/routes.js'

/** The text, then of its route the match, the address or command, the label and the name. */
type Row = [text: string, match: string, target: string, label: string, name?: string]

/** A route, and the label of its id. */
function routeOf(target: Route['target'], match: string, label: string, name?: string) {
  const id = `${match}=${target.kind === 'http' ? target.url : `exec:${target.command}`}`
  return [
    { match: { text: match }, where: [], target, id, label, ...(name !== undefined && { name }) },
    label,
  ]
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

/** The text of a command, its match and its conditions. */
type Conditioned = [text: string, match: string, where: readonly string[], name?: string]
const CONDITIONED: Conditioned[] = [
  ['push[ref==refs/heads/main]=./x.sh', 'push', ['ref==refs/heads/main']],
  ['deploy=push[ref==refs/heads/main]=./x.sh', 'push', ['ref==refs/heads/main'], 'deploy'],
  ['push,issues.opened=./x.sh', 'push,issues.opened', []],
  ['push , issues=./x.sh', 'push,issues', []],
  [
    'ci=push,stripe/invoice.*[@repo~^octo/][a!=1]=./x.sh',
    'push,stripe/invoice.*',
    ['@repo~^octo/', 'a!=1'],
    'ci',
  ],
  ['ci=unheard,of=./x.sh', 'unheard,of', [], 'ci'],
  ['*[a[0].b=="]="]=./x.sh', '*', ['a[0].b=="]="']],
  ['gitlab/Push Hook[ref==main]=./x.sh', 'gitlab/Push Hook', ['ref==main']],
]

it.each<Conditioned>(CONDITIONED)(
  '%s is read by --exec and, with an address, by --forward',
  (text, match, where, name) => {
    const at = text.lastIndexOf('=./x.sh')
    for (const [parse, target] of [
      [parseExec, './x.sh'],
      [parseForward, LOCAL],
    ] as const) {
      const route = parse(`${text.slice(0, at)}=${target}`)
      const texts = route.where.map((condition) => condition.text)
      expect([route.match.text, texts, route.name]).toEqual([match, where, name])
      const written = `${match}${where.map((condition) => `[${condition}]`).join('')}`
      const shown = parse === parseExec ? `exec:${target}` : target
      expect(labelOf(route.id)).toBe(`${written}=${shown}`)
      expect(splitId(route.id)).toEqual({ match: written, target: shown })
    }
  },
)

/** Text that somebody means as a match, and that is none. */
const MEANT = [
  'push =',
  'push,=',
  ',push=',
  'push, =',
  'push;issues=',
  'push|issues=',
  'push+issues=',
  'push&issues=',
  'push(main)=',
  'push{main}=',
  'push<main>=',
  'push!=',
  '!push=',
  '@push=',
  '"push"=',
  "'push'=",
  'push@main=',
  'push#main=',
  'push issues=',
  'push and issues=',
  'push or issues=',
  'push [ref==main]=',
  'push[main]=',
  'push[]=',
  'push[ref=main]=',
  'push[ref==main=',
  'push[ref==main] =',
  'push[ref==main]and[a==b]=',
  'push[~main]=',
  'pu*h=',
  'push.=',
  '.push=',
  'issues.opened =',
  '* =',
  'unheard =',
  'unheard,=',
  'unheard[main]=',
  'stripe/invoice.paid =',
  'stripe/=',
]

describe('a match that is malformed is an error, and no command for every delivery', () => {
  it.each(MEANT)('%s', (text) => {
    expect(() => parseExec(`${text}./x.sh`)).toThrow(expect.objectContaining({ kind: 'settings' }))
    // With a name, and before an address, it can be the match of an event of that name.
    const others = [() => parseExec(`deploy=${text}./x.sh`), () => parseForward(`${text}${LOCAL}`)]
    for (const parse of text === '* =' ? [] : others) expect(matchOf(parse)).not.toBe('*')
  })

  /** The match of a route, or the kind of the error if it is refused. */
  function matchOf(parse: () => Route): string {
    try {
      return parse().match.text
    } catch (error) {
      return error instanceof RelayError ? error.kind : '*'
    }
  }

  it('says how it is written, and how a command that begins so is', () => {
    const why =
      "'push ' is no match. Write push=command, push,issues=command or push[ref==refs/heads/main]=command; for a command that begins so, write '*=push …'"
    expect(() => parseExec('push =./x.sh')).toThrow(`Invalid route: ${why}`)
    expect(parseExec('*=push =./x.sh')).toMatchObject({
      match: { text: '*' },
      target: { command: 'push =./x.sh' },
    })
    expect(() => parseExec('push[main]=./x.sh')).toThrow('condition main: expected ==, != or ~ at the end')
  })

  it.each([
    './x.sh --ref=main',
    'ping -c 1 --deadline=3 localhost',
    'release/deploy.sh ENV=prod',
    'test "$A" = b',
    '[ -n "$A" ] && ENV=1 ./x',
    'echo "push,issues=1"',
    'make deploy ENV=prod',
    'create --name=x',
    'push | ENV=1 tee log',
    'cat',
    '(cd /srv; ENV=1 ./x)',
    '$HOME/x --a=b',
    '~/x --a=b',
  ])('%s is a command', (command) => {
    expect(parseExec(command)).toMatchObject({ match: { text: '*' }, target: { kind: 'command', command } })
  })
})

describe('a route that is an object', () => {
  const read = (given: unknown) => readRoute(given, 'routes[0]')
  const of = { forward: 'https://localhost:3000/hooks' }

  it('is the same as its short form', () => {
    const where = ['ref==refs/heads/main', '@repo==octo/demo']
    const short = 'push,issues[ref==refs/heads/main][@repo==octo/demo]='
    const plain = ({ where: conditions, ...route }: Route) => ({
      ...route,
      where: conditions.map(({ text }) => text),
    })
    expect(plain(read({ match: ['push', 'issues'], where, exec: './x.sh' }))).toEqual(
      plain(parseExec(`${short}./x.sh`)),
    )
    expect(plain(read({ match: 'push,issues', where, forward: '3000' }))).toEqual(
      plain(parseForward(`${short}3000`)),
    )
    expect(plain(read({ name: 'app', match: 'push', forward: '3000' }))).toEqual(
      plain(parseForward('app=push=3000')),
    )
    expect(plain(read({ forward: '3000' }))).toEqual(plain(parseForward('3000')))
  })

  it('has what its target needs', () => {
    const options = {
      ordered: true,
      concurrency: 4,
      headers: { 'X-Key': 'a$$b $KEY ${OTHER}' },
      verify: false,
    }
    expect(read({ ...of, ...options, timeout: '90s' })).toMatchObject({ ...options, timeout: 90_000 })
    expect(read({ ...of, timeout: 'none', ca: '/etc/ca.pem' })).toMatchObject({
      timeout: Infinity,
      ca: '/etc/ca.pem',
    })
  })

  it.each([
    // As long as the sender waits.
    [true, true],
    ['2s', 2000],
    ['1ms', 1],
    ['30s', 30_000],
    [false, undefined],
  ])('has %j of reply as %s', (reply, expected) => {
    expect(read({ ...of, reply }).reply).toBe(expected)
  })

  it.each([
    [{ ...of, tiemout: '1s' }, '.tiemout is no member of a route (did you mean timeout?)'],
    [{ ...of, reply: 'soon' }, '.reply: must be true, or a duration such as 2500ms, up to 30s'],
    [{ ...of, reply: '0s' }, '.reply: must be true, or a duration such as 2500ms, up to 30s'],
    [{ ...of, reply: '31s' }, '.reply: must be true, or a duration such as 2500ms, up to 30s'],
    [{ ...of, reply: 2 }, '.reply: must be true, or a duration such as 2500ms, up to 30s'],
    [{ ...of, reply: null }, '.reply: must be true, or a duration such as 2500ms, up to 30s'],
    [{ ...of, __proto: 1 }, '.__proto is no member of a route'],
    [{}, ' must have either forward, an address, or exec, a command'],
    [{ ...of, exec: 'x' }, ' must have either forward, an address, or exec, a command'],
    ['push=./x.sh', ' must be an object: { "match": "push", "exec": "./deploy.sh" }'],
    [{ ...of, name: 'a b' }, '.name: must be 1–32 letters, digits, "_" or "-", beginning with a letter'],
    [
      { ...of, match: 'push ' },
      ".match: Invalid match 'push ': write event or event.action, with * for all of a part",
    ],
    [{ ...of, match: 'push[a==b]' }, '.match must be events alone: write the condition as where'],
    [{ ...of, match: 7 }, '.match: must be a text'],
    [{ ...of, where: 'main' }, '.where main: expected ==, != or ~ at the end'],
    [{ ...of, where: 'a==]' }, '.where a==]: write the value in quotes, since it has a bracket'],
    [{ ...of, timeout: 30 }, '.timeout: must be a duration such as 90s or 10m, up to 24d, or none'],
    [{ ...of, timeout: '25d' }, '.timeout: must be a duration such as 90s or 10m, up to 24d, or none'],
    [{ ...of, ordered: 'yes' }, '.ordered: must be true or false'],
    [{ ...of, concurrency: 0 }, '.concurrency: must be a whole number from 1 to 64'],
    [{ ...of, headers: ['a'] }, '.headers: must be an object: { "X-Key": "$APP_KEY" }'],
    [{ ...of, headers: { 'X-K': 'line\n' } }, '.headers: "X-K" is no header that can be sent'],
    [{ ...of, headers: { Host: 'x' } }, '.headers: "Host" is a header of the connection, or of relay itself'],
    [
      { ...of, headers: { 'X-Relay-Attempt': '1' } },
      '.headers: "X-Relay-Attempt" is a header of the connection, or of relay itself',
    ],
    [{ ...of, headers: { A: '1', a: '2' } }, '.headers: "a" is there twice'],
    [
      { ...of, headers: { A: '5 $' } },
      '.headers: in the value of "A", a $ begins no name of a variable: write $$ for the character',
    ],
    [
      { ...of, headers: { A: '$RELAY_WEBHOOK_SECRET' } },
      '.headers: the value of "A" names RELAY_WEBHOOK_SECRET, a secret of relay, which goes to no target',
    ],
    [{ exec: 'x', headers: { A: 'b' } }, '.headers is for forward, not for exec'],
    [{ exec: 'x', verify: false }, '.verify is for forward, not for exec'],
    [
      { forward: 'https://me:canary@a.example/?k=canary', verify: false },
      '.verify can be false only for an address of this machine: name the certificates of another one with ca',
    ],
    [{ forward: 'http://localhost:1', verify: false }, '.verify is for an https:// address'],
    [
      { forward: 'ftp://me:canary@a.example' },
      ": Invalid route: 'ftp://***@a.example' names no http:// or https:// address",
    ],
  ])('%j is refused', (given, why) => {
    const message = `routes[0]${why}`
    expect(() => read(given)).toThrow(expect.objectContaining({ kind: 'settings', message }))
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
