import { isSecretVariable } from '../base/secret-variables.js'

// Variables of the environment in the headers of a route: `$NAME`, `${NAME}`; `$$` is a `$`.

const PART = /\$(?:(\$)|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\}|)/g

/**
 * Names of the variables in a text. `shown` names the text in messages, which do not quote it.
 * @throws Error for a `$` that begins no variable, and for one of relay's own secrets
 */
export function variablesIn(text: string, shown: string): readonly string[] {
  return [...text.matchAll(PART)].flatMap(([, dollar, name, braced]) => {
    if (dollar !== undefined) return []
    const variable = name ?? braced
    if (variable === undefined)
      throw new Error(
        `in the value of ${shown}, a $ begins no name of a variable: write $$ for the character`,
      )
    if (isSecretVariable(variable))
      throw new Error(`the value of ${shown} names ${variable}, a secret of relay, which goes to no target`)
    return [variable]
  })
}

/** True if a text names a variable, well formed or not. */
export function namesVariable(text: string): boolean {
  return text.replaceAll('$$', '').includes('$')
}

/**
 * Replaces the variables in a text by their values, in the same language: nothing in it names a variable any more.
 * @param shown as of {@link variablesIn}
 * @throws Error as {@link variablesIn}, and for a variable that is not set
 */
export function resolved(
  text: string,
  shown: string,
  env: Readonly<Record<string, string | undefined>>,
): string {
  for (const name of variablesIn(text, shown))
    if (env[name] === undefined) throw new Error(`the value of ${shown} names ${name}, which is not set`)
  return expanded(text, env).replaceAll('$', '$$$$')
}

/** Replaces the variables in a text that {@link variablesIn} accepts. One that is not set is empty. */
export function expanded(text: string, env: Readonly<Record<string, string | undefined>>): string {
  return text.replaceAll(PART, (_, dollar?: string, name?: string, braced?: string) =>
    dollar === undefined ? (env[name ?? braced ?? ''] ?? '') : dollar,
  )
}
