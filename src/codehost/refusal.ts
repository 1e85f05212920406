import { type ErrorKind, RelayError } from '../base/errors.js'

/** Kinds for statuses below 500, with the text for a response without a message. */
export const KINDS_OF_STATUSES: Readonly<Record<number, { kind: ErrorKind; text: string }>> = {
  403: { kind: 'forbidden', text: 'not allowed' },
  404: { kind: 'not_found', text: 'Not Found' },
  405: { kind: 'conflict', text: 'it cannot be merged' },
  // GitLab before 15.5, for a branch that cannot be merged.
  406: { kind: 'conflict', text: 'it cannot be merged' },
  409: { kind: 'conflict', text: 'it conflicts with the current state' },
  410: { kind: 'gone', text: 'it is gone' },
  422: { kind: 'unprocessable', text: 'it is not valid' },
  // Gitea: the repository is archived.
  423: { kind: 'forbidden', text: 'it is locked' },
}

/** Error for a code host's refusal. */
export class Refusal extends RelayError {
  /** Status of the response. */
  readonly providerStatus: number
  /**
   * Right that the token lacks, if the response names it: `one of the scopes repo, admin:repo_hook; it has read:user`.
   */
  readonly missingRight: string | undefined
  /** The code host's message on one line, or an empty text. */
  readonly upstreamMessage: string
  /** Target of a redirect, which the message names. */
  readonly elsewhere: string | undefined
  /** Page on which the user lets the token into an organization with SAML sign-on, which the message names. */
  readonly signOn: string | undefined

  constructor(
    kind: ErrorKind,
    message: string,
    answer: Pick<Refusal, 'providerStatus'> &
      Partial<Pick<Refusal, 'missingRight' | 'upstreamMessage' | 'retryAfter' | 'elsewhere' | 'signOn'>>,
  ) {
    super(kind, message, { retryAfter: answer.retryAfter })
    this.providerStatus = answer.providerStatus
    this.missingRight = answer.missingRight
    this.upstreamMessage = answer.upstreamMessage ?? ''
    this.elsewhere = answer.elsewhere
    this.signOn = answer.signOn
  }

  /** False if the message quotes the code host, unless its words are those that relay itself uses. */
  override get isOwnWords(): boolean {
    const own = ['', ...Object.values(KINDS_OF_STATUSES).map(({ text }) => text)]
    return own.includes(this.upstreamMessage) && this.elsewhere === undefined && this.signOn === undefined
  }
}

export function isNotFound(error: unknown): boolean {
  return error instanceof RelayError && error.kind === 'not_found'
}
