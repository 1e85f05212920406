import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import path from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { prints, type Ran, run, start } from '../kit/run.js'

// Text that a person's editor, shell or vault wrote is read as it was meant, or refused in one line: never in part.

/** Fits secret settings: 32 bytes in base64. */
const SECRET = 'Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5LWNhbm8='
/** Fits a setting: the invitation of a hub has a form of its own. */
const secretFor = (setting: string): string =>
  setting === 'hubToken' ? `relay-hub-${SECRET.slice(0, 43)}` : SECRET
const MARK = '\uFEFF'

const utf16be = (text: string): Buffer => Buffer.from(text, 'utf16le').swap16()
const utf32 = (text: string): Buffer =>
  Buffer.concat(
    Array.from(`${MARK}${text}`, (char) => Buffer.from(Uint32Array.of(char.codePointAt(0) ?? 0).buffer)),
  )

/** How editors write text that every reader of relay takes as it was meant. */
const READ: Readonly<Record<string, (text: string) => Buffer>> = {
  'as it is': (text) => Buffer.from(text),
  'UTF-8 with a mark (Notepad, PowerShell 5)': (text) => Buffer.from(MARK + text),
  'UTF-8 with two marks': (text) => Buffer.from(MARK + MARK + text),
  'UTF-16LE (PowerShell 5 >)': (text) => Buffer.from(MARK + text, 'utf16le'),
  'UTF-16BE': (text) => utf16be(MARK + text),
}

/** What no reader can take, and what the line about it says. */
const REFUSED: Readonly<Record<string, readonly [(text: string) => Buffer, RegExp]>> = {
  'UTF-16LE without a mark': [(text) => Buffer.from(text, 'utf16le'), /NUL/],
  'UTF-16BE without a mark': [utf16be, /NUL/],
  'UTF-16LE that is cut off': [(text) => Buffer.from(MARK + text, 'utf16le').subarray(0, -1), /UTF-16LE/],
  'UTF-16BE that is cut off': [(text) => utf16be(MARK + text).subarray(0, -1), /UTF-16BE/],
  'UTF-16LE with half a pair': [(text) => Buffer.from(`${MARK}${text}\ud800`, 'utf16le'), /UTF-16LE/],
  'UTF-32': [utf32, /UTF-32/],
  'Latin-1': [(text) => Buffer.from(`${text}\xe4`, 'latin1'), /not UTF-8.*Latin-1/],
  'a NUL': [(text) => Buffer.from(`${text}\0`), /NUL/],
  'UTF-8 to which PowerShell 5 added UTF-16': [
    (text) => Buffer.concat([Buffer.from(text), Buffer.from(text, 'utf16le')]),
    /NUL/,
  ],
}

const ENDS: Readonly<Record<string, string>> = { LF: '\n', CRLF: '\r\n', CR: '\r' }

/** Every way to write lines: encoding, line end, and with or without one at the end. */
function* written(lines: readonly string[]): Generator<readonly [name: string, bytes: Buffer]> {
  for (const [encoding, encode] of Object.entries(READ))
    for (const [name, end] of Object.entries(ENDS))
      for (const last of [end, ''])
        yield [
          `${encoding}, ${name}, ${last === '' ? 'none at the end' : 'one at the end'}`,
          encode(lines.join(end) + last),
        ]
}

const refused = (file: string | RegExp, why: RegExp): Ran => ({
  code: 2,
  out: '',
  err: expect.stringMatching(
    // One line that names the file, and says what to do.
    new RegExp(
      `^error: .*${typeof file === 'string' ? file : file.source}.*${why.source}.*Save it as UTF-8.*\\n$`,
    ),
  ),
})

/** Every secret setting with its variable, as the program lists them. */
async function secrets(): Promise<readonly (readonly [name: string, variable: string])[]> {
  const { out: help } = await run(['help', 'settings'])
  const variables = [...help.matchAll(/^ {2}([A-Z_]+)\b/gm)].map(([, name = '']) => name)
  const { out } = await run(['config', '--json'])
  const shown = Object.entries<object>(JSON.parse(out).settings)
  expect(shown).toHaveLength(variables.length)
  return shown.flatMap(([name, about], i) => ('set' in about ? [[name, variables[i] ?? ''] as const] : []))
}

let all: Awaited<ReturnType<typeof secrets>>
beforeAll(async () => {
  all = await secrets()
})

const reveal = (name: string) => ['config', '--reveal', name]

describe('.env', () => {
  it('has every variable, the first too, however it was written', async () => {
    const cwd = emptyFolder()
    const lines = [
      `RELAY_WEBHOOK_SECRET=${SECRET}`,
      '# ein Kommentar',
      'RELAY_PORT=26402',
      'RELAY_CLIENT_ID=x',
    ]
    for (const [name, bytes] of written(lines)) {
      writeFileSync(path.join(cwd, '.env'), bytes)
      const shown = await Promise.all(
        ['webhookSecret', 'port', 'clientId'].map((each) => run(reveal(each), { cwd })),
      )
      expect([name, ...shown]).toEqual([name, ...[SECRET, '26402', 'x'].map((text) => prints(`${text}\n`))])
    }
  })

  it('of two files that were put together has the variables of both', async () => {
    const cwd = emptyFolder()
    writeFileSync(path.join(cwd, '.env'), `${MARK}RELAY_CLIENT_ID=x\n${MARK}RELAY_PORT=26402\n`)
    expect(await run(reveal('port'), { cwd })).toEqual(prints('26402\n'))
  })

  it.each(Object.entries(REFUSED))('is refused: %s', async (_, [encode, why]) => {
    const cwd = emptyFolder()
    writeFileSync(path.join(cwd, '.env'), encode('RELAY_PORT=26402\n'))
    expect(await run(['config'], { cwd })).toEqual(refused(path.join(cwd, '.env'), why))
  })
})

describe('relay.json and config.json', () => {
  /** Where each of them is, and how a command finds it. */
  const FILES = {
    'relay.json': (folder: string) => ({ cwd: folder }),
    'config.json': (folder: string) => ({ configFolder: path.join(folder, 'relay') }),
  }
  const fileOf = (name: string, folder: string): string =>
    path.join(folder, name === 'config.json' ? 'relay' : '', name)

  it.each(Object.entries(FILES))('%s is read, however it was written', async (file, over) => {
    const folder = emptyFolder()
    mkdirSync(path.join(folder, 'relay'), { mode: 0o700 })
    for (const [name, bytes] of written(['{', '  "port": 26402,', '  "clientId": "schön"', '}'])) {
      writeFileSync(fileOf(file, folder), bytes)
      const shown = [await run(reveal('port'), over(folder)), await run(reveal('clientId'), over(folder))]
      expect([name, ...shown]).toEqual([name, prints('26402\n'), prints('schön\n')])
    }
  })

  const rows = Object.entries(FILES).flatMap(([file, over]) =>
    Object.entries(REFUSED).map(([name, row]) => [file, name, over, ...row] as const),
  )
  it.each(rows)('%s is refused: %s', async (file, _, over, encode, why) => {
    const folder = emptyFolder()
    mkdirSync(path.join(folder, 'relay'), { mode: 0o700 })
    writeFileSync(fileOf(file, folder), encode('{"port":26402}'))
    expect(await run(['config'], over(folder))).toEqual(refused(fileOf(file, folder), why))
  })

  it.each(Object.entries(FILES))(
    '%s names the line of a mistake, whatever ends lines',
    async (file, over) => {
      const folder = emptyFolder()
      mkdirSync(path.join(folder, 'relay'), { mode: 0o700 })
      for (const end of Object.values(ENDS)) {
        writeFileSync(fileOf(file, folder), ['{', '"port": 1', '"host": "x"', '}'].join(end))
        expect((await run(['config'], over(folder))).err).toContain(`${file}, line 3: not JSON`)
      }
    },
  )
})

describe('the file of a secret', () => {
  it('is the secret, for every setting and however it was written', async () => {
    const file = path.join(emptyFolder(), 'secret')
    for (const [setting, variable] of all) {
      const env = { [`${variable}_FILE`]: file }
      for (const [name, bytes] of written([secretFor(setting)])) {
        writeFileSync(file, bytes)
        const shown = await run(reveal(setting), { env })
        expect([name, setting, shown]).toEqual([name, setting, prints(`${secretFor(setting)}\n`)])
      }
    }
    for (const [name, bytes] of written([SECRET])) {
      writeFileSync(file, bytes)
      const env = { RELAY_SOURCES: 'my-shop=stripe', RELAY_SOURCE_MY_SHOP_SECRET_FILE: file }
      expect([name, await run(['source', 'list', '--reveal', 'my-shop'], { env })]).toEqual([
        name,
        prints(`${SECRET}\n`),
      ])
    }
  })

  it.each(Object.entries(REFUSED))('is refused for every setting: %s', async (_, [encode, why]) => {
    const file = path.join(emptyFolder(), 'secret')
    writeFileSync(file, encode(SECRET))
    for (const [setting, variable] of all) {
      const env = { [`${variable}_FILE`]: file }
      expect([setting, await run(['config'], { env })]).toEqual([setting, refused(file, why)])
    }
  })

  it('that holds nothing but a mark is empty', async () => {
    const file = path.join(emptyFolder(), 'secret')
    writeFileSync(file, MARK)
    const { code, err } = await run(['config'], { env: { RELAY_WEBHOOK_SECRET_FILE: file } })
    expect([code, err]).toEqual([2, `error: RELAY_WEBHOOK_SECRET_FILE: ${file} is empty\n`])
  })
})

describe('standard input', () => {
  it('is the secret of a source, however it was written', async () => {
    await using here = await place({ host: 'none' })
    for (const [name, bytes] of written(['whsec_canary-of-mine'])) {
      expect(await here.runWith({ stdin: bytes }, 'source', 'add', 'stripe')).toMatchObject({ code: 0 })
      const shown = await here.run('source', 'list', '--reveal', 'stripe')
      expect([name, shown]).toEqual([name, prints('whsec_canary-of-mine\n')])
    }
  })

  it('is the token of relay login --with-token, however it was written', async () => {
    await using here = await place()
    const token = await here.sandbox.token('repo')
    for (const [name, bytes] of written([token])) {
      const { code, err } = await here.runWith({ stdin: bytes }, 'login', '--with-token')
      expect([name, code, err]).toMatchObject([name, 0, expect.anything()])
      expect([name, await here.run('token')]).toEqual([name, prints(`${token}\n`)])
    }
  })

  it.each(Object.entries(REFUSED))('is refused: %s', async (_, [encode, why]) => {
    await using here = await place()
    const stdin = encode('canary-of-mine')
    for (const argv of [
      ['source', 'add', 'stripe'],
      ['login', '--with-token'],
      ['comment', 'o/r#1', '-'],
    ]) {
      const ran = await here.runWith({ stdin }, ...argv)
      expect([argv, ran]).toEqual([argv, refused(/[Ss]tandard input/, why)])
    }
  })
})

describe('a fixture', () => {
  const FIXTURE = {
    provider: 'github',
    event: 'push',
    delivery: 'a',
    headers: {},
    payload: { ref: 'schön' },
  }

  it('is read, and its payload sent as UTF-8, however it was written', async () => {
    await using target = await receiver()
    const folder = emptyFolder()
    const env = { RELAY_WEBHOOK_SECRET: SECRET }
    const payload = JSON.stringify(FIXTURE.payload)
    const forms: readonly (readonly [lines: readonly string[], ...argv: readonly string[]])[] = [
      [JSON.stringify({ relay: 1, ...FIXTURE }, undefined, 1).split('\n'), 'replay', 'FILE'],
      [[payload], 'replay', 'FILE', '--event', 'push'],
      [[payload], 'trigger', 'push', '--body', 'FILE'],
    ]
    for (const [lines, ...argv] of forms)
      for (const [name, bytes] of written(lines)) {
        const file = path.join(folder, 'fixture.json')
        writeFileSync(file, bytes)
        const words = argv.map((word) => (word === 'FILE' ? file : word))
        const { code, err } = await run([...words, '--to', target.url], { env })
        const sent = target.received.at(-1)?.body.toString().trim()
        expect([argv, name, code, err, sent]).toEqual([argv, name, 0, expect.anything(), payload])
      }
  })

  it.each(Object.entries(REFUSED))('is refused: %s', async (_, [encode, why]) => {
    const file = path.join(emptyFolder(), 'fixture.json')
    writeFileSync(file, encode(JSON.stringify(FIXTURE)))
    const ran = await run(['replay', file, '--to', '3000'], { env: { RELAY_WEBHOOK_SECRET: SECRET } })
    expect(ran).toEqual(refused(file, why))
  })
})

const mkfifo = (file: string): string => {
  execFileSync('mkfifo', ['-m', '600', file])
  return file
}

describe('.env as a pipe, as a vault mounts it', () => {
  /** Writes the text for one reader after another, each of which has all of it, until it is disposed of. */
  function vault(file: string, text: string) {
    let [isOpen, readers] = [true, 0]
    const serving = (async () => {
      for (;;) {
        // Opening it waits for a reader.
        await writeFile(file, isOpen ? text : '')
        if (!isOpen) return
        readers += 1
        // Else the same reader would get it twice.
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    })()
    return {
      get readers() {
        return readers
      },
      async [Symbol.asyncDispose]() {
        isOpen = false
        const reading = readFile(file)
        await Promise.all([serving, reading])
      },
    }
  }

  it('is read once by every command', async () => {
    await using here = await place({ host: 'none', env: { RELAY_WEBHOOK_SECRET: undefined } })
    const { cwd } = here
    const text = `RELAY_WEBHOOK_SECRET=${SECRET}\nRELAY_SOURCES=shop=stripe\nRELAY_SOURCE_SHOP_SECRET=whsec_x`
    await using pipe = vault(mkfifo(path.join(cwd, '.env')), text)
    const commands: readonly (readonly [out: string, ...argv: readonly string[]])[] = [
      [SECRET, 'config', '--reveal', 'webhookSecret'],
      // Looks for variables in it again, for the secrets of sources.
      ['whsec_x', 'source', 'list', '--reveal', 'shop'],
      ['"checks"', 'doctor', '--json'],
    ]
    for (const [i, [out, ...argv]] of commands.entries()) {
      const ran = await here.runWith({ built: true }, ...argv)
      expect([argv, ran.out, ran.err]).toEqual([argv, expect.stringContaining(out), expect.anything()])
      await expect.poll(() => pipe.readers).toBe(i + 1)
    }
  })

  it('is read once by relay serve, which reloads without it, and stops', async () => {
    await using here = await place({ host: 'none', env: { RELAY_WEBHOOK_SECRET: undefined } })
    const file = mkfifo(path.join(here.cwd, '.env'))
    const writing = writeFile(file, `RELAY_WEBHOOK_SECRET=${SECRET}\nRELAY_FORWARD=3000\n`)
    const relay = await here.serveWith({ built: true })
    await writing
    writeFileSync(path.join(here.cwd, 'relay.json'), '{ "exec": "true" }')
    await relay.says('Reloaded the settings: 2 routes')
    relay.kill('SIGHUP')
    await relay.says(/(?:Reloaded the settings: 2 routes[^]*){2}/)
    expect(relay.err).not.toContain('unchanged')
    expect((await relay.stop('SIGINT')).code).toBe(0)
  })

  it('is read from a writer that comes late, and that writes in parts', async () => {
    const cwd = emptyFolder()
    const file = mkfifo(path.join(cwd, '.env'))
    const script = `(sleep 0.3; echo RELAY_CLIENT_ID=x; sleep 0.3; echo RELAY_PORT=26402) > '${file}'`
    const running = start(reveal('port'), { cwd, built: true })
    const writer = spawn('sh', ['-c', script])
    const written = once(writer, 'exit')
    expect(await running.ended).toMatchObject({ code: 0, out: '26402\n', err: '' })
    await written
  })

  it('that nothing writes to ends the command with what to do, also while relay serve starts', async () => {
    const cwd = emptyFolder()
    const file = mkfifo(path.join(cwd, '.env'))
    const ended = await Promise.all(
      [['config'], ['serve', '--port', '0'], ['log'], ['doctor']].map((argv) =>
        run(argv, { cwd, built: true }),
      ),
    )
    const why = `${file} is a pipe, and no program has opened it to write in 5 s. Start or unlock what writes to it, or replace it with a file`
    for (const { code, out, err } of ended) {
      expect([1, 2]).toContain(code)
      expect(out + err).toContain(why)
    }
  })

  it.each(['SIGINT', 'SIGTERM'] as const)('is waited for until %s', async (signal) => {
    const cwd = emptyFolder()
    const file = mkfifo(path.join(cwd, '.env'))
    await using running = start(['serve', '--port', '0'], { cwd, built: true })
    // A program that has it open and writes nothing.
    const writer = spawn('sh', ['-c', `exec sleep 60 > '${file}'`])
    await running.says('Waiting for the program')
    expect(await running.stop(signal)).toMatchObject({ code: 130, out: '' })
    writer.kill()
  })

  it('is refused beyond 1 MiB', async () => {
    const cwd = emptyFolder()
    const file = mkfifo(path.join(cwd, '.env'))
    const writer = spawn('sh', ['-c', `exec cat /dev/zero > '${file}'`])
    const { code, err } = await run(['config'], { cwd, built: true })
    expect([code, err]).toEqual([2, `error: ${file} is larger than 1 MiB\n`])
    writer.kill()
  })
})

describe('what is not a file, under the name of one', () => {
  const NOT_A_FILE = 'is not a regular file. Replace it with a file of at most 1 MiB'

  it.each(['.env', 'relay.json'])('a socket as %s is refused', async (name) => {
    const cwd = emptyFolder()
    const server = createServer().listen(path.join(cwd, name))
    await once(server, 'listening')
    const ran = await run(['config'], { cwd })
    server.close()
    expect(ran).toEqual({ code: 2, out: '', err: `error: ${cwd}/${name} ${NOT_A_FILE}\n` })
  })

  it('a folder as relay.json is refused, and as .env is Python’s', async () => {
    const cwd = emptyFolder()
    mkdirSync(path.join(cwd, '.env'))
    expect(await run(reveal('port'), { cwd })).toEqual(prints('8787\n'))
    mkdirSync(path.join(cwd, 'relay.json'))
    expect(await run(['config'], { cwd })).toMatchObject({
      code: 2,
      err: `error: ${cwd}/relay.json ${NOT_A_FILE}\n`,
    })
  })

  it('a pipe of a secret to which nothing writes ends the command', async () => {
    const file = mkfifo(path.join(emptyFolder(), 'pipe'))
    const { code, err } = await run(['config'], { built: true, env: { RELAY_WEBHOOK_SECRET_FILE: file } })
    expect([code, err]).toEqual([
      2,
      expect.stringContaining(`RELAY_WEBHOOK_SECRET_FILE: ${file} is a pipe, and no program`),
    ])
  })

  it('a command of <(…) that gives nothing is an empty secret', async () => {
    await using running = start(['config'], {
      wrapper: [
        'bash',
        '-c',
        'exec 9< <(true); export RELAY_WEBHOOK_SECRET_FILE=/dev/fd/9; exec "$@"',
        'bash',
      ],
    })
    expect(await running.ended).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^error: RELAY_WEBHOOK_SECRET_FILE: \/dev\/fd\/\d+ is empty\n$/),
    })
  })
})

describe('a link of the folder, which git can store', () => {
  /** A checkout with a folder to work in, and files that are not in it. */
  function checkout({ git = true } = {}) {
    const above = emptyFolder()
    const root = path.join(above, 'work')
    const cwd = path.join(root, 'sub')
    mkdirSync(cwd, { recursive: true })
    if (git) mkdirSync(path.join(root, '.git'))
    const write = (folder: string): void => {
      writeFileSync(path.join(folder, 'other.env'), `RELAY_WEBHOOK_SECRET=${SECRET}\nRELAY_PORT=26402\n`)
      writeFileSync(path.join(folder, 'other.json'), '{"port":26402}')
    }
    mkdirSync(path.join(cwd, 'in'))
    mkdirSync(path.join(above, 'work-other'))
    for (const folder of [above, root, cwd, path.join(cwd, 'in'), path.join(above, 'work-other')])
      write(folder)
    return { above, root, cwd }
  }

  type Checkout = ReturnType<typeof checkout>
  const OUTSIDE: Readonly<Record<string, (at: Checkout, end: string) => string>> = {
    'a name with ..': (_, end) => `../../other.${end}`,
    'an absolute name': ({ above }, end) => path.join(above, `other.${end}`),
    'a neighbour': ({ above }, end) => path.join(above, 'work-other', `other.${end}`),
    'a link to a link': ({ above, cwd }, end) => {
      symlinkSync(path.join(above, `other.${end}`), path.join(cwd, 'link'))
      return 'link'
    },
    'a link to a folder': ({ above, cwd }, end) => {
      symlinkSync(above, path.join(cwd, 'linked'))
      return `linked/other.${end}`
    },
    'a link that leads nowhere': () => 'nothing',
    'a link to itself': (_, end) => (end === 'env' ? '.env' : 'relay.json'),
  }
  const INSIDE: Readonly<Record<string, (at: Checkout, end: string) => string>> = {
    'a file of the folder': (_, end) => `other.${end}`,
    'a folder below': (_, end) => `in/other.${end}`,
    'the root of the checkout': (_, end) => `../other.${end}`,
    'an absolute name': ({ cwd }, end) => path.join(cwd, `other.${end}`),
  }
  const FILES = [
    ['.env', 'env'],
    ['relay.json', 'json'],
  ] as const
  const rows = (table: typeof OUTSIDE) =>
    FILES.flatMap(([file, end]) => Object.entries(table).map(([name, to]) => [file, name, end, to] as const))

  it.each(rows(OUTSIDE))(
    'that leads out of the checkout is not followed, which is said: %s, %s',
    async (file, _, end, to) => {
      const at = checkout()
      symlinkSync(to(at, end), path.join(at.cwd, file))
      const ran = await run(['config', '--json'], { cwd: at.cwd })
      expect(ran.err).toMatch(new RegExp(`^(?:error|warning|\\{.*): ?.*${path.join(at.cwd, file)}.*\\n$`))
      expect(ran.err.split('\n')).toHaveLength(2)
      expect(ran.out).not.toContain('26402')
      expect(ran.out).not.toMatch(/"webhookSecret":\{[^}]*"set":true/)
    },
  )

  it.each(rows(INSIDE))('that stays in the checkout is: %s, %s', async (file, _, end, to) => {
    const at = checkout()
    symlinkSync(to(at, end), path.join(at.cwd, file))
    expect(await run(reveal('port'), { cwd: at.cwd })).toEqual(prints('26402\n'))
  })

  it.each(rows(OUTSIDE))(
    'counts for the folder itself outside a checkout: %s, %s',
    async (file, _, end, to) => {
      const at = checkout({ git: false })
      symlinkSync(to(at, end), path.join(at.cwd, file))
      expect((await run(['config', '--json'], { cwd: at.cwd })).out).not.toContain('26402')
    },
  )

  it('is followed where the folder itself is reached by a link', async () => {
    const at = checkout()
    symlinkSync('other.env', path.join(at.cwd, '.env'))
    const linked = path.join(emptyFolder(), 'linked')
    symlinkSync(at.cwd, linked)
    expect(await run(reveal('port'), { cwd: linked })).toEqual(prints('26402\n'))
  })
})
