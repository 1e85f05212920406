// What a program without types can pass to the library and the testing kit: every option with every wrong value. Prints, as
// JSON, the options that it knows of each call, and the calls that went wrong.
const fs = require('node:fs')
const net = require('node:net')
const path = require('node:path')
const { DEFAULTS, createRelay, mount, Secret, serve } = require('webhook-relay')
const kit = require('webhook-relay/testing')

const [, , folder] = process.argv
const settings = {
  ...DEFAULTS,
  providerUrl: 'https://github.com',
  webhookSecrets: { current: new Secret('secret') },
  folder: path.join(folder, 'never'),
  port: 0,
  allowedHosts: [],
  routes: [],
}

class WithMembers {
  get length() {
    return 5
  }
}
/** A value of each kind that JSON and JavaScript have, and those that people confuse with another. */
const VALUES = [
  null,
  true,
  0,
  -1,
  1.5,
  5,
  NaN,
  Infinity,
  2 ** 31,
  70_000,
  '',
  'nonsense',
  'http://localhost:3000/',
  [],
  [5],
  ['nonsense'],
  [null],
  [{}],
  {},
  { nonsense: 1 },
  () => {},
  new Map(),
  new WithMembers(),
  new AbortController(),
  Promise.resolve('late'),
  Symbol('nonsense'),
  5n,
]

const isObject = (value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && typeof value.then !== 'function'
const isText = (value) => typeof value === 'string'
const isFilled = (value) => isText(value) && value !== ''
const isFunction = (value) => typeof value === 'function'
const isFlag = (value) => typeof value === 'boolean'
const isAddress = (value) => isText(value) && value.startsWith('http')
const isTexts = (value) => Array.isArray(value) && value.every(isText)
const isObjects = (value) => Array.isArray(value) && value.every(isObject)
const isLimit = (value) => typeof value === 'number' && value > 0
const isTimer = (value) => Number.isInteger(value) && value >= 0 && value < 2 ** 31
const isPort = (value) => Number.isInteger(value) && value >= 0 && value < 65_536
const isCount = (value) => Number.isInteger(value) && value >= 0
const no = () => false
const isEmpty = (value) => isObject(value) && Object.keys(value).length === 0
const isEmptyList = (value) => Array.isArray(value) && value.length === 0

/** Which values each option takes, of those above. */
const routes = {
  forward: isTexts,
  exec: isTexts,
  ignore: isTexts,
  routes: isObjects,
  timeout: isLimit,
  reply: isTexts,
}
const relayOptions = { log: no, clock: isFunction, seams: isEmpty, onDelivery: isFunction }
const serveOptions = {
  ...relayOptions,
  signal: no,
  env: (value) => isObject(value) && Object.values(value).every(isText),
  onListening: isFunction,
  onAttempt: isFunction,
  onTarget: isFunction,
}
const startOptions = {
  ...serveOptions,
  ...routes,
  secret: isFilled,
  sources: isEmpty,
  retries: (value) => Array.isArray(value) && value.every(isTimer),
  settings: isObject,
}
const sandboxOptions = {
  webhook: (value) => isFunction(value) || isAddress(value),
  secret: isFilled,
  signal: no,
  client: no,
  lifetimes: no,
  log: no,
  clock: isFunction,
  port: isPort,
  deviceFlow: isFlag,
  checkDuration: isTimer,
}
const loadOptions = { event: isFilled, provider: isText, scheme: isText, signal: no }
const fixtureOptions = {
  provider: isText,
  scheme: isText,
  source: (value) => value === 'nonsense',
  body: (value) => isText(value) || isObject(value),
}
const signOptions = { secret: isFilled, set: isObject, tamper: no, keepId: isFlag, url: isAddress }
const deliverOptions = { set: isObject, keepId: isFlag, timeout: isTimer, until: no, signal: no }
const filter = { event: (value) => [value].flat().every(isText), repo: isText, deliveryId: isText }
const waitOptions = { count: isCount, timeout: isTimer, until: no, signal: no }
const nothingOptions = { within: isTimer, signal: no }
const receiveOptions = { source: isText, address: isAddress }
const all = {
  webhookSecrets: no,
  sources: isEmptyList,
  routes: (value) => isObjects(value),
  profile: isFilled,
  folder: isText,
  provider: no,
  providerUrl: isAddress,
  oauthClient: no,
  host: isText,
  port: isPort,
  allowedHosts: isTexts,
  inspect: isFlag,
  metrics: isFlag,
  inspectHosts: isTexts,
  publicUrl: isAddress,
  baseUrl: isAddress,
  store: no,
  maxBody: (value) => Number.isInteger(value) && value > 0 && value < 26_214_401,
  tokenTtl: isLimit,
  concurrency: (value) => value === 5,
  onDuplicate: no,
  keep: isLimit,
  keepMax: isLimit,
  tunnel: isAddress,
  hubToken: no,
}

async function main() {
  const relay = await kit.startRelay()
  const sandbox = await kit.startSandbox()
  const mounted = await mount({ ...settings, folder: '', store: 'memory' })
  const serving = await serve({ ...settings, folder: '', store: 'memory' })
  const push = kit.fixtureOf('push')
  const file = 'webhook-relay/fixtures/github/push.json'

  /** Each call with options: which it takes, and how it is called. */
  const CALLS = {
    startRelay: [startOptions, (given) => kit.startRelay(given)],
    startSandbox: [sandboxOptions, (given) => kit.startSandbox(given)],
    loadFixture: [loadOptions, (given) => kit.loadFixture(file, given)],
    loadFixtures: [loadOptions, (given) => kit.loadFixtures(file, given)],
    fixtureOf: [fixtureOptions, (given) => kit.fixtureOf('push', given)],
    events: [{ provider: isText, scheme: isText }, (given) => kit.events(given)],
    signedRequest: [signOptions, (given) => kit.signedRequest(push, given)],
    deliver: [deliverOptions, (given) => relay.deliver(push, given)],
    'deliveries, its filter': [filter, (given) => relay.deliveries(given, { count: 0 })],
    deliveries: [waitOptions, (given) => relay.deliveries({}, given)],
    'nothingMore, its filter': [filter, (given) => relay.nothingMore(given, { within: 0 })],
    nothingMore: [nothingOptions, (given) => relay.nothingMore({}, given)],
    replaceRoutes: [routes, (given) => relay.replaceRoutes(given)],
    serve: [serveOptions, (given) => serve(settings, given)],
    mount: [serveOptions, (given) => mount(settings, given)],
    createRelay: [relayOptions, (given) => createRelay(settings, given)],
    'mounted.fetch': [receiveOptions, (given) => mounted.fetch(new Request('http://x/'), given)],
    'mounted.handler': [receiveOptions, (given) => mounted.handler(given)],
    'the settings of serve': [all, (given) => serve(isObject(given) ? { ...settings, ...given } : given)],
    'the settings of mount': [all, (given) => mount(isObject(given) ? { ...settings, ...given } : given)],
    'the settings of createRelay': [
      all,
      (given) => createRelay(isObject(given) ? { ...settings, ...given } : given),
    ],
    'the settings of startRelay': [all, (given) => kit.startRelay({ settings: given })],
  }
  /** Each argument that is no object of options. */
  const ARGUMENTS = {
    'the file of loadFixture': [isFilled, (given) => kit.loadFixture(given)],
    'the folder of loadFixtures': [isFilled, (given) => kit.loadFixtures(given)],
    'the event of fixtureOf': [isFilled, (given) => kit.fixtureOf(given)],
    'the fixture of signedRequest': [no, (given) => kit.signedRequest(given)],
    'the scheme of publicKeyOf': [isFilled, (given) => kit.publicKeyOf(given)],
    'the fixture of deliver': [no, (given) => relay.deliver(given)],
    'the user of signIn': [isFilled, (given) => relay.signIn(given)],
    'the scope of token': [isText, (given) => sandbox.token(given)],
    'the repository of issue': [isText, (given) => relay.sandbox.issue(given, 1)],
    'the number of issue': [
      (value) => isCount(value) && value > 0,
      (given) => relay.sandbox.issue('octo/demo', given),
    ],
    'the operation of faults.next': [no, (given) => sandbox.faults.next(given, '502')],
    'the fault of faults.next': [no, (given) => sandbox.faults.next('comment', given)],
    'the operation of faults.always': [no, (given) => sandbox.faults.always(given, '502')],
    'the fault of faults.always': [no, (given) => sandbox.faults.always('comment', given)],
    'the text of Secret': [isText, (given) => new Secret(given)],
    'the routes of checkRoutes': [isObjects, (given) => serving.checkRoutes(given)],
    'the routes of replaceRoutes': [isObjects, (given) => serving.replaceRoutes(given)],
    'the request of app.fetch': [no, (given) => serving.relay.app.fetch(given)],
    'the request of mounted.fetch': [no, (given) => mounted.fetch(given)],
    'the request of a handler': [no, (given) => mounted.handler()(given, {})],
  }
  /** Those that have a default. */
  const OPTIONAL = new Set(['the user of signIn', 'the scope of token'])

  let listening = 0
  const listen = Reflect.get(net.Server.prototype, 'listen')
  net.Server.prototype.listen = function (...args) {
    listening += 1
    return Reflect.apply(listen, this, args)
  }
  const problems = []
  let refused = 0
  const isClear = (error, name) =>
    error.name === 'RelayError' &&
    ['usage', 'settings'].includes(error.kind) &&
    (name === '' || error.message.includes(name)) &&
    / must (?:not )?be | is missing| has no |There is no |there is no | is invalid: /.test(error.message)
  async function refuse(what, name, value, call) {
    const described = `${what} ${name} = ${typeof value} ${isText(value) || typeof value === 'number' ? value : (value?.constructor?.name ?? '')}`
    const before = listening
    let error
    try {
      const result = await call()
      await result?.[Symbol.asyncDispose]?.()
    } catch (thrown) {
      error = thrown
    }
    if (error === undefined) problems.push(`${described}: not refused`)
    else if (!isClear(error, name)) problems.push(`${described}: ${error.name} ${error.message}`)
    else refused += 1
    if (listening > before) problems.push(`${described}: something listened`)
  }

  for (const [what, [options, call]] of Object.entries(CALLS)) {
    for (const value of VALUES) {
      // An object of a class has members of its own.
      const isOptions = isEmpty(value) || value instanceof AbortController
      if (!isOptions && !(isObject(value) && what.startsWith('the settings')))
        await refuse(what, '', value, () => call(value))
    }
    for (const [name, takes] of Object.entries(options)) {
      for (const value of VALUES)
        if (!takes(value)) await refuse(what, name, value, () => call({ [name]: value }))
      const misspelt = name.slice(0, -1)
      if (name.length > 3)
        await refuse(what, `${misspelt} (did you mean ${name}?)`, 1, () => call({ [misspelt]: 1 }))
    }
  }
  for (const [what, [takes, call]] of Object.entries(ARGUMENTS)) {
    const values = OPTIONAL.has(what) ? VALUES : [undefined, ...VALUES]
    for (const value of values) if (!takes(value)) await refuse(what, '', value, () => call(value))
  }
  // A nonsense name is refused too, except of settings, which programs keep with more.
  for (const [what, [, call]] of Object.entries(CALLS))
    if (!what.startsWith('the settings')) await refuse(what, 'nonsense', 1, () => call({ nonsense: 1 }))
  if (fs.existsSync(settings.folder)) problems.push('the folder was made')

  await Promise.all([
    relay.stop(),
    sandbox.stop(),
    mounted[Symbol.asyncDispose](),
    serving[Symbol.asyncDispose](),
  ])
  const names = Object.fromEntries(
    Object.entries(CALLS).map(([what, [options]]) => [what, Object.keys(options)]),
  )
  const exported = [...Object.entries(kit), ...Object.entries(require('webhook-relay'))]
  const functions = exported.filter(([, value]) => isFunction(value)).map(([name]) => name)
  process.stdout.write(JSON.stringify({ names, functions, problems, refused }))
}

void main()
