import { type Serializable, fork } from 'node:child_process'
import { once } from 'node:events'
import { dirname, extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RelayError } from '../base/errors.js'
import { withoutInherited } from '../base/without-inherited.js'
import type { Answer, Request, Value } from './keychain-helper.js'

export interface ProcessOptions {
  /** The helper's environment: where a session's D-Bus is, for one. Default: this process's. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** What stands in for the module that the helper calls the keychain with. */
  readonly module?: string | undefined
}

/** A running helper. It does not keep this process alive but while it is asked, and never outlives it. */
export interface HelperProcess {
  /** False once it has ended: another one is needed. */
  readonly running: boolean
  /**
   * One request at a time.
   * @throws RelayError `storage` when the keychain refuses, the helper ends, or has not answered within the limit.
   */
  ask(request: Request): Promise<Value>
  /** Ends it, whatever it does, and waits until it is gone. */
  kill(): Promise<void>
}

/** How long a call may take, in milliseconds: a keychain that works takes a few. */
const CALL_LIMIT = 3000

/** How long the helper may take to start, in milliseconds: Node itself does, on a busy machine. */
const START_LIMIT = 10_000

const REMEDIES = {
  linux: {
    missing: 'Install libsecret (Debian: libsecret-1-0), then install relay again',
    refused: 'Start a keyring in your D-Bus session and unlock it (Debian: gnome-keyring)',
  },
  other: {
    missing: 'Install relay again, with its optional packages',
    refused: 'Unlock it',
  },
} as const

/** Started and ready to be asked. Fails as {@link HelperProcess.ask} does. */
export async function startHelper(options: ProcessOptions): Promise<HelperProcess> {
  const child = forkHelper(options)
  let settle: ((answer: Answer | RelayError) => void) | undefined
  let running = true
  const fail = (reason: string, cause?: unknown): void => {
    running = false
    child.kill('SIGKILL')
    settle?.(unusable(reason, { cause }))
  }
  child.on('message', (answer: Answer & Serializable) => settle?.(answer))
  child.on('error', (cause) => fail('its helper process cannot be run', cause))
  child.on('exit', (code, signal) => fail(`its helper process ended (${signal ?? code})`))

  const exchange = async (limit: number, request?: Request): Promise<Value> => {
    for (const held of [child, child.channel]) held?.ref()
    let timer: NodeJS.Timeout | undefined
    try {
      const answer = await new Promise<Answer | RelayError>((resolve) => {
        settle = resolve
        timer = setTimeout(() => fail(`it did not answer within ${limit / 1000} s`), limit)
        if (request) child.send(request, () => {})
      })
      return valueOf(answer)
    } finally {
      clearTimeout(timer)
      for (const held of [child, child.channel]) held?.unref()
    }
  }
  const helper: HelperProcess = {
    get running() {
      return running
    },
    ask: (request) => exchange(CALL_LIMIT, request),
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const gone = once(child, 'exit')
      child.ref()
      child.kill('SIGKILL')
      await gone
    },
  }
  try {
    await exchange(START_LIMIT)
    return helper
  } catch (error) {
    await helper.kill()
    throw error
  }
}

/** Compiled or run by tsx, as this file is. */
function forkHelper({ env, module }: ProcessOptions) {
  const extension = extname(fileURLToPath(import.meta.url))
  const file = fileURLToPath(new URL(`./keychain-helper${extension}`, import.meta.url))
  return withoutInherited(
    {
      command: process.execPath,
      args: extension === '.ts' ? ['--import', 'tsx'] : [],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    },
    ({ command, args, stdio }) =>
      fork(file, module === undefined ? [] : [module], {
        cwd: dirname(file),
        ...(env && { env }),
        execPath: command,
        execArgv: [...args],
        // Out of the terminal's reach: Ctrl-C is for this process, which may have calls to finish.
        detached: true,
        stdio: [...stdio],
      }),
  )
}

function valueOf(answer: Answer | RelayError): Value {
  if (answer instanceof RelayError) throw answer
  if ('failed' in answer) throw unusable(answer.failed, { missing: answer.missing })
  return answer.value
}

function unusable(
  reason: string,
  { missing, cause }: { missing?: boolean; cause?: unknown } = {},
): RelayError {
  const remedy = REMEDIES[process.platform === 'linux' ? 'linux' : 'other'][missing ? 'missing' : 'refused']
  const message = `The keychain cannot be used: ${reason}. ${remedy}, or use --store file`
  return new RelayError('storage', message, { cause })
}
