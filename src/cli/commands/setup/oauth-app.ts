import { Secret } from '../../../base/secret.js'
import type { OAuthClient } from '../../../base/settings.js'
import { showAddress } from '../../browser/show-address.js'
import type { Context } from '../../context.js'
import type { Output } from '../../output/output.js'
import { table } from '../../output/table.js'
import { canAsk, type Prompt } from '../../prompt.js'
import type { SetupFlags } from './flags.js'
import type { SetupPlan } from './plan.js'

/** Name of the application, as users see it at the code host. */
const NAME = 'relay'

/** Has the user register an OAuth application in the browser, and asks for its id and secret. */
export async function registerByHand(
  context: Context,
  flags: SetupFlags,
  { host, callbackUrl }: SetupPlan,
  { output, prompt }: { readonly output: Output; readonly prompt: Prompt },
): Promise<OAuthClient> {
  // A program that pipes the values in has them already.
  if (canAsk(context)) {
    output.say('Register an OAuth application with these values:')
    for (const line of table(host.words.applicationForm({ name: NAME, callbackUrl }))) output.say(`  ${line}`)
    await showAddress(context, output, {
      address: host.registrationPage,
      opens: flags.browser !== false,
      waiting: 'Then create a client secret there, and enter both here. Ctrl-C cancels.',
    })
  }
  const id = await prompt.text('Client id')
  const secret = await prompt.text('Client secret (not shown)', { hidden: true })
  return { id, secret: new Secret(secret) }
}

/**
 * Registers an OAuth application with an access token of the user, which is not stored. Undefined if the user has none.
 */
export async function registerWithToken(
  { host, callbackUrl }: SetupPlan,
  { signal }: Context,
  prompt: Prompt,
): Promise<OAuthClient | undefined> {
  if (!host.register) return undefined
  const question = 'Access token with the permission to write your user (not shown; Enter for none)'
  const token = await prompt.text(question, { hidden: true, optional: true })
  return token === '' ? undefined : host.register(token, { name: NAME, redirectUri: callbackUrl }, { signal })
}
