import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { githubDelivery, post } from '../kit/delivery.js'
import { emptyFolder } from '../kit/folder.js'
import { codingAgent, type Fields } from '../kit/mcp.js'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'

// Nothing is left to guess: what runs, what starts what does not, and what a handler verifies with.

describe('an agent that has just been started', () => {
  it('reads what runs and where, which file sets what, and how the program gets its secret', async () => {
    await using here = await place({ host: 'none' })
    await using handler = await receiver({ status: 401, body: 'bad signature' })
    const cwd = path.join(emptyFolder(), 'work')
    mkdirSync(path.join(cwd, '.git'), { recursive: true })
    writeFileSync(path.join(cwd, 'relay.json'), JSON.stringify({ forward: [handler.url] }))
    await using agent = await codingAgent({ env: here.env, cwd }, '--serve')
    const secret = expect.stringMatching(
      /^The program verifies with the webhook secret of relay.*\$\(relay config --reveal webhookSecret\)/,
    )
    const state = await agent.call('relay_state')
    const { url } = Object(state['running'])
    expect(state).toMatchObject({
      running: { inspector: `${url}/inspect` },
      start: null,
      payloadUrl: `${url}/webhook`,
      secret,
      settings: { 'relay.json': ['forward'] },
      notes: [],
    })
    // What a handler that refuses needs to know is there as well.
    const refused = [
      await agent.call('trigger_delivery', { event: 'push' }),
      await agent.call('replay_delivery', { entry: 1 }),
      await agent.call('wait_for_delivery', { match: 'push', since: '1h', forwarded: true }),
      await agent.call('trigger_delivery', { event: 'push', to: handler.url }),
    ]
    for (const { notes } of refused)
      expect(notes).toEqual(
        expect.arrayContaining([expect.stringMatching(/^The target refused it with 401: /), secret]),
      )
  })

  it('reads about the secret, too, where one target of several refuses', async () => {
    await using here = await place({ host: 'none' })
    await using strict = await receiver(403)
    await using well = await receiver()
    await using _relay = await here.serve('--forward', strict.url, '--forward', well.url)
    await using agent = await codingAgent(here)
    const { outcome, notes } = await agent.call('trigger_delivery', { event: 'push' })
    expect([outcome, notes]).toEqual([
      '1 of 2 failed 403; 1 of 2 succeeded 200',
      [
        '1 sent',
        expect.stringMatching(/^The target refused it with 403: /),
        expect.stringContaining('relay config --reveal webhookSecret'),
      ],
    ])
  })

  it('reads the command that starts relay, also without a network, where none runs', async () => {
    await using here = await place({ host: 'none' })
    await using agent = await codingAgent(here)
    expect(await agent.call('relay_state')).toMatchObject({
      running: null,
      start: 'relay serve',
      startOffline: 'relay serve --sandbox',
    })
  })

  it('reads one command for the profile of the sandbox, before its first start and after', async () => {
    await using here = await place({ host: 'none', env: { RELAY_PORT: '0' } })
    await using agent = await codingAgent(here, '--profile', 'sandbox')
    const start = 'relay serve --sandbox'
    expect(await agent.call('relay_state')).toMatchObject({ running: null, start, startOffline: start })
    for (const [tool, given] of [
      ['trigger_delivery', { event: 'push' }],
      ['wait_for_delivery', { match: 'push', timeout: 1 }],
      ['list_deliveries', { refused: true }],
    ] as const)
      expect(await agent.fails(tool, given)).toMatch(
        / Start it with relay serve --sandbox(?:\. relay mcp |$)/,
      )
    const relay = await here.serve('--sandbox')
    expect(await agent.call('relay_state')).toMatchObject({ running: { sandbox: true } })
    await relay.stop()
    expect(await agent.call('relay_state')).toMatchObject({ running: null, start, startOffline: start })
  })

  it.each(['github', 'gitea', 'gitlab', 'sandbox'])(
    'reads the payload URL and the secret of its code host %s',
    async (provider) => {
      const env = { RELAY_PROVIDER: provider, RELAY_PROVIDER_URL: 'http://127.0.0.1:9' }
      await using here = await place({ host: 'none', env })
      await using handler = await receiver(401)
      await using relay = await here.serve('--forward', handler.url)
      await using agent = await codingAgent(here)
      const { payloadUrl, secret } = await agent.call('relay_state')
      expect([payloadUrl, secret]).toEqual([
        `${relay.address}/webhook`,
        expect.stringContaining('relay config --reveal webhookSecret'),
      ])
      for (const given of [{}, { to: handler.url }]) {
        const { notes } = await agent.call('trigger_delivery', { event: 'push', ...given })
        expect(notes).toContain(secret)
      }
    },
  )

  it.each([
    ['{"nothing":1}', 'nothing is not a setting'],
    ['{"provider":"bitbucket"}', 'provider in '],
    ['{', 'not JSON'],
  ])('reads once in each answer what is wrong with relay.json %s', async (settings, text) => {
    await using here = await place({ host: 'none' })
    const cwd = path.join(emptyFolder(), 'work')
    mkdirSync(path.join(cwd, '.git'), { recursive: true })
    writeFileSync(path.join(cwd, 'relay.json'), settings)
    await using agent = await codingAgent({ env: here.env, cwd }, '--serve')
    for (const [tool, given] of [
      ['relay_state', {}],
      ['list_deliveries', {}],
      ['show_routes', {}],
      ['trigger_delivery', { event: 'push' }],
    ] as const) {
      const said = await agent.fails(tool, given)
      expect([tool, said.split(text).length - 1, said]).toEqual([tool, 1, said])
    }
  })

  it('reads what can be known before the first start, and commands that work when typed', async () => {
    await using here = await place({
      host: 'none',
      env: { RELAY_WEBHOOK_SECRET: undefined, RELAY_PORT: '0' },
    })
    await using agent = await codingAgent(here, '--profile', 'work')
    const before = await agent.call('relay_state')
    expect(before).toMatchObject({
      profile: 'work',
      running: null,
      start: 'relay serve --profile work',
      // Its port is not known yet.
      payloadUrl: null,
      secret: expect.stringMatching(
        /which relay makes at its first start\. Then start it with WEBHOOK_SECRET=/,
      ),
      settings: { flags: ['profile'] },
    })
    const [, command = ''] = /\$\((relay [^)]*)\)/.exec(String(before['secret'])) ?? []
    expect(command).toBe('relay config --reveal webhookSecret --profile work')
    await using _relay = await here.serve('--profile', 'work')
    expect(await here.run(...command.split(' ').slice(1))).toMatchObject({ code: 0, out: /^\S{20,}\n$/ })
    const { secret } = await agent.call('relay_state')
    expect(secret).toMatch(
      /^The program verifies with the webhook secret of relay, of the profile\. Start it with/,
    )
  })

  it('reads first what became of a delivery', async () => {
    await using here = await place({ host: 'none' })
    await using handler = await receiver({ status: 500, headers: { 'Retry-After': '30' } })
    await using _relay = await here.serve('--forward', `push=${handler.url}`, '--ignore', 'star')
    await using agent = await codingAgent(here)
    const first = async (tool: string, given: Fields): Promise<unknown> => {
      const result = await agent.call(tool, given)
      const [key = ''] = Object.keys(result)
      return key === 'sent' ? Object(result['sent']).ok : [key, result[key]]
    }
    const noRoute = expect.stringMatching(
      /^no route matches, so that no program got it\. The user adds one, such as "forward": .* in relay\.json, .* show_routes with entry: 2 says why$/,
    )
    expect([
      await first('trigger_delivery', { event: 'push' }),
      await first('trigger_delivery', { event: 'issues.opened' }),
      await first('trigger_delivery', { event: 'star.created' }),
      await first('wait_for_delivery', { match: 'issues', since: '1h' }),
      await first('replay_delivery', { entry: 2 }),
      await first('trigger_delivery', { event: 'push', to: handler.url }),
      await first('trigger_delivery', { event: 'push', body: '{"a":', source: 'github' }),
    ]).toEqual([
      ['outcome', 'waiting after 500'],
      ['outcome', noRoute],
      ['outcome', 'ignored: relay is set up to forward no such delivery'],
      ['outcome', noRoute],
      ['outcome', noRoute],
      false,
      false,
    ])
    handler.answers(200)
    expect(await first('replay_delivery', { entry: 1 })).toEqual(['outcome', 'succeeded 200'])
    await handler.down()
    expect(await first('trigger_delivery', { event: 'push' })).toEqual(['outcome', 'waiting, unreachable'])
  })

  it('reads that there is no route, and how one comes to be, which is then there at once', async () => {
    await using here = await place({ host: 'none' })
    await using handler = await receiver()
    const cwd = path.join(emptyFolder(), 'work')
    mkdirSync(path.join(cwd, '.git'), { recursive: true })
    await using agent = await codingAgent({ env: here.env, cwd }, '--serve')
    const none = expect.stringMatching(/^There is no route, .*"forward": \["http:.*\] in relay\.json/)
    for (const tool of ['relay_state', 'show_routes'])
      expect(await agent.call(tool)).toMatchObject({ routes: [], advice: none, notes: [] })
    writeFileSync(path.join(cwd, 'relay.json'), JSON.stringify({ forward: [handler.url] }))
    await expect.poll(async () => (await agent.call('show_routes'))['advice']).toBe(undefined)
    const { outcome } = await agent.call('trigger_delivery', { event: 'push' })
    expect(outcome).toBe('succeeded 200')
  })

  it('reads what to do about each kind of request that relay refused, and none is called valid', async () => {
    await using here = await place({ host: 'none', env: { RELAY_MAX_BODY: '1000' } })
    await using relay = await here.serve()
    await using agent = await codingAgent(here)
    const webhook = `${relay.address}/webhook`
    await post(webhook, githubDelivery({ body: '{"a"' }))
    await post(webhook, githubDelivery({ event: 'bad event!' }))
    await post(webhook, githubDelivery({ body: JSON.stringify({ a: 'x'.repeat(2000) }) }))
    await post(`${relay.address}/hook`, githubDelivery())
    await fetch(webhook)
    const { refused, total, more } = await agent.call('list_deliveries', { refused: true, last: 2 })
    expect([Object(refused).length, total, more]).toEqual([2, 5, true])
    const verdicts: unknown[] = []
    for (const id of [1, 2, 3, 4, 5]) verdicts.push((await agent.call('explain_refused', { id }))['verdict'])
    const next = (text: string): unknown => ({ valid: false, next: expect.stringContaining(text) })
    expect(verdicts).toMatchObject([
      { ...Object(next('POST')), reason: 'invalid_event', signature: 'matches' },
      { ...Object(next('POST')), reason: 'invalid_event', signature: 'matches' },
      { ...Object(next('maxBody')), reason: 'too_large' },
      { ...Object(next('the address that relay_state has')), reason: 'wrong_path' },
      { ...Object(next('sent with POST')), reason: 'question' },
    ])
  })

  it('reads why relay refused what it has made up', async () => {
    await using here = await place({ host: 'none', env: { RELAY_MAX_BODY: '1000' } })
    await using _relay = await here.serve()
    await using agent = await codingAgent(here)
    for (const body of ['{"ref":', JSON.stringify({ ref: 'x'.repeat(2000) })]) {
      const { notes, sent } = await agent.call('trigger_delivery', { event: 'push', body })
      const { status } = Object(sent)
      expect(notes).toContain(
        `relay refused it with ${status}, and no target got it: list_deliveries with refused: true has its id, and explain_refused says why`,
      )
    }
    const { refused } = await agent.call('list_deliveries', { refused: true })
    expect(refused).toMatchObject([{ kind: 'invalid_event' }, { kind: 'too_large' }])
  })

  it('reads what to do about a request that relay refused', async () => {
    await using here = await place({ host: 'none' })
    await using relay = await here.serve()
    await using agent = await codingAgent(here)
    const requests = [
      githubDelivery({ secret: 'another' }),
      githubDelivery({ body: '{ "a": 1 }', signed: '{"a":1}' }),
      githubDelivery({ set: { 'X-Hub-Signature-256': undefined } }),
      githubDelivery({ set: { 'X-Hub-Signature-256': 'sha256=xyz' } }),
    ]
    for (const request of requests)
      expect(await post(`${relay.address}/webhook`, request)).toMatchObject({ status: 401 })
    const verdicts: unknown[] = []
    for (const id of [1, 2, 3, 4]) verdicts.push((await agent.call('explain_refused', { id }))['verdict'])
    expect(verdicts).toMatchObject([
      { reason: 'wrong_secret', next: expect.stringContaining('the same secret') },
      { reason: 're_encoded', next: expect.stringContaining('the bytes that were signed') },
      { reason: 'no_signature', next: expect.stringContaining('Enter a secret') },
      {
        reason: 'malformed_signature',
        hint: expect.stringContaining('expected X-Hub-Signature-256: sha256=<64 lower-case hex digits>'),
        next: 'Change how the sender signs: the hint says what is wrong with it',
      },
    ])
  })

  it.each(['github', 'gitea', 'gitlab', 'sandbox'])(
    'finds the example of each event of its code host %s, and of a sender, that it can make up',
    async (provider) => {
      const env = { RELAY_PROVIDER: provider, RELAY_PROVIDER_URL: 'http://127.0.0.1:9' }
      await using here = await place({ host: 'none', env })
      await using agent = await codingAgent(here)
      const events = async (given: Fields): Promise<readonly string[]> =>
        Object((await agent.call('trigger_delivery', { list: true, ...given }))['events'])
      const host = provider === 'gitlab' ? 'gitlab-host' : provider
      const { resources } = await agent.client.listResources()
      const uris = (await events({})).map((event) => `relay://fixtures/${host}/${event}`)
      expect(resources.map(({ uri }) => uri).filter((uri) => uri.includes('fixtures'))).toEqual(uris)
      for (const source of ['gitlab', 'stripe', 'shopify'])
        uris.push(
          ...(await events({ source })).map(
            (event) => `relay://fixtures/${source}/${encodeURIComponent(event)}`,
          ),
        )
      for (const uri of uris) {
        const { contents } = await agent.client.readResource({ uri })
        expect([uri, contents]).toEqual([
          uri,
          [expect.objectContaining({ text: expect.stringMatching(/^\{/) })],
        ])
      }
    },
  )

  it('finds prompts, pages and examples, and what each tool changes', async () => {
    await using here = await place({ host: 'none' })
    await using agent = await codingAgent(here, '--allow-actions')
    const { client } = agent
    const { prompts } = await client.listPrompts()
    expect(prompts.map(({ name }) => name)).toEqual(['write_handler', 'find_failure'])
    const texts: string[] = []
    for (const [name, given] of [
      ['write_handler', { event: 'push', file: 'app.js' }],
      ['find_failure', { entry: '7' }],
      ['find_failure', {}],
    ] as const) {
      const { messages } = await client.getPrompt({ name, arguments: given })
      texts.push(JSON.stringify(messages))
    }
    const { tools } = await client.listTools()
    const named = texts.flatMap((text) => text.match(/\b[a-z]+_[a-z]+\b/g) ?? [])
    const words = new Set(tools.map(({ name }) => name))
    expect(named.filter((word) => !words.has(word))).toEqual([])
    const { resources } = await client.listResources()
    const uris = resources.map(({ uri }) => uri)
    expect(uris).toEqual(
      expect.arrayContaining(['relay://readme.md', 'relay://docs/agents.md', 'relay://fixtures/github/push']),
    )
    for (const uri of ['relay://docs/agents.md', 'relay://fixtures/stripe/invoice.paid']) {
      const { contents } = await client.readResource({ uri })
      expect(JSON.stringify(contents).length).toBeGreaterThan(500)
    }
    for (const uri of ['relay://fixtures/github/../../package', 'relay://fixtures/..%2F..%2Fsrc/x'])
      await expect(client.readResource({ uri })).rejects.toThrow(/no such example|not found/)
    expect(
      tools.map(({ name, title, annotations }) => [
        name,
        title !== undefined,
        Object.values(annotations ?? {}),
      ]),
    ).toEqual([
      // Reads only, destroys, is the same if repeated, reaches other machines.
      ['list_deliveries', true, [true, false, true, false]],
      ['show_delivery', true, [true, false, true, false]],
      ['wait_for_delivery', true, [true, false, true, false]],
      ['replay_delivery', true, [false, false, false, false]],
      ['trigger_delivery', true, [false, false, false, false]],
      ['skip_delivery', true, [false, false, true, false]],
      ['explain_refused', true, [true, false, true, false]],
      ['show_routes', true, [true, false, true, false]],
      ['relay_state', true, [true, false, true, false]],
      ['comment', true, [false, true, false, true]],
      ['merge', true, [false, true, false, true]],
      ['react', true, [false, true, false, true]],
    ])
  })
})
