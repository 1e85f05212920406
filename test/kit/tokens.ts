import { Tiktoken } from 'js-tiktoken/lite'
import o200k from 'js-tiktoken/ranks/o200k_base'

const encoding = new Tiktoken(o200k)

/** Tokens that a model reads of a value as JSON, as o200k_base counts them, an encoding whose table is public. */
export function tokensOf(value: unknown): number {
  return encoding.encode(typeof value === 'string' ? value : JSON.stringify(value)).length
}
