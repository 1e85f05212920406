import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { describeWith } from '../kit/needs.js'
import { type Ended, run, start } from '../kit/run.js'

/** A wrapper that first runs a script in the program's folder, then the program with what it exports. */
function after(script: string): readonly string[] {
  return ['bash', '-c', `${script}\nexec "$@"`, 'bash']
}

async function ended(args: readonly string[], script: string): Promise<Ended & { readonly cwd: string }> {
  await using program = start(args, { wrapper: after(script) })
  return { ...(await program.ended), cwd: program.cwd }
}

const CONFIG = ['config', '--json']
const IN_PLACE = 'Replace it with a file of at most 1 MiB'

describeWith('Linux', 'what is not a settings file ends the command, not the machine', () => {
  it.each([
    // A vault mounts it so, and gives the variables to who reads it.
    ['.env', /is a pipe, and no program has opened it to write in 5 s\. Start or unlock what writes to it/],
    ['relay.json', new RegExp(`is not a regular file. ${IN_PLACE}$`)],
  ])('%s as a pipe, exit 2', async (file, why) => {
    const { code, out, err, cwd } = await ended(CONFIG, `mkfifo -m 600 ${file}`)
    const error = expect.stringMatching(new RegExp(`^${cwd}/${file} ${why.source}`))
    const failed = { v: 1, type: 'error', code: 'settings', error }
    expect([code, out, JSON.parse(err)]).toEqual([2, '', failed])
  })

  it.each(['.env', 'relay.json'])('%s as a device that all may write to is ignored', async (file) => {
    const { code, err, cwd } = await ended(CONFIG, `ln -s /dev/zero ${file}`)
    const why = 'other users can write to /dev/zero, which belongs to user 0'
    expect([code, err]).toEqual([0, expect.stringMatching(`^warning: ${cwd}/${file} is ignored: ${why}.`)])
  })

  it('config.json as a pipe, exit 2', async () => {
    const folder = '"$HOME/.config/relay"'
    const { code, err } = await ended(CONFIG, `mkdir -p ${folder}; mkfifo ${folder}/config.json`)
    expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining(IN_PLACE) })
  })

  it('a file of more than 1 MiB, exit 2', async () => {
    const { code, err } = await ended(CONFIG, 'head -c 1048577 /dev/zero > relay.json')
    expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining('is larger than 1 MiB') })
  })

  it('a device for a secret, exit 2', async () => {
    const { code, err } = await run(CONFIG, { built: true, env: { RELAY_CLIENT_SECRET_FILE: '/dev/zero' } })
    const large = 'RELAY_CLIENT_SECRET_FILE: /dev/zero is larger than 1 MiB'
    expect([code, err]).toEqual([2, expect.stringContaining(large)])
  })

  it('but a pipe may hold a secret, also one that comes late', async () => {
    const script = 'export RELAY_WEBHOOK_SECRET_FILE=<(sleep 0.3; echo s3cret)'
    const revealed = await ended(['config', '--reveal', 'webhookSecret'], script)
    expect(revealed).toMatchObject({ code: 0, out: 's3cret\n', err: '' })
  })

  it('and is read once, however often the routes are', async () => {
    const script = 'export RELAY_WEBHOOK_SECRET_FILE=<(echo s3cret)'
    await using relay = start(['serve', '--port', '0', '--json'], { wrapper: after(script) })
    await relay.listening()
    writeFileSync(path.join(relay.cwd, 'relay.json'), '{ "forward": "3000" }')
    await relay.says('Reloaded the settings: 1 routes; any other change needs a restart')
    expect(relay.err).not.toContain('unchanged')
  })

  it.each([
    ['/proc/nope', '/proc/nope', 'the file system takes no new folders there'],
    ['/dev/null/x', '/dev/null', 'it is not a folder'],
  ])('RELAY_HOME=%s, which cannot be made', async (home, folder, why) => {
    const message = `The folder ${folder} cannot be made: ${why}. Set RELAY_HOME to a folder that you can write to`
    const env = { RELAY_HOME: home, RELAY_WEBHOOK_SECRET: '' }
    expect(await run(['serve', '--port', '0'], { built: true, env })).toMatchObject({
      code: 2,
      err: `error: ${message}\n`,
    })
    // Reading makes nothing.
    expect(await run(['whoami', '--user', 'ada'], { built: true, env })).toMatchObject({ code: 4, out: '' })
  })
})

describeWith('Linux', 'a .env that came with a checkout', () => {
  it('makes no way in: no tunnel, whose deliveries it could sign', async () => {
    const script = String.raw`printf 'RELAY_TUNNEL=https://127.0.0.1:1/x\nRELAY_WEBHOOK_SECRET=known\nRELAY_EXEC=id\n' > .env`
    const { code, err, cwd } = await ended(['serve', '--port', '0'], script)
    expect(code).toBe(2)
    expect(err).toMatch(
      `error: ${cwd}/.env: RELAY_TUNNEL cannot be set by a project: set it in the environment`,
    )
  })

  it('has its commands shown at start, and who can run them', async () => {
    const script = String.raw`printf 'RELAY_WEBHOOK_SECRET=known\nRELAY_EXEC=push=./deploy.sh\n' > .env`
    await using program = start(['serve', '--port', '0', '--json'], { wrapper: after(script) })
    await program.says(
      'warning: RELAY_EXEC in .env runs a command for deliveries: push=./deploy.sh\n' +
        'warning: anyone who can read RELAY_WEBHOOK_SECRET in .env can sign deliveries that run commands here\n',
    )
    expect((await program.stop()).code).toBe(0)
  })

  it('is named, where its secret proves the deliveries that run the user’s own commands', async () => {
    const script = String.raw`printf 'RELAY_WEBHOOK_SECRET=known\n' > .env`
    await using program = start(['serve', '--port', '0', '--exec', 'id'], { wrapper: after(script) })
    await program.says('warning: anyone who can read RELAY_WEBHOOK_SECRET in .env can sign deliveries')
    expect((await program.stop()).err).not.toContain('runs a command for deliveries')
  })
})

it.runIf(process.geteuid?.() === 0)('another user’s relay.json in a folder above runs nothing', async () => {
  const plant = `mkdir -p .git a && echo '{"exec":"id"}' > relay.json && chown -R 65534 .git relay.json && cd a`
  const { code, out, err, cwd } = await ended(CONFIG, plant)
  expect(code).toBe(0)
  expect(JSON.parse(out)).toMatchObject({ settings: { exec: { value: null, origin: 'default' } } })
  expect(err).toBe(
    `warning: ${cwd}/relay.json is ignored, because ${cwd}/.git is not trusted: ${cwd}/.git belongs to user 65534, not to you or root. To use it, check its content, then make it yours with chown and chmod go-w\n`,
  )
})
