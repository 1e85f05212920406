import { RelayError } from '../base/errors.js'
import { type Answer, type Call, send, type UserApi } from './http.js'
import { nextLink } from './next-link.js'

/** An answer of 50 of the longest comments, 64 KiB each, is still below the limit of one answer. */
export const PAGE_SIZE = '50'

/** With {@link PAGE_SIZE}, 2,500 items: as many comments as GitHub allows on an issue. */
const MAX_PAGES = 50

/**
 * Reads a list page by page, as long as each answer says that there are more.
 * @throws RelayError as {@link send}; `unprocessable` if there are still more after 50 pages.
 */
export async function* pages<T>(
  api: UserApi,
  call: Call<T>,
  hasMore: (answer: Answer<T>) => boolean,
): AsyncGenerator<T> {
  for (let page = 1; page <= MAX_PAGES; page++) {
    const answer = await send(api, { ...call, query: { ...call.query, page: String(page) } })
    yield answer.value
    if (!hasMore(answer)) return
  }
  throw new RelayError('unprocessable', `${api.label} lists more than relay reads (${MAX_PAGES} pages)`)
}

/** Whether the answer names a next page (docs.github.com, "Using pagination in the REST API"). */
export function namesNext({ header }: Answer<unknown>): boolean {
  return nextLink(header) !== undefined
}
